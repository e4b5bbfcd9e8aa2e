/** The device client against this runtime's own device hub, over QUIC and over HTTP/2. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { type QuicEdge, startQuicEdge } from '../../../src/quic-edge/index.ts'
import { type DeviceHub, startDeviceHub } from '../../../src/runtime/device/index.ts'
import { connect, Device, dialWebTransport, probeQuic, type WebTransportSession } from '../../../src/sdk/index.ts'
import { eventually } from '../../support/eventually.ts'
import { MemoryDeviceBroker } from '../../support/memory-device-broker.ts'

const ALIAS_OPTIONS = { fields: [{ name: 'temp', unit: 'Cel', scale: -2 }], storedAs: 1 } as const
const directory = mkdtempSync(join(tmpdir(), 'device-client-'))
const broker = new MemoryDeviceBroker()
let hub: DeviceHub
let edge: QuicEdge

before(async () => {
  hub = startDeviceHub({ broker })
  edge = await startQuicEdge(
    { host: '127.0.0.1', port: 0, certificate: { type: 'self-signed', directory }, hasTcpFallback: true },
    { paths: { '/edge': hub.pathHandler } },
  )
})

after(async () => {
  await hub.close()
  await edge.close()
  rmSync(directory, { recursive: true })
})

function where(carrier: 'any' | 'quic' | 'http2') {
  const certificateHash = edge.certificate.sha256.replaceAll(':', '').toLowerCase()
  return { host: '127.0.0.1', port: edge.port, path: '/edge', certificateHash, connectTimeoutMs: 5000, carrier }
}

/** The newest session of `deviceOf`, to be cut. */
let session: WebTransportSession

function deviceOf(context: TestContext, name: string, carrier: 'quic' | 'http2'): Device {
  const device = new Device({
    name,
    auth: broker.token,
    dial: async (events, signal) => {
      session = await dialWebTransport(where(carrier), events, signal)
      return session
    },
  })
  device.start()
  context.after(() => device.close())
  return device
}

for (const carrier of ['quic', 'http2'] as const) {
  const name = carrier === 'quic' ? 'dev-21' : 'dev-22'
  test(`over ${carrier} readings published before and after the welcome are acknowledged and stored in order`, async (context) => {
    const device = deviceOf(context, name, carrier)
    const alias = device.alias('sensors/climate', 'numbers', ALIAS_OPTIONS)
    const first = device.publish(alias, 2157)
    const rest = device.publishSeries(alias, 1000, [2158, 2159, 2160])
    assert.deepEqual(await first, { lane: 1, sequence: 1, promise: 'durable' })
    assert.equal((await rest).sequence, 2)
    assert.equal(device.carrier, carrier)
    const values = broker.stored
      .filter(({ headers }) => headers.device === name)
      .map(({ payload }) => JSON.parse(payload)[0].v)
    assert.deepEqual(values, [21.57, 21.58, 21.59, 21.6])
    assert.equal(device.pendingReadings, 0)
  })
}

test('readings outlive a lost session and are stored once', async (context) => {
  const name = 'dev-23'
  const device = deviceOf(context, name, 'quic')
  const alias = device.alias('sensors/climate', 'numbers', ALIAS_OPTIONS)
  await device.publish(alias, 1)
  const published = Array.from({ length: 40 }, (_, index) => device.publish(alias, index))
  session.abort()
  await Promise.all(published)
  const stored = broker.stored.filter(({ headers }) => headers.device === name)
  assert.equal(stored.length, 41)
})

test('what the edge refuses for good rejects that publish, and the session goes on', async (context) => {
  const device = deviceOf(context, 'dev-24', 'quic')
  const alias = device.alias('sensors/climate', 'numbers', ALIAS_OPTIONS)
  await assert.rejects(device.publish(alias, [1, 2, 3]), { code: 'EDGE_READING_INVALID' })
  assert.equal((await device.publish(alias, 7)).sequence, 2)
})

test('a series of which one reading is refused is not promised, and the others are kept', async (context) => {
  const name = 'dev-28'
  const device = deviceOf(context, name, 'quic')
  const alias = device.alias('sensors/climate', 'numbers', ALIAS_OPTIONS)
  await assert.rejects(device.publishSeries(alias, 1000, [1, [2, 2], 3]), { code: 'EDGE_READING_INVALID' })
  assert.equal((await device.publish(alias, 4)).sequence, 4)
  assert.equal(broker.stored.filter(({ headers }) => headers.device === name).length, 3)
})

test('a closed device gives up what waits', async () => {
  const device = new Device({
    name: 'dev-25',
    auth: broker.token,
    dial: () => Promise.reject(new Error('no network')),
  })
  device.start()
  const alias = device.alias('sensors/climate', 'numbers', ALIAS_OPTIONS)
  const waiting = assert.rejects(device.publish(alias, 1), { code: 'EDGE_SHUTTING_DOWN' })
  await device.close()
  await waiting
  await assert.rejects(device.publish(alias, 2), { code: 'EDGE_SHUTTING_DOWN' })
  await assert.rejects(device.subscribe('sensors/climate', 'oldest').next(), { code: 'EDGE_SHUTTING_DOWN' })
})

test('a connection string gives a device that is started', async (context) => {
  const { host, port, certificateHash } = where('any')
  const device = await connect(
    `edge+wt://${'%07'.repeat(32)}@${host}:${port}?device=dev-26&certificate_hash=${certificateHash}`,
  )
  context.after(() => device.close())
  const alias = device.alias('sensors/climate', 'numbers', ALIAS_OPTIONS)
  assert.equal((await device.publish(alias, 1)).promise, 'durable')
  await eventually(() => broker.stored.some(({ headers }) => headers.device === 'dev-26'), 'stored')
})

test('a session that had to take HTTP/2 leaves it once QUIC gets through', async (context) => {
  let isUdpBlocked = true
  const device = new Device({
    name: 'dev-27',
    auth: broker.token,
    dial: (events, signal) => dialWebTransport(where(isUdpBlocked ? 'http2' : 'any'), events, signal),
    probeQuic: (signal) => (isUdpBlocked ? Promise.resolve(false) : probeQuic(where('quic'), signal)),
    probeIntervalMs: 20,
    random: () => 0,
  })
  device.start()
  context.after(() => device.close())
  const alias = device.alias('sensors/climate', 'numbers', ALIAS_OPTIONS)
  await device.publish(alias, 1)
  assert.equal(device.carrier, 'http2')
  isUdpBlocked = false
  await eventually(() => device.carrier === 'quic', 'QUIC is taken')
  await device.publish(alias, 2)
  assert.equal(broker.stored.filter(({ headers }) => headers.device === 'dev-27').length, 2)
})

test('QUIC is probed for a session that had to take the other way', async () => {
  const { signal } = new AbortController()
  assert.equal(await probeQuic(where('quic'), signal), true)
})
