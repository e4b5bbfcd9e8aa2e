import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { EdgeHttp } from '../../../src/runtime/cli/edge-http.ts'
import { startTestHttp } from '../../support/http-server.ts'

const OVERVIEW = { method: 'GET', path: '/edge/overview' } as const
const asUser = (url: string, password: string) => new EdgeHttp(url, { kind: 'password', username: 'iggy', password })

test('a server that takes no password with each request is logged in to, once', async () => {
  await using server = await startTestHttp({ settings: { http: { basic_authentication: false } } })
  const http = asUser(server.url, 'iggy')
  for (let calls = 0; calls < 3; calls++) assert.ok(await http.succeed(OVERVIEW))
  await assert.rejects(asUser(server.url, 'wrong').succeed(OVERVIEW), { code: 'EDGE_CREDENTIALS_INVALID' })
  await assert.rejects(new EdgeHttp(server.url, null).succeed(OVERVIEW), { code: 'EDGE_UNAUTHENTICATED' })
})

test('a wrong password is named where it is taken with each request', async () => {
  await using server = await startTestHttp()
  await assert.rejects(asUser(server.url, 'wrong').succeed(OVERVIEW), { code: 'EDGE_CREDENTIALS_INVALID' })
})

test('an answer that breaks off is a server that cannot be reached', async (context) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"status"', () => response.destroy())
  })
  context.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const http = new EdgeHttp(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, null)
  await assert.rejects(http.succeed(OVERVIEW), { code: 'EDGE_UPSTREAM_UNREACHABLE' })
})

test('who interrupts need not wait for a server that does not answer', async (context) => {
  const server = createServer(() => {})
  context.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const interrupt = new AbortController()
  const http = new EdgeHttp(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, null, interrupt.signal)
  server.once('request', () => interrupt.abort())
  await assert.rejects(http.succeed(OVERVIEW), { code: 'EDGE_SHUTTING_DOWN' })
  server.closeAllConnections()
})
