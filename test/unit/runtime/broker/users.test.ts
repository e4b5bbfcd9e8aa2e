/** Users who may nothing any more, while connections and requests of theirs go on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALL_PERMISSIONS } from '../../../../src/runtime/broker/permissions.ts'
import { createBrokerWorld } from '../../../support/broker-world.ts'

const SPEC = { username: 'reader', password: 'secret', isActive: true, permissions: null }

test('users who are made inactive may nothing that is their own either', async () => {
  await using world = await createBrokerWorld()
  const user = await world.broker.createUser(world.root, SPEC)
  const caller = world.connect(user.id)
  await world.broker.createToken(caller, 'mine', null)
  await world.broker.updateUser(world.root, user.id, { isActive: false })
  const refused = { code: 'EDGE_FORBIDDEN', message: /"reader" is inactive/ }
  await assert.rejects(world.broker.createToken(caller, 'more', null), refused)
  await assert.rejects(world.broker.deleteToken(caller, 'mine'), refused)
  await assert.rejects(world.broker.changePassword(caller, 'reader', 'secret', 'other'), refused)
  for (const ask of ['tokens', 'me', 'cluster'] as const) assert.throws(() => world.broker[ask](caller), refused)
  assert.throws(() => world.broker.user(caller, 'reader'), refused)
})

test('what waits for the hash of a password is refused when its caller may no more by then', async () => {
  await using world = await createBrokerWorld()
  const { broker, root } = world
  const admin = await broker.createUser(root, { ...SPEC, username: 'admin', permissions: ALL_PERMISSIONS })
  const caller = world.connect(admin.id)
  const made = broker.createUser(caller, { ...SPEC, permissions: ALL_PERMISSIONS })
  const changed = broker.changePassword(caller, 'admin', 'secret', 'other')
  const ended = Promise.allSettled([made, changed])
  await broker.updateUser(root, 'admin', { isActive: false })
  for (const end of await ended) assert.equal(end.status === 'rejected' && end.reason.code, 'EDGE_FORBIDDEN')
  assert.equal(broker.user(root, 'reader'), undefined)
})

test('a user who gets the number of a deleted one gets nothing that one has asked for', async () => {
  await using world = await createBrokerWorld()
  const { id } = await world.broker.createUser(world.root, SPEC)
  // Over HTTP a caller lives as long as its request, and nobody ends it.
  const userSinceUs = world.log.metadata.users.get(id)?.createdAtUs
  const caller = { dialect: 'http', userId: id, userSinceUs, client: null } as const
  world.clock.passMs(1)
  const deleted = world.broker.deleteUser(world.root, 'reader')
  const refused = assert.rejects(world.broker.createToken(caller, 'mine', null), { code: 'EDGE_UNAUTHENTICATED' })
  await deleted
  assert.equal((await world.broker.createUser(world.root, { ...SPEC, username: 'other' })).id, id)
  await refused
  assert.throws(() => world.broker.me(caller), { code: 'EDGE_UNAUTHENTICATED' })
  assert.deepEqual(world.log.metadata.tokensOf(id), [])
})
