import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Carried } from '../../../../../src/quic-edge/engine/connection/sent-packets.ts'
import type { QuicStream } from '../../../../../src/quic-edge/engine/connection/stream.ts'
import { STREAM_GAPS_MAX, StreamTable } from '../../../../../src/quic-edge/engine/connection/stream-table.ts'
import { FRAME } from '../../../../../src/quic-edge/engine/wire/frame-type.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { TRANSPORT_PARAMETER_DEFAULTS } from '../../../../../src/quic-edge/engine/wire/transport-parameters.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'
import { readAll, TEST_LIMITS } from '../../../../support/quic/quic-pair.ts'

const NONE = new Uint8Array()

class World {
  readonly announced: QuicStream[] = []
  readonly table: StreamTable
  carried: Carried[] = []

  constructor(limits: Partial<typeof TEST_LIMITS> = {}) {
    this.table = new StreamTable(
      'server',
      { ...TEST_LIMITS, ...limits },
      {
        wake: () => {},
        announce: (stream) => this.announced.push(stream),
      },
    )
    this.table.start({
      ...TRANSPORT_PARAMETER_DEFAULTS,
      maxData: 1000,
      maxStreamDataBidiLocal: 600,
      maxStreamDataBidiRemote: 500,
      maxStreamDataUni: 400,
      maxStreamsBidi: 2,
      maxStreamsUni: 1,
    })
  }

  /** Types of the control frames that are written, by the first byte of each packet's worth. */
  control(): Uint8Array {
    const writer = new Writer(new Uint8Array(1200))
    this.table.writeControlFrames(writer, this.carried)
    return writer.writtenView
  }

  pieces(size = 1200): Uint8Array {
    const writer = new Writer(new Uint8Array(size))
    this.table.writePieces(writer, this.carried)
    return writer.writtenView
  }

  acknowledge(): void {
    for (const carried of this.carried.splice(0)) carried.acknowledged()
    this.table.settle()
  }
}

test('a stream is announced with its first news, in whatever order the peer uses them', () => {
  const { table, announced } = new World()
  table.received(4, 0, Uint8Array.of(1), false)
  assert.deepEqual(
    announced.map(({ id }) => id),
    [4],
  )
  assert.equal(table.count, 2, 'streams before it are open too')
  table.received(0, 5, Uint8Array.of(1), false)
  assert.equal(announced.length, 1, 'bytes beyond a gap are no news')
  table.reset(0, 7, 6)
  assert.deepEqual(
    announced.map(({ id }) => id),
    [4, 0],
  )
})

test('the peer may open as many streams as it was told, and again as many when they are over', () => {
  const world = new World({ maxBidirectionalStreams: 2 })
  const { table, announced } = world
  assert.throws(() => table.received(8, 0, NONE, true), { code: TRANSPORT_ERROR.streamLimitError })
  table.received(4, 0, NONE, true)
  const [stream] = announced
  stream?.end()
  world.pieces()
  world.acknowledge()
  assert.equal(table.count, 1)
  assert.deepEqual([...world.control()], [FRAME.maxStreamsBidi, 3])
  table.received(8, 0, NONE, true)
})

test('frames for streams that do not exist, or that do not go that way, are refused', () => {
  const { table } = new World()
  const refused = { code: TRANSPORT_ERROR.streamStateError }
  assert.throws(() => table.received(1, 0, NONE, false), refused, 'ours, and not opened')
  assert.throws(() => table.raiseStreamLimit(1, 9), refused)
  assert.throws(() => table.received(3, 0, NONE, false), refused, 'one-way of ours')
  assert.throws(() => table.raiseStreamLimit(2, 9), refused, 'one-way of the peer')
  assert.throws(() => table.stopped(2, 9), refused)
  assert.throws(() => table.blocked(3), refused)
})

test('frames for streams that are over are ignored', () => {
  const world = new World()
  world.table.received(0, 0, NONE, true)
  world.announced[0]?.end()
  world.pieces()
  world.acknowledge()
  assert.equal(world.table.count, 0)
  world.table.received(0, 0, NONE, true)
  world.table.stopped(0, 1)
  world.table.raiseStreamLimit(0, 1e6)
  assert.equal(world.table.count, 0)
})

