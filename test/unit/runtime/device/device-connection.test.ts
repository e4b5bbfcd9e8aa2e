import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { QuicSession, QuicStream, QuicStreamEvents } from '../../../../src/quic-edge/index.ts'
import { DeviceConnection } from '../../../../src/runtime/device/device-connection.ts'
import {
  DEFAULT_LIMITS,
  decodeFrame,
  EdgeFrameAssembler,
  encodeFrame,
  encodeHead,
  type Frame,
} from '../../../../src/sdk/wire/edge/index.ts'
import { MemoryDeviceBroker } from '../../../support/memory-device-broker.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

const vectors: { frames: { hex: string; datagram?: boolean }[] } = JSON.parse(
  readFileSync(new URL('../../../fixtures/edge/vectors.json', import.meta.url), 'utf8'),
)
const bodies = vectors.frames.map(({ hex, datagram }) => {
  const bytes = Buffer.from(hex, 'hex')
  return datagram ? bytes : bytes.subarray(bytes.byteLength > 25 ? 2 : 1)
})

const CONTROL = 0

test('whatever an authenticated device sends is answered or ends its session; nothing is thrown', async () => {
  const random = new SeededRandom(41)
  let closedCount = 0
  for (let round = 0; round < 60; round++) {
    const bench = await openConnection()
    for (let count = 0; count < 60 && bench.closedWith === undefined; count++) {
      const body = mutated(random, bodies[random.below(bodies.length)] ?? Buffer.alloc(0))
      if (random.chance(0.2)) bench.connection.datagram(body)
      else bench.receive(Buffer.concat([encodeHead(body.byteLength), body]))
      if (random.chance(0.3)) await Promise.resolve()
    }
    if (bench.closedWith !== undefined) closedCount++
  }
  assert.ok(closedCount > 0, 'sixteen wrong frames in a row end a session')
})

test('every byte string of the vectors, one after the other, is taken by one session or another', async () => {
  for (const body of bodies) {
    const bench = await openConnection()
    bench.receive(Buffer.concat([encodeHead(body.byteLength), body]))
    await Promise.resolve()
  }
})

test('credit is given back for what was read, and only for that', async () => {
  const bench = await openConnection()
  const ping = encodeFrame({ type: 'ping', number: 1 })
  const before = bench.grantedBytes
  bench.receive(ping)
  bench.receive(ping.subarray(0, 2))
  assert.equal(bench.grantedBytes - before, ping.byteLength + 2)
})

test('a device that does not read its answers is cut off', async () => {
  const bench = await openConnection()
  bench.isSlow = true
  bench.receive(encodeFrame({ type: 'ping', number: 1 }))
  assert.equal(bench.closedWith, 11)
})

test('a read that ends late brings nothing to the subscription that has its number by then', async () => {
  const bench = await openConnection()
  const { broker } = bench
  const window = { bytes: 1000, messages: 10 }
  const subscribe = (from: 'oldest' | 'new'): Frame => {
    return { type: 'subscribe', subscription: 3, topic: 'commands/all', from, window }
  }
  broker.command('old')
  broker.heldReads = []
  bench.receive(encodeFrame(subscribe('oldest')))
  bench.receive(Buffer.concat([encodeFrame({ type: 'end', subscription: 3 }), encodeFrame(subscribe('new'))]))
  for (const end of broker.heldReads) end()
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  assert.deepEqual(
    bench.sent.map(({ type }) => type).filter((type) => type === 'subscribed' || type === 'message'),
    ['subscribed', 'subscribed'],
  )
})

test('a stream that the device ends is ended by the edge too, once all it brought is read', async () => {
  const { broker, connection, openStream, receive } = newConnection()
  const opened = Promise.withResolvers<void>()
  broker.authenticationGate = opened.promise
  receive(encodeFrame(hello(broker)))
  const streams = [1, 2, 3].map((id) => {
    const stream = openStream(id)
    stream.receive(encodeFrame({ type: 'alias', alias: id, topic: 'sensors/a', kind: 0, options: { lane: id } }))
    stream.receive(encodeFrame({ type: 'publish', alias: id, sequence: 1, time: null, value: Buffer.from('a') }))
    stream.events?.ended()
    assert.ok(!stream.isEnded, 'what it brought waits for the credential')
    return stream
  })
  opened.resolve()
  await known(connection)
  assert.equal(broker.stored.length, 3)
  for (const stream of streams) {
    assert.ok(stream.isEnded)
    stream.events?.closed(null)
  }
  assert.notEqual(openStream(4).events, null, 'there is room again')
})

test('readings of a stream that the device ended are acknowledged on the control stream', async () => {
  const bench = await openConnection()
  bench.broker.settlesAtOnce = false
  const stream = bench.openStream(1)
  stream.receive(encodeFrame({ type: 'publish', alias: 1, sequence: 1, time: null, value: 5 }))
  stream.events?.ended()
  bench.broker.settle()
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  assert.deepEqual(bench.sent.at(-1), { type: 'ack', lane: 1, upTo: 1, promise: 0 })
})

