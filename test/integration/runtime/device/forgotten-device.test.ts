/** Forgetting a device that is connected, and one that comes back after it was forgotten. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeDevice } from '../../../support/edge-device.ts'
import { startEdgeWorld } from '../../../support/edge-world.ts'
import { eventually } from '../../../support/eventually.ts'

const bytesOf = (text: string) => new TextEncoder().encode(text)

test('a device is not forgotten while it is connected; later it is, and numbered anew when it comes back', async () => {
  await using world = await startEdgeWorld({ EDGE_WEBTRANSPORT__ENABLED: 'true' })
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'pumps')
  const body = { name: 'pumps', device: 'dev-1', publish: ['plant/pumps'], subscribe: [] }
  const { token } = (await world.call('POST', '/edge/device-tokens', { body })).body as { token: string }
  const connect = async (): Promise<EdgeDevice> => {
    const port = Number(world.edge.addresses.webtransport.split(':').at(-1))
    const device = await EdgeDevice.connect({ port, certificateSha256: world.edge.certificateSha256() ?? '' })
    const auth = bytesOf(token)
    device.send({ type: 'hello', minVersion: 1, maxVersion: 1, name: 'dev-1', auth, epoch: 7, lanes: [] })
    await device.next('welcome')
    return device
  }
  const forget = () => world.call('DELETE', '/edge/devices/dev-1')
  const silent = await connect()
  const refused = await forget()
  assert.equal(refused.status, 400)
  assert.match(refused.text, /is connected/)
  silent.close()
  await eventually(async () => (await forget()).status === 204, 'forgotten once it is gone')
  const again = await connect()
  again.send({ type: 'alias', alias: 1, topic: 'plant/pumps', kind: 0 })
  again.send({ type: 'publish', alias: 1, sequence: 1, time: null, value: bytesOf('on') })
  assert.equal((await again.next('ack')).upTo, 1)
  assert.equal((await forget()).status, 400)
  again.close()
})