test('streams that are never read accept exactly their window, and all together exactly that of the connection', () => {
  const { table } = new World({ streamWindowBytes: 1000, connectionWindowBytes: 2500 })
  table.received(0, 0, new Uint8Array(1000), false)
  assert.throws(() => table.received(0, 1000, new Uint8Array(1), false), { code: TRANSPORT_ERROR.flowControlError })
  table.received(4, 999, new Uint8Array(1), false)
  table.received(8, 0, new Uint8Array(500), false)
  assert.equal(table.unreadBytes, 2500)
  assert.throws(() => table.received(8, 500, new Uint8Array(1), false), { code: TRANSPORT_ERROR.flowControlError })
  assert.throws(
    () => table.reset(12, 1, 1),
    { code: TRANSPORT_ERROR.flowControlError },
    'a reset counts what it claims',
  )
})

test('credit comes back as it is granted, not as bytes are read', () => {
  const world = new World({ streamWindowBytes: 1000, connectionWindowBytes: 1000 })
  world.table.received(0, 0, new Uint8Array(1000), false)
  const [stream] = world.announced
  assert.equal(stream?.read()?.length, 1000)
  assert.equal(world.control().length, 0)
  stream?.grant(400)
  assert.equal(world.control().length, 0, 'less than half of the window is not worth a frame')
  stream?.grant(100)
  assert.deepEqual([...world.control()], [FRAME.maxData, 0x45, 0xdc, FRAME.maxStreamData, 0, 0x45, 0xdc])
  stream?.grant(1e9)
  assert.equal(world.table.unreadBytes, 0, 'no more than was read')
})

test('what a stream got and nobody granted comes back when it is over', () => {
  for (const end of ['both ends', 'reset', 'stop'] as const) {
    const world = new World()
    world.table.received(0, 0, new Uint8Array(1000), end === 'both ends')
    const [stream] = world.announced
    assert.ok(stream)
    if (end === 'both ends') stream.read()
    if (end === 'reset') world.table.reset(0, 1, 3000)
    if (end === 'stop') {
      stream.stopSending(1)
      world.table.received(0, 1000, new Uint8Array(500), true)
    }
    stream.end()
    world.control()
    world.pieces()
    world.acknowledge()
    assert.equal(world.table.unreadBytes, 0, end)
    assert.equal(world.table.count, 0, end)
    stream.grant(1000)
    assert.equal(world.table.unreadBytes, 0, end)
  }
})

test('gaps of all streams together are bounded', () => {
  const { table } = new World()
  const leaveGaps = () => {
    for (let index = 0; index < STREAM_GAPS_MAX + 1; index++) {
      table.received(4 * (index % 50), 1 + 2 * Math.floor(index / 50), Uint8Array.of(1), false)
    }
  }
  assert.throws(leaveGaps, { code: TRANSPORT_ERROR.internalError })
})

test('we keep to the limits of the peer for each stream and for all', () => {
  const { table, pieces } = ((world) => ({ table: world.table, pieces: () => world.pieces().length }))(new World())
  const stream = table.open('bidirectional')
  const other = table.open('bidirectional')
  assert.equal(table.open('bidirectional'), null)
  assert.equal(table.raiseOwnLimit('bidirectional', 2), false)
  assert.equal(table.raiseOwnLimit('bidirectional', 3), true)
  assert.notEqual(table.open('bidirectional'), null)
  stream?.write(new Uint8Array(800))
  assert.ok(pieces() > 500)
  assert.equal(table.hasPieces(), false, '500 on this stream')
  other?.write(new Uint8Array(800))
  pieces()
  table.raiseStreamLimit(1, 800)
  assert.equal(table.hasPieces(), false, '1000 on all')
  table.raiseConnectionLimit(1300)
  assert.equal(table.hasPieces(), true)
  pieces()
  assert.equal(table.hasPieces(), false)
})

