/** One link over HTTP, to a server of the test's own. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { EdgeError } from '../../../src/errors.ts'
import { parseConnectionString } from '../../../src/sdk/index.ts'
import { LinkPace } from '../../../src/sync/core/link-pace.ts'
import { openHttpUpstream } from '../../../src/sync/io/http-upstream.ts'
import { Turns } from '../../../src/sync/io/turns.ts'

const LOGIN = '{"access_token":{"token":"t"}}'
const STATS = '{"process_id":1,"start_time":1}'
const EMPTY_PAGE = '{"partition_id":0,"current_offset":0,"messages":[]}'

test('a hundred looks at once wait for few connections, and the time they wait is not held against them', async (context) => {
  const server = createServer((request, response) => {
    if (request.url === '/users/login') response.end(LOGIN)
    else if (request.url === '/stats') response.end(STATS)
    else setTimeout(() => response.end(EMPTY_PAGE), 20)
  })
  let [openCount, mostCount] = [0, 0]
  server.on('connection', (socket) => {
    openCount++
    mostCount = Math.max(mostCount, openCount)
    socket.once('close', () => openCount--)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const upstream = await openHttpUpstream(
    {
      target: parseConnectionString(`iggy+http://iggy:iggy@127.0.0.1:${port}`),
      clock: systemClock,
      // All of them together take 500 ms at least.
      pace: new LinkPace({ initialUs: 300_000, minUs: 300_000, maxUs: 300_000, usualBytesPerSecond: 32_000 }),
      connectTimeoutMs: 1000,
      maxInFlight: 4,
      httpCheckIntervalMs: 30_000,
    },
    new AbortController().signal,
    new Turns(),
  )
  context.after(() => {
    upstream.abort(new EdgeError('EDGE_SHUTTING_DOWN', 'the test is over'))
    server.close()
  })
  const request = { kind: 'last', count: 1, expectedBytes: 0 } as const
  const topics = Array.from({ length: 100 }, (_, index) => ({ streamName: 's', topicName: `t${index}` }))
  const pages = await Promise.all(topics.map((topic) => upstream.pollTail(topic, 0, request)))
  assert.equal(pages.length, 100)
  assert.ok(mostCount <= 4, `${mostCount} connections`)
})
