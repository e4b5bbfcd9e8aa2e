import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { type QuicEdge, startQuicEdge } from '../../../../src/quic-edge/index.ts'
import { type DeviceHub, startDeviceHub } from '../../../../src/runtime/device/index.ts'
import type { Frame } from '../../../../src/sdk/wire/edge/index.ts'
import { EdgeDevice } from '../../../support/edge-device.ts'
import { MemoryDeviceBroker } from '../../../support/memory-device-broker.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'device-hub-'))
const broker = new MemoryDeviceBroker()
const devices: EdgeDevice[] = []
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
  for (const device of devices) device.close()
  await hub.close()
  await edge.close()
  rmSync(directory, { recursive: true })
})

const alias: Frame<'alias'> = {
  type: 'alias',
  alias: 1,
  topic: 'sensors/climate',
  kind: 3,
  options: { fields: [{ name: 'temp', unit: 'Cel', scale: -2 }], storedAs: 1 },
}

for (const isReliableOnly of [false, true]) {
  const carrier = isReliableOnly ? 'HTTP/2' : 'QUIC'

  test(`over ${carrier} a device's first flight is answered with welcome, alias-ok and an ack`, async () => {
    const device = await connect(isReliableOnly)
    const name = isReliableOnly ? 'dev-2' : 'dev-1'
    device.send(hello(name), alias, { type: 'publish', alias: 1, sequence: 1, time: null, value: 2157 })
    assert.deepEqual((await device.next('welcome')).lanes, [])
    assert.equal((await device.next('alias-ok')).promise, 0)
    assert.deepEqual(await device.next('ack'), { type: 'ack', lane: 1, upTo: 1, promise: 0 })
    const last = broker.stored.at(-1)
    assert.equal(last?.headers.device, name)
    assert.equal(JSON.parse(last?.payload ?? '')[0].v, 21.57)
  })
}

test('a device that comes again is told what is held, and its resend is not stored twice', async () => {
  const publish: Frame = { type: 'series', alias: 1, sequence: 1, time: 0, intervalMs: 1000, values: [1, 2, 3] }
  const first = await connect()
  first.send(hello('dev-3'), alias, publish)
  await first.next('ack')
  const count = broker.stored.length
  first.close()
  const second = await connect()
  second.send(hello('dev-3'), alias, publish)
  assert.deepEqual((await second.next('welcome')).lanes, [{ lane: 1, sequence: 3 }])
  assert.equal((await second.next('ack')).upTo, 3)
  assert.equal(broker.stored.length, count)
})

test("a newer session of the same device takes over after the older one's writes have settled", async () => {
  const older = await connect()
  older.send(hello('dev-4'), alias)
  await older.next('alias-ok')
  broker.settlesAtOnce = false
  older.send({ type: 'publish', alias: 1, sequence: 1, time: 0, value: 5 })
  const newer = await connect()
  newer.send(hello('dev-4'))
  assert.equal((await older.closed).closeCode, 16)
  assert.equal(newer.frames.length, 0, 'no welcome while a write of the older session is under way')
  broker.settlesAtOnce = true
  broker.settle()
  assert.deepEqual((await newer.next('welcome')).lanes, [{ lane: 1, sequence: 1 }])
})

test('a wrong credential is refused after a second with code 5', async () => {
  const device = await connect()
  const startedMs = performance.now()
  device.send({ ...hello('dev-5'), auth: new Uint8Array(32) })
  assert.equal((await device.closed).closeCode, 5)
  assert.ok(performance.now() - startedMs >= 990)
})

test('garbage ends the session with code 2, an oversized frame with code 4', async () => {
  const garbage = await connect()
  garbage.sendBytes(Buffer.from('8311010a', 'hex'))
  assert.equal((await garbage.closed).closeCode, 2)
  const large = await connect()
  large.sendBytes(Buffer.from('59ffff', 'hex'))
  assert.equal((await large.closed).closeCode, 4)
})

test('what comes before the credential is checked waits unread, and is cut off above the first flight', async () => {
  const gate = Promise.withResolvers<void>()
  broker.authenticationGate = gate.promise
  const patient = await connect()
  patient.send(hello('dev-11'), alias, { type: 'publish', alias: 1, sequence: 1, time: null, value: 1 })
  const greedy = await connect()
  greedy.send(hello('dev-6'))
  greedy.sendBytes(new Uint8Array(8192).fill(0x40))
  assert.equal((await greedy.closed).closeCode, 11)
  assert.deepEqual(patient.frames, [])
  broker.authenticationGate = Promise.resolve()
  gate.resolve()
  assert.equal((await patient.next('ack')).upTo, 1)
})

test('datagrams are stored, and commands come down and are answered', async () => {
  const device = await connect()
  device.send(hello('dev-7'), alias)
  await device.next('alias-ok')
  const count = broker.stored.length
  device.sendDatagram({ type: 'datagram', alias: 1, number: 1, time: null, value: 2200 })
  device.send({
    type: 'subscribe',
    subscription: 1,
    topic: 'commands/all',
    from: 'stored',
    window: { bytes: 2048, messages: 4 },
  })
  assert.equal((await device.next('subscribed')).next, 0n)
  broker.command('not for you', 'dev-8')
  broker.command('open 3', 'dev-7')
  const message = await device.next('message')
  assert.equal(Buffer.from(message.body).toString(), 'open 3')
  device.send({ type: 'result', subscription: 1, offset: message.offset, status: 0 }, { type: 'ping', number: 1 })
  await device.next('pong')
  assert.equal(broker.storedOffset, 1n)
  assert.ok(broker.stored.slice(count).some((one) => one.tag === undefined && one.payload.includes('"v":22')))
})

test('frames that come in one byte at a time are understood', async () => {
  const device = await connect()
  device.send(hello('dev-9'))
  await device.next('welcome')
  for (const byte of Buffer.from('488311031a00015f90', 'hex')) device.sendBytes(Uint8Array.of(byte))
  assert.equal((await device.next('pong')).number, 3)
})

test('the end of the edge is announced, and what is under way is still acknowledged', async () => {
  const device = await connect()
  device.send(hello('dev-10'), alias)
  await device.next('alias-ok')
  broker.settlesAtOnce = false
  device.send({ type: 'publish', alias: 1, sequence: 1, time: 0, value: 5 }, { type: 'ping', number: 1 })
  await device.next('pong')
  const closing = hub.close()
  assert.equal((await device.next('bye')).code, 18)
  broker.settlesAtOnce = true
  broker.settle()
  assert.equal((await device.next('ack')).upTo, 1)
  assert.equal((await device.closed).closeCode, 18)
  await closing
})

function hello(name: string): Frame<'hello'> {
  return {
    type: 'hello',
    minVersion: 1,
    maxVersion: 1,
    name,
    auth: broker.token,
    epoch: 77,
    lanes: [],
    options: { uptimeMs: 1000 },
  }
}

async function connect(isReliableOnly = false): Promise<EdgeDevice> {
  const device = await EdgeDevice.connect({
    port: edge.port,
    certificateSha256: edge.certificate.sha256,
    isReliableOnly,
  })
  devices.push(device)
  return device
}
