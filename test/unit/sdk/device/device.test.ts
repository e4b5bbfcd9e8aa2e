import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Device } from '../../../../src/sdk/device/device.ts'
import type { DeviceEvent } from '../../../../src/sdk/device/device-core.ts'
import type { WebTransportSession } from '../../../../src/sdk/transport/webtransport.ts'

test('a session of which the first bytes cannot be read is given up, also where they come before it is handed over', async () => {
  const session: WebTransportSession = {
    peer: 'edge',
    carrier: 'quic',
    maxDatagramBytes: 0,
    write: () => true,
    pause: () => {},
    resume: () => {},
    sendDatagram: () => false,
    end: () => {},
    abort: () => {
      isGivenUp = true
    },
  }
  let isGivenUp = false
  const over = Promise.withResolvers<DeviceEvent>()
  const device = new Device({
    name: 'dev-1',
    auth: Uint8Array.of(1),
    dial: async (events) => {
      events.data(new Uint8Array(8).fill(0xff))
      return session
    },
    onEvent: over.resolve,
  })
  device.start()
  const event = await over.promise
  assert.equal(event.type === 'error' && event.error.code, 'EDGE_FRAME_INVALID')
  assert.ok(isGivenUp)
  await device.close()
})
