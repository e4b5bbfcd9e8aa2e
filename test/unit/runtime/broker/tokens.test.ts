/** Tokens that change while others are being removed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBrokerWorld } from '../../../support/broker-world.ts'

test('a token that is made under the name of an expired one stays while that one is removed', async () => {
  await using world = await createBrokerWorld()
  const { broker, root, clock, log } = world
  for (const name of ['first', 'mine']) await broker.createToken(root, name, 5_000_000n)
  clock.passMs(65_000)
  await Promise.all([broker.maintain(), broker.deleteToken(root, 'mine'), broker.createToken(root, 'mine', null)])
  assert.deepEqual(
    log.metadata.tokensOf(0).map(({ name, expiresAtUs }) => [name, expiresAtUs]),
    [['mine', null]],
  )
})
