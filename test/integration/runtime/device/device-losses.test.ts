/** Readings that are stored nowhere are counted where an operator looks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeDevice } from '../../../support/edge-device.ts'
import { startEdgeWorld } from '../../../support/edge-world.ts'

test('what a device gave up is counted by reason, in metrics and in the overview', async () => {
  await using world = await startEdgeWorld({ EDGE_WEBTRANSPORT__ENABLED: 'true' })
  const { edge, call } = world
  const metrics = async () => (await fetch(`http://${edge.addresses.http}/metrics`)).text()
  assert.match(await metrics(), /^edge_device_lost_readings_total\{reason="skipped-overflow"\} 0$/m)
  const body = { name: 'pumps', device: 'dev-1', publish: ['plant/pumps'], subscribe: [] }
  const { token } = (await call('POST', '/edge/device-tokens', { body })).body as { token: string }
  const port = Number(edge.addresses.webtransport.split(':').at(-1))
  const device = await EdgeDevice.connect({ port, certificateSha256: edge.certificateSha256() ?? '' })
  const auth = new TextEncoder().encode(token)
  device.send({ type: 'hello', minVersion: 1, maxVersion: 1, name: 'dev-1', auth, epoch: 7, lanes: [] })
  device.send({ type: 'skip', lane: 1, first: 1, count: 25, why: 0 })
  assert.equal((await device.next('ack')).upTo, 25)
  const text = await metrics()
  assert.match(text, /^edge_devices 1$/m)
  assert.match(text, /^edge_device_lost_readings_total\{reason="skipped-overflow"\} 25$/m)
  const { devices } = (await call('GET', '/edge/overview')).body as { devices: unknown }
  assert.deepEqual(devices, { connected: 1, lost_readings: [{ reason: 'skipped-overflow', count: 25 }] })
  device.close()
})
