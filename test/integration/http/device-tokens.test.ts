import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestHttp, type TestHttp } from '../../support/http-server.ts'

const ROOT = 'Basic aWdneTppZ2d5'
const PUMP = { name: 'pumps', device: 'dev-*', publish: ['sensors/*'], subscribe: ['commands/{device}'] }

async function call(server: TestHttp, method: string, path: string, body?: object, user = ROOT): Promise<Response> {
  return await fetch(server.url + path, {
    method,
    headers: { authorization: user, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

test('a device token is shown once, listed without its text, and gone after its deletion', async () => {
  await using server = await startTestHttp()
  const created = await call(server, 'POST', '/edge/device-tokens', { ...PUMP, any_key: true, expiry: 3_600_000_000 })
  assert.equal(created.status, 200)
  const { token } = (await created.json()) as { token: string }
  assert.equal(server.broker.authenticateDevice(token).name, 'pumps')

  const listed = (await (await call(server, 'GET', '/edge/device-tokens')).json()) as Record<string, unknown>[]
  assert.equal(listed.length, 1)
  const { expires_at: expiresAt, ...rest } = listed[0] ?? {}
  assert.deepEqual(rest, { ...PUMP, user: 'iggy', any_key: true })
  assert.ok(Number(expiresAt) > Date.now() * 1000)

  assert.equal((await call(server, 'DELETE', '/edge/device-tokens/pumps')).status, 204)
  assert.throws(() => server.broker.authenticateDevice(token), { code: 'EDGE_TOKEN_INVALID' })
  assert.equal((await call(server, 'DELETE', '/edge/device-tokens/pumps')).status, 404)
})

test('a device token is no personal access token: it is not among them and cannot be deleted as one', async () => {
  await using server = await startTestHttp()
  await call(server, 'POST', '/edge/device-tokens', PUMP)
  assert.deepEqual(await (await call(server, 'GET', '/personal-access-tokens')).json(), [])
  assert.equal((await call(server, 'DELETE', '/personal-access-tokens/pumps')).status, 404)
  assert.equal((await call(server, 'POST', '/edge/device-tokens', PUMP)).status, 400)
})

test('who may not manage users may neither make, see nor delete device tokens', async () => {
  await using server = await startTestHttp()
  await call(server, 'POST', '/users', { username: 'watcher', password: 'secret', status: 'active', permissions: null })
  const watcher = `Basic ${Buffer.from('watcher:secret').toString('base64')}`
  assert.equal((await call(server, 'POST', '/edge/device-tokens', PUMP, watcher)).status, 403)
  assert.equal((await call(server, 'GET', '/edge/device-tokens', undefined, watcher)).status, 403)
  assert.equal((await call(server, 'DELETE', '/edge/device-tokens/pumps', undefined, watcher)).status, 403)
})

for (const [what, body, text] of [
  ['no device', { name: 'pumps', device: '' }, /device: found/],
  ['a topic without its stream', { ...PUMP, publish: ['sensors'] }, /publish: expected/],
  ['a name that is too short', { ...PUMP, name: 'p' }, /3\.\.30 bytes/],
] as const) {
  test(`a token with ${what} is refused and says why`, async () => {
    await using server = await startTestHttp()
    const reply = await call(server, 'POST', '/edge/device-tokens', body)
    assert.equal(reply.status, 400)
    assert.match(((await reply.json()) as { reason: string }).reason, text)
  })
}