test('a first flight over two streams is taken whichever comes first, its control stream before the other', async () => {
  const bench = newConnection()
  const second = bench.openStream(1)
  const alarm = { type: 'alias' as const, alias: 2, topic: 'sensors/alarms', kind: 0, options: { lane: 0 } }
  const other = Buffer.concat([
    encodeFrame({ type: 'publish', alias: 1, sequence: 1, time: null, value: Buffer.from('live') }),
    encodeFrame(alarm),
    encodeFrame({ type: 'publish', alias: 2, sequence: 1, time: null, value: Buffer.alloc(900) }),
  ])
  for (const byte of other) second.receive(Uint8Array.of(byte))
  const live = { type: 'alias' as const, alias: 1, topic: 'sensors/a', kind: 0 }
  for (const byte of Buffer.concat([encodeFrame(hello(bench.broker)), encodeFrame(live)]))
    bench.receive(Uint8Array.of(byte))
  await known(bench.connection)
  assert.equal(bench.closedWith, undefined)
  assert.equal(bench.broker.stored.length, 2)
  assert.deepEqual(
    bench.sent.map(({ type }) => type),
    ['welcome', 'alias-ok'],
  )
})

test('what comes before hello waits within the bound of a first flight, over all streams', () => {
  const bench = newConnection()
  const alias = encodeFrame({ type: 'alias', alias: 1, topic: 'sensors/a', kind: 0 })
  const streams = [1, 2, 3].map((id) => bench.openStream(id))
  for (const stream of streams) stream.receive(Buffer.alloc(1200, alias))
  assert.equal(bench.closedWith, undefined)
  streams.at(0)?.events?.closed(null)
  bench.receive(Buffer.alloc(1200, alias))
  assert.equal(bench.closedWith, undefined, 'of a stream that is gone nothing waits')
  streams.at(1)?.receive(Buffer.alloc(600, alias))
  assert.equal(bench.closedWith, 11)
})

test('lost framing before hello ends the session at once', () => {
  const bench = newConnection()
  bench.openStream(1).receive(Uint8Array.of(0x83, 0x11))
  assert.equal(bench.closedWith, 2)
})

interface BenchStream {
  readonly events: QuicStreamEvents | null
  /** The edge ended its direction. */
  isEnded: boolean
  receive(bytes: Uint8Array): void
}

interface Bench {
  readonly broker: MemoryDeviceBroker
  /** On the control stream. */
  readonly sent: Frame[]
  readonly connection: DeviceConnection
  closedWith: number | undefined
  grantedBytes: number
  isSlow: boolean
  openStream(id: number): BenchStream
  /** On the control stream. */
  receive(bytes: Uint8Array): void
}

/** With hello and one alias through. */
async function openConnection(): Promise<Bench> {
  const bench = newConnection()
  const options = { fields: [{ name: 'temp', unit: 'Cel', scale: -2 }] }
  const alias = { type: 'alias' as const, alias: 1, topic: 'sensors/a', kind: 3, options }
  bench.receive(Buffer.concat([encodeFrame(hello(bench.broker)), encodeFrame(alias)]))
  await known(bench.connection)
  return bench
}

async function known(connection: DeviceConnection): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  assert.ok(connection.isKnown)
}

function hello(broker: MemoryDeviceBroker): Frame<'hello'> {
  return { type: 'hello', minVersion: 1, maxVersion: 1, name: 'dev-1', auth: broker.token, epoch: 1, lanes: [] }
}

function newConnection(): Bench {
  const broker = new MemoryDeviceBroker()
  const session = { id: 1, path: '/edge', peer: undefined, close() {} } as unknown as QuicSession
  const connection = new DeviceConnection(session, {
    broker,
    limits: DEFAULT_LIMITS,
    moment: () => ({ monotonicMs: 0, wallUs: broker.wallUs, isWallTrusted: true, accuracyMs: 1 }),
    admit: (_connection, name, auth) => broker.authenticate(name, auth),
    lost() {},
    closed(_connection, code) {
      bench.closedWith = code
    },
  })
  const openStream = (id: number): BenchStream => {
    const assembler = new EdgeFrameAssembler(65_535)
    const quicStream: QuicStream = {
      id,
      unsentBytes: 0,
      write: (bytes) => {
        assembler.push(bytes, (frameView) => {
          const frame = decodeFrame(frameView)
          if (frame.type !== 'ignorable' && id === CONTROL) bench.sent.push(frame)
          return true
        })
        return !bench.isSlow
      },
      end() {
        stream.isEnded = true
      },
      reset() {},
      grant(sizeBytes) {
        bench.grantedBytes += sizeBytes
      },
    }
    const events = connection.streamOpened(quicStream)
    const stream: BenchStream = { events, isEnded: false, receive: (bytes) => events?.data(bytes) }
    return stream
  }
  const control = openStream(CONTROL)
  const bench: Bench = {
    broker,
    sent: [],
    connection,
    closedWith: undefined,
    grantedBytes: 0,
    isSlow: false,
    openStream,
    receive: control.receive,
  }
  return bench
}

/** Changes none to three bytes, or cuts the end off. */
function mutated(random: SeededRandom, body: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(body)
  for (let count = random.below(4); count > 0; count--) copy[random.below(copy.length)] = random.below(256)
  return random.chance(0.1) ? copy.subarray(0, random.below(copy.length)) : copy
}
