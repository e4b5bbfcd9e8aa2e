import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import type { Caller } from '../../../../src/runtime/broker/api.ts'
import type { BrokerContext } from '../../../../src/runtime/broker/context.ts'
import { createDevices } from '../../../../src/runtime/broker/devices.ts'

const HOUR_US = 3_600_000_000n
const NOW_US = 100n * HOUR_US
const CALLER: Caller = { userId: 1 } as Caller

function world(isAllowed = true) {
  const steps: string[] = []
  const remembered = [
    { name: 'busy', lastSeenUs: NOW_US - 1n },
    { name: 'old', lastSeenUs: NOW_US - HOUR_US },
    { name: 'silent', lastSeenUs: null },
  ]
  const stream = { topics: new Map([[0, { partitions: [{ key: 5 }, { key: 6 }] }]]) }
  const context = {
    clock: { wallUs: () => NOW_US },
    rights: {
      allow() {
        if (!isAllowed) throw new EdgeError('EDGE_FORBIDDEN', 'no')
      },
    },
    log: {
      producers: { devices: () => remembered, forget: (name: string) => 8 + steps.push(`forget ${name}`) },
      catalog: { streams: new Map([[0, stream]]) },
      metadata: { deleteOffset: (key: number, kind: string, id: number) => steps.push(`offset ${key} ${kind} ${id}`) },
    },
  }
  return { steps, devices: createDevices(context as unknown as BrokerContext) }
}

test('devices are listed with the one silent the longest first', () => {
  const names = world()
    .devices.devices(CALLER)
    .map(({ name }) => name)
  assert.deepEqual(names, ['silent', 'old', 'busy'])
})

test('a device that is forgotten takes its offsets along', async () => {
  const { steps, devices } = world()
  await devices.forgetDevice(CALLER, 'old')
  assert.deepEqual(steps, ['forget old', 'offset 5 device 9', 'offset 6 device 9'])
})

test('a device that published a moment ago is not forgotten, nor by somebody without the right', async () => {
  const { steps, devices } = world()
  await assert.rejects(devices.forgetDevice(CALLER, 'busy'), { code: 'EDGE_DEVICE_ACTIVE' })
  const forbidden = world(false)
  await assert.rejects(forbidden.devices.forgetDevice(CALLER, 'old'), { code: 'EDGE_FORBIDDEN' })
  assert.throws(() => forbidden.devices.devices(CALLER), { code: 'EDGE_FORBIDDEN' })
  assert.deepEqual([...steps, ...forbidden.steps], [])
})

test('a device that is connected is not forgotten, however long it is silent', async () => {
  const { steps, devices } = world()
  const [older, newer] = [devices.holdDevice('silent'), devices.holdDevice('silent')]
  older()
  await assert.rejects(devices.forgetDevice(CALLER, 'silent'), { code: 'EDGE_DEVICE_ACTIVE', message: /is connected/ })
  assert.deepEqual(steps, [])
  newer()
  await devices.forgetDevice(CALLER, 'silent')
  assert.equal(steps[0], 'forget silent')
})
