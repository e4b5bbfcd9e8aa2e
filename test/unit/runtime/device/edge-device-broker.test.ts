import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEdgeDeviceBroker } from '../../../../src/runtime/device/index.ts'
import { createBrokerWorld } from '../../../support/broker-world.ts'

/** How often a token is looked at again. */
const CHECK_MS = 2000

test('a credential is looked at again while a session has it, never for one that was refused or has ended', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] })
  await using world = await createBrokerWorld()
  const token = new TextEncoder().encode(
    await world.broker.createDeviceToken(world.root, 'pump', null, '{"device":"pump-*","publish":[],"subscribe":[]}'),
  )
  let checkCount = 0
  const { authenticateDevice } = world.broker
  const broker = {
    ...world.broker,
    authenticateDevice(text: string) {
      checkCount++
      return authenticateDevice(text)
    },
  }
  const devices = createEdgeDeviceBroker({ broker, log: world.log, clock: world.clock, isClockTrusted: () => true })
  context.after(() => devices.close())
  // Two devices with one name take it from each other for days: most of what they show opens no session.
  for (let attempt = 0; attempt < 100; attempt++) await devices.authenticate('pump-1', token)
  const grant = await devices.authenticate('pump-2', token)
  let isRevoked = false
  grant.onRevoked = () => {
    isRevoked = true
  }
  const checksOf = () => {
    checkCount = 0
    context.mock.timers.tick(CHECK_MS)
    return checkCount
  }
  assert.equal(checksOf(), 1)
  await world.broker.deleteDeviceToken(world.root, 'pump')
  checksOf()
  assert.ok(isRevoked)
  assert.equal(checksOf(), 0)
})