test('streams take turns', () => {
  const world = new World()
  const streams = [world.table.open('bidirectional'), world.table.open('bidirectional')]
  for (const stream of streams) stream?.write(new Uint8Array(300))
  const ids = [1, 2, 3, 4].map(() => world.pieces(100)[1])
  assert.deepEqual(ids, [1, 5, 1, 5])
})

test('a writer is told to wait above the high-water mark, and to go on below half of it', () => {
  const world = new World({ sendHighWaterBytes: 300 })
  const stream = world.table.open('bidirectional')
  assert.ok(stream)
  let drains = 0
  stream.onDrain = () => drains++
  assert.equal(stream.write(new Uint8Array(200)), true)
  assert.equal(stream.write(new Uint8Array(100)), false)
  world.pieces(120)
  world.acknowledge()
  assert.equal(drains, 0)
  world.pieces(120)
  world.acknowledge()
  assert.equal(drains, 1)
  assert.equal(stream.bufferedBytes < 150, true)
})

test('a peer that asks us to stop gets a reset with what was sent, and the user is told', () => {
  const world = new World()
  world.table.received(0, 0, Uint8Array.of(1), false)
  const [stream] = world.announced
  assert.ok(stream)
  let stopped = -1
  stream.onStop = (code) => {
    stopped = code
  }
  stream.write(new Uint8Array(10))
  world.pieces()
  stream.write(new Uint8Array(10))
  world.table.stopped(0, 9)
  world.table.stopped(0, 9)
  assert.equal(stopped, 9)
  assert.deepEqual([...world.control()], [FRAME.resetStream, 0, 9, 10])
  assert.equal(world.table.hasPieces(), false)
  assert.equal(stream.write(new Uint8Array(1)), false)
})

test('a reset that comes when everything arrived changes nothing; one that contradicts the end is refused', () => {
  const { table, announced } = new World()
  table.received(0, 0, Uint8Array.of(1, 2), true)
  const [stream] = announced
  assert.ok(stream)
  stream.onReset = () => assert.fail('the bytes are there')
  table.reset(0, 7, 2)
  assert.deepEqual(readAll(stream), Uint8Array.of(1, 2))
  assert.ok(stream.isEnded)
  assert.throws(() => table.reset(0, 7, 3), { code: TRANSPORT_ERROR.finalSizeError })
})

test('control frames that are lost are sent again while they matter', () => {
  const world = new World({ streamWindowBytes: 100, connectionWindowBytes: 100, maxBidirectionalStreams: 1 })
  world.table.received(0, 0, new Uint8Array(60), false)
  const [stream] = world.announced
  assert.ok(stream)
  stream.read()
  stream.grant(60)
  stream.write(new Uint8Array(5))
  stream.reset(3)
  const first = [...world.control()]
  for (const carried of world.carried.splice(0)) carried.lost()
  assert.deepEqual([...world.control()], first)
  stream.stopSending(4)
  assert.deepEqual([...world.control()], [FRAME.stopSending, 0, 4])
  for (const carried of world.carried.splice(0)) carried.lost()
  const again = [...world.control()]
  assert.ok(
    again.includes(FRAME.stopSending) && !again.includes(FRAME.maxStreamData),
    'a stopped stream needs no credit',
  )
})

test('an end is told once the last bytes were read, and the stream is over only after the call', () => {
  const world = new World()
  const events: string[] = []
  world.table.received(0, 0, Uint8Array.of(1), true)
  const [stream] = world.announced
  assert.ok(stream)
  stream.onDone = () => events.push('done')
  stream.end()
  world.pieces()
  for (const carried of world.carried.splice(0)) carried.acknowledged()
  world.table.settle()
  assert.equal(events.length, 0, 'the byte was not read')
  readAll(stream)
  events.push('read')
  world.table.settle()
  assert.deepEqual(events, ['read', 'done'])
})

test('when the connection is over, its streams are silent', () => {
  const world = new World()
  world.table.received(0, 0, Uint8Array.of(1), false)
  const [stream] = world.announced
  assert.ok(stream)
  stream.onDone = () => assert.fail('no event after the end')
  world.table.clear()
  assert.equal(stream.onDone, null)
  assert.equal(world.table.count, 0)
})
