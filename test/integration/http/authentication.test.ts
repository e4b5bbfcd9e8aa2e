import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { startTestHttp, type TestHttp } from '../../support/http-server.ts'
import { keySetOf, TestIssuer } from '../../support/issuer.ts'

const basic = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

async function call(
  server: TestHttp,
  method: string,
  path: string,
  authorization?: string,
  body?: object,
  extra: Record<string, string> = {},
) {
  const headers: Record<string, string> = { 'content-type': 'application/json', ...extra }
  if (authorization !== undefined) headers.authorization = authorization
  const response = await fetch(server.url + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const json = text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : undefined
  return { status: response.status, json, id: json?.id as number | undefined }
}

async function logIn(server: TestHttp, username = 'iggy', password = 'iggy'): Promise<string> {
  const { json } = await call(server, 'POST', '/users/login', undefined, { username, password })
  return `Bearer ${json.access_token.token}`
}

test('every protected route asks who it is, and only then looks at anything else', async () => {
  await using server = await startTestHttp()
  const routes: readonly (readonly [string, string])[] = [
    ['GET', '/streams'],
    ['POST', '/streams'],
    ['PUT', '/streams/absent'],
    ['DELETE', '/streams/absent'],
    ['GET', '/streams/absent/topics'],
    ['POST', '/streams/absent/topics/absent/messages'],
    ['GET', '/streams/absent/topics/absent/messages?count=abc'],
    ['PUT', '/streams/absent/topics/absent/consumer-offsets'],
    ['GET', '/streams/absent/topics/absent/consumer-groups'],
    ['GET', '/users'],
    ['PUT', '/users/0/password'],
    ['GET', '/personal-access-tokens'],
    ['DELETE', '/users/logout'],
    ['GET', '/clients'],
    ['GET', '/cluster/metadata'],
    ['GET', '/options/topic'],
    ['POST', '/snapshot'],
    ['GET', '/edge/overview'],
    ['GET', '/edge/topics/0/0/newest'],
  ]
  for (const [method, path] of routes) {
    assert.equal((await call(server, method, path)).id, 77, `${method} ${path} without a token`)
    for (const wrong of ['Bearer x', 'Bearer  x', 'Basic ***', `Basic ${btoa('no colon')}`]) {
      const { status, id } = await call(server, method, path, wrong)
      assert.deepEqual([status, id], [401, 40], `${method} ${path} with ${wrong}`)
    }
  }
  // Each costs a password hash, so on one route only.
  for (const wrong of [basic('iggy', 'wrong'), basic('nobody', 'iggy')])
    assert.equal((await call(server, 'GET', '/streams', wrong)).id, 40)
  for (const other of ['bearer x', 'Bearer', 'Digest x', 'x'])
    assert.equal((await call(server, 'GET', '/streams', other)).id, 77)
})

test('tokens outlive a restart, refreshed ones leave the old one valid, logged out ones stay out', async () => {
  const first = await startTestHttp()
  const [kept, ended] = [await logIn(first), await logIn(first)]
  const refreshed = await call(first, 'POST', '/users/refresh-token', undefined, { token: kept.slice(7) })
  assert.equal(refreshed.status, 200)
  assert.equal((await call(first, 'DELETE', '/users/logout', ended)).status, 204)
  assert.equal((await call(first, 'GET', '/streams', ended)).id, 40)

  await using second = await first.restart()
  for (const token of [kept, `Bearer ${refreshed.json.access_token.token}`])
    assert.equal((await call(second, 'GET', '/streams', token)).status, 200)
  assert.equal((await call(second, 'GET', '/streams', ended)).status, 401)
  assert.equal((await call(second, 'POST', '/users/refresh-token', undefined, { token: ended.slice(7) })).status, 401)
})

test("a token of another server, or of another secret, is nobody's", async () => {
  await using one = await startTestHttp()
  await using other = await startTestHttp()
  assert.equal((await call(other, 'GET', '/streams', await logIn(one))).status, 401)
})

test('a configured secret signs, so that several servers may share tokens', async () => {
  const settings = { 'http.jwt': { secret: 'shared by two' } }
  await using one = await startTestHttp({ settings })
  await using other = await startTestHttp({ settings })
  assert.equal((await call(other, 'GET', '/streams', await logIn(one))).status, 200)
})

test('a token of a deleted user is none of the user who gets its id, and one outlives a new name', async () => {
  await using server = await startTestHttp()
  const root = await logIn(server)
  const make = (username: string) =>
    call(server, 'POST', '/users', root, { username, password: 'secret', status: 'active' })
  const { json: alice } = await make('alice')
  const token = await logIn(server, 'alice', 'secret')
  await call(server, 'PUT', '/users/alice', root, { username: 'alicia' })
  assert.equal((await call(server, 'GET', '/users/me', token)).status, 200)
  await call(server, 'DELETE', '/users/alicia', root)
  assert.equal((await call(server, 'GET', '/users/me', token)).status, 401)
  const { json: bob } = await make('bob')
  assert.equal(bob.id, alice.id)
  assert.equal((await call(server, 'GET', '/users/me', token)).status, 401)
  assert.equal((await call(server, 'POST', '/users/refresh-token', undefined, { token: token.slice(7) })).status, 401)
})

test('a token of a user who is made inactive is none until the user is active again', async () => {
  await using server = await startTestHttp()
  const root = await logIn(server)
  const user = { username: 'reader', password: 'secret', status: 'active' }
  assert.equal((await call(server, 'POST', '/users', root, user)).status, 200)
  const reader = await logIn(server, 'reader', 'secret')
  const refresh = () => call(server, 'POST', '/users/refresh-token', undefined, { token: reader.slice(7) })
  await call(server, 'PUT', '/users/reader', root, { status: 'inactive' })
  assert.equal((await refresh()).id, 40)
  for (const path of ['/users/me', '/personal-access-tokens'])
    assert.equal((await call(server, 'GET', path, reader)).id, 40)
  const token = { name: 'mine', expiry: 0 }
  assert.equal((await call(server, 'POST', '/personal-access-tokens', reader, token)).id, 40)
  await call(server, 'PUT', '/users/reader', root, { status: 'active' })
  assert.equal((await refresh()).status, 200)
})

test('a request whose body comes late is none of the user who gets the number of its own meanwhile', async () => {
  await using server = await startTestHttp()
  const root = await logIn(server)
  const user = (username: string) => ({ username, password: 'secret', status: 'active' })
  await call(server, 'POST', '/users', root, user('anna'))
  const headers = {
    authorization: await logIn(server, 'anna', 'secret'),
    'content-type': 'application/json',
    expect: '100-continue',
  }
  const late = request(`${server.url}/personal-access-tokens`, { method: 'POST', headers })
  const answered = once(late, 'response')
  late.flushHeaders()
  // The request is being handled by then.
  await once(late, 'continue')
  await call(server, 'DELETE', '/users/anna', root)
  assert.equal((await call(server, 'POST', '/users', root, user('ben'))).json.id, 1)
  late.end(JSON.stringify({ name: 'mine', expiry: 0 }))
  const [answer] = (await answered) as [IncomingMessage]
  answer.resume()
  assert.equal(answer.statusCode, 401)
  assert.deepEqual(server.log.metadata.tokensOf(1), [])
})

test('a raw personal access token is a Bearer, until it is deleted', async () => {
  await using server = await startTestHttp()
  const token = await logIn(server)
  const { json } = await call(server, 'POST', '/personal-access-tokens', token, { name: 'edge', expiry: 0 })
  const raw = `Bearer ${json.token}`
  assert.equal((await call(server, 'GET', '/streams', raw)).status, 200)
  assert.equal((await call(server, 'DELETE', '/personal-access-tokens/edge', raw)).status, 204)
  assert.equal((await call(server, 'GET', '/streams', raw)).id, 40)
})

test('a changed password ends what was remembered of the old one', async () => {
  await using server = await startTestHttp()
  assert.equal((await call(server, 'GET', '/streams', basic('iggy', 'iggy'))).status, 200)
  const change = { current_password: 'iggy', new_password: 'another' }
  assert.equal((await call(server, 'PUT', '/users/iggy/password', basic('iggy', 'iggy'), change)).status, 204)
  assert.equal((await call(server, 'GET', '/streams', basic('iggy', 'iggy'))).status, 401)
  assert.equal((await call(server, 'GET', '/streams', basic('iggy', 'another'))).status, 200)
})

test('Basic can be turned off', async () => {
  await using server = await startTestHttp({ settings: { http: { basic_authentication: false } } })
  assert.equal((await call(server, 'GET', '/streams', basic('iggy', 'iggy'))).id, 77)
})

test('open reads are for this machine alone: not through a proxy, not for a page of another origin, not when turned off', async () => {
  await using open = await startTestHttp()
  await using closed = await startTestHttp({ settings: { http: { open_reads_on_loopback: false } } })
  for (const path of ['/stats', '/metrics']) {
    assert.equal((await call(open, 'GET', path)).status, 200)
    for (const header of ['x-forwarded-for', 'forwarded', 'origin'])
      assert.equal((await call(open, 'GET', path, undefined, undefined, { [header]: 'http://other.example' })).id, 77)
    assert.equal((await call(open, 'GET', path, 'Bearer x')).id, 40)
    assert.equal((await call(closed, 'GET', path)).id, 77)
    assert.equal((await call(closed, 'GET', path, await logIn(closed))).status, 200)
  }
  assert.deepEqual((await call(closed, 'GET', '/health')).json, { status: 'ready' })
  assert.deepEqual((await call(open, 'GET', '/health')).json, { status: 'ready', checks: [] })
})

test('open reads are for who asks for this machine by an address or its own name, not for a page under a name of others', async () => {
  await using server = await startTestHttp()
  const statusFor = async (host: string): Promise<number | undefined> => {
    const asked = get({ host: '127.0.0.1', port: server.http.port, path: '/stats', headers: { host }, agent: false })
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode
  }
  for (const host of ['127.0.0.1:3000', 'localhost', 'gateway-7:3000', '[::1]:3000', '192.0.2.7'])
    assert.equal(await statusFor(host), 200, host)
  for (const host of ['rebound.example', 'rebound.example:3000', '127.0.0.1.rebound.example'])
    assert.equal(await statusFor(host), 401, host)
})

test('rights hold on every route: a user without any sees itself and its tokens only', async () => {
  await using server = await startTestHttp()
  const root = await logIn(server)
  await call(server, 'POST', '/streams', root, { name: 's' })
  await call(server, 'POST', '/streams/s/topics', root, { name: 't', partitions_count: 1 })
  await call(server, 'POST', '/users', root, { username: 'alice', password: 'secret', status: 'active' })
  const alice = await logIn(server, 'alice', 'secret')
  const send = { partitioning: { kind: 'balanced', value: '' }, messages: [{ payload: 'YQ==' }] }
  const refused: readonly (readonly [string, string, object?])[] = [
    ['GET', '/streams'],
    ['GET', '/streams/s'],
    ['DELETE', '/streams/s/purge'],
    ['GET', '/streams/s/topics'],
    ['GET', '/streams/s/topics/t'],
    ['POST', '/streams/s/topics', { name: 'x', partitions_count: 1 }],
    ['DELETE', '/streams/s/topics/t/partitions?partitions_count=1'],
    ['POST', '/streams/s/topics/t/messages', send],
    ['GET', '/streams/s/topics/t/messages'],
    ['GET', '/streams/s/topics/t/messages?consumer_group=new&strategy=next'],
    ['GET', '/streams/s/topics/t/messages/flush/0/true'],
    ['GET', '/streams/s/topics/t/consumer-offsets'],
    ['PUT', '/streams/s/topics/t/consumer-offsets', { offset: 0 }],
    ['GET', '/streams/s/topics/t/consumer-groups'],
    ['GET', '/users'],
    ['GET', '/users/0'],
    ['DELETE', '/users/alice'],
    ['PUT', '/users/alice/permissions', { permissions: null }],
    ['GET', '/stats'],
    ['GET', '/clients'],
    ['POST', '/snapshot', { compression: 'Stored', snapshot_types: ['Test'] }],
    ['GET', '/edge/overview'],
    ['GET', '/edge/topics/s/t/newest'],
  ]
  for (const [method, path, body] of refused) {
    const { status, id } = await call(server, method, path, alice, body)
    assert.deepEqual([status, id], [403, 41], `${method} ${path}`)
  }
  for (const path of ['/users/me', '/users/alice', '/personal-access-tokens', '/cluster/metadata', '/options/topic'])
    assert.equal((await call(server, 'GET', path, alice)).status, 200, path)
})

test('a token of a trusted issuer acts as the user named for it, within the rights of that user', async () => {
  const issuer = new TestIssuer('key')
  await using keys = await serveText(keySetOf(issuer))
  const trusted = { issuer: 'https://issuer.test', jwks_url: keys.url, audience: 'iggy', user_id: 1 }
  await using server = await startTestHttp({ settings: { 'http.jwt.trusted_issuers': [trusted] } })
  const root = await logIn(server)
  const user = { username: 'service', password: 'service', status: 'active', permissions: null }
  assert.equal((await call(server, 'POST', '/users', root, user)).json.id, 1)
  const claims = { iss: trusted.issuer, aud: 'iggy', sub: 'a service', exp: Math.floor(Date.now() / 1000) + 60 }
  const bearer = `Bearer ${issuer.token(claims)}`
  assert.equal((await call(server, 'GET', '/users/1', bearer)).json.username, 'service')
  assert.equal((await call(server, 'GET', '/users', bearer)).status, 403)
  const ended = `Bearer ${issuer.token({ ...claims, exp: 1 })}`
  assert.equal((await call(server, 'GET', '/users/1', ended)).status, 401)
  const refresh = { token: issuer.token(claims) }
  assert.equal((await call(server, 'POST', '/users/refresh-token', undefined, refresh)).status, 401)
})

/** Whatever is asked for, the answer is this text. */
async function serveText(text: string) {
  const server = createServer((_, response) => void response.end(text))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/keys`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  }
}
