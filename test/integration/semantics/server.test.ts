/** What must not harm a server: a token that expires, a snapshot after another, a restart while somebody holds a token. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EdgeError } from '../../../src/sdk/index.ts'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import { basic, type EdgeWorld, startEdgeWorld } from '../../support/edge-world.ts'
import { eventually } from '../../support/eventually.ts'
import { ClassicClient, VsrClient } from '../../support/protocol-clients.ts'

const DAY_MS = 86_400_000

async function login(world: EdgeWorld): Promise<string> {
  const answer = await world.call('POST', '/users/login', { body: { username: 'iggy', password: 'iggy' } })
  assert.equal(answer.status, 200)
  return `Bearer ${(answer.body as { access_token: { token: string } }).access_token.token}`
}

describe('an expired token', () => {
  test('is refused, is removed, and everything else goes on', async () => {
    await using world = await startEdgeWorld({ EDGE_PERSONAL_ACCESS_TOKEN__CLEANER_INTERVAL: '1s' })
    const client = await world.connect()
    const short = await client.tokens.create('short-lived', 60_000_000n)
    const lasting = await client.tokens.create('lasting', null)
    assert.equal((await world.call('GET', '/streams', { authorization: `Bearer ${short}` })).status, 200)
    world.clock.passMs(2 * 60_000)
    await eventually(() => world.edge.log.metadata.tokensOf(0).length === 1, 'the expired token is removed')
    assert.equal((await world.call('GET', '/streams', { authorization: `Bearer ${short}` })).status, 401)
    // What the real server could not do any more: changes of metadata, logins, sends of who logs in now.
    await client.streams.create('plant')
    await client.topics.create('plant', 'readings')
    const authorization = await login(world)
    const body = { partitioning: { kind: 'balanced', value: '' }, messages: [{ payload: 'aGVsbG8=' }] }
    const sent = await world.call('POST', '/streams/plant/topics/readings/messages', { body, authorization })
    assert.equal(sent.status, 201)
    assert.equal((await world.call('GET', '/streams', { authorization: `Bearer ${lasting}` })).status, 200)
  })

  test('refuses the login alone: the connection takes a password after it', async () => {
    await using world = await startEdgeWorld()
    const token = await (await world.connect()).tokens.create('short-lived', 1_000_000n)
    world.clock.passMs(2000)
    using classic = await ClassicClient.connect(world.tcpPort, null)
    assert.equal((await classic.ask(CODE.loginWithPersonalAccessToken, { token })).outcome, 'status 54')
    const password = { username: 'iggy', password: 'iggy' }
    assert.equal((await classic.ask(CODE.loginUser, { ...password, version: '', context: '' })).outcome, 'ok')
    using vsr = await VsrClient.connect(world.tcpPort, null)
    assert.equal((await vsr.register({ kind: 'token', token })).outcome, 'eviction 10')
    assert.equal((await vsr.register({ kind: 'password', ...password })).outcome, 'ok')
    assert.equal((await world.call('POST', '/personal-access-tokens/login', { body: { token } })).status, 401)
  })
})

describe('over a restart', () => {
  test('an access token that somebody holds stays good, and one that was logged out stays bad', async () => {
    await using world = await startEdgeWorld()
    const [held, ended] = [await login(world), await login(world)]
    assert.equal((await world.call('DELETE', '/users/logout', { authorization: ended })).status, 204)
    await world.restart()
    assert.equal((await world.call('GET', '/streams', { authorization: held })).status, 200)
    assert.equal((await world.call('GET', '/streams', { authorization: ended })).status, 401)
  })

  test('an access token ends with its own time, not earlier', async () => {
    await using world = await startEdgeWorld()
    const held = await login(world)
    world.clock.passMs(55 * 60_000)
    assert.equal((await world.call('GET', '/streams', { authorization: held })).status, 200)
    world.clock.passMs(10 * 60_000)
    assert.equal((await world.call('GET', '/streams', { authorization: held })).status, 401)
  })

  test('users, permissions, tokens and the password of root are as they were', async () => {
    await using world = await startEdgeWorld()
    const client = await world.connect()
    await client.users.create({ username: 'reader', password: 'secret' })
    await client.users.changePassword('iggy', 'iggy', 'other')
    const token = await client.tokens.create('lasting', null)
    await world.restart()
    await assert.rejects(
      world.connect('vsr', ['iggy', 'iggy']),
      (error) => error instanceof EdgeError && error.code === 'EDGE_CREDENTIALS_INVALID',
    )
    assert.equal((await (await world.connect('vsr', ['iggy', 'other'])).users.list()).length, 2)
    assert.equal((await world.call('GET', '/users', { authorization: `Bearer ${token}` })).status, 200)
    assert.equal((await world.call('GET', '/users', { authorization: basic('reader', 'secret') })).status, 403)
  })
})

test('GET / answers what health checks of guides ask for', async () => {
  await using world = await startEdgeWorld()
  const answer = await fetch(`${world.http}/`)
  assert.deepEqual([answer.status, await answer.text()], [200, 'Iggy API'])
})

test('snapshots that follow each other at once are all whole', async () => {
  await using world = await startEdgeWorld()
  const client = await world.connect()
  const zips = await Promise.all(Array.from({ length: 10 }, () => client.system.snapshot()))
  for (const zip of zips) assert.equal(Buffer.from(zip).readUInt32LE(0), 0x04034b50)
  for (let count = 0; count < 5; count++) {
    const body = { compression: 'Deflated', snapshot_types: ['All'] }
    assert.equal((await world.call('POST', '/snapshot', { body })).status, 200)
  }
})

test('a clock that is put forward by days ends neither connections nor what they may do', async () => {
  await using world = await startEdgeWorld()
  const client = await world.connect()
  world.clock.passMs(3 * DAY_MS)
  await client.streams.create('plant')
  assert.equal((await client.system.me()).userId, 0)
})
