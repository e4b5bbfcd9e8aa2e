import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { EdgeError } from '../../../../../src/errors.ts'
import type { Effect } from '../../../../../src/runtime/device/core/exchange.ts'
import { decodeFrame, encodeBareFrame, type Frame, MAX_SEQUENCE } from '../../../../../src/sdk/wire/edge/index.ts'
import {
  alias,
  appends,
  closeCode,
  framesOf,
  nackOf,
  SessionBench,
  series,
  TARGET,
} from '../../../../support/device-session-bench.ts'

let bench: SessionBench
beforeEach(() => {
  bench = new SessionBench()
})

test('readings are acknowledged once they are settled, with offsets where the alias asked for them', () => {
  bench.openWithAlias()
  assert.deepEqual(framesOf(bench.publish(1)), [])
  bench.publish(2)
  assert.deepEqual(framesOf(bench.settleAll()), [
    {
      type: 'ack',
      lane: 1,
      upTo: 2,
      promise: 0,
      runs: [{ alias: 1, partition: 3, offset: 100n, firstSequence: 1, count: 2 }],
    },
  ])
})

test('a resend of what is held is acknowledged and not stored', () => {
  bench.open([{ lane: 1, have: 9 }])
  bench.frame(alias)
  const effects = bench.frame(series(5, [1, 2, 3, 4, 5]))
  assert.equal(appends(effects).length, 0)
  assert.deepEqual(framesOf(effects), [{ type: 'ack', lane: 1, upTo: 9, promise: 0 }])
})

test('what is written and not synced is never called durable, however often it is asked for', () => {
  const promises = (effects: readonly Effect[]) =>
    framesOf(effects).map((frame) => frame.type === 'ack' && [frame.upTo, frame.promise])
  bench.target = { ...TARGET, promise: 'buffered' }
  bench.openWithAlias()
  bench.publish(1)
  assert.deepEqual(promises(bench.settleAll()), [[1, 1]])
  bench.target = TARGET
  bench.frame(alias)
  bench.publish(2)
  assert.deepEqual(promises(bench.settleAll()), [[2, 0]])
  assert.deepEqual(promises(bench.publish(1)), [[2, 1]])
  assert.deepEqual(promises(bench.publish(2)), [[2, 0]])
  bench = new SessionBench()
  const [welcome] = framesOf(bench.open([{ lane: 1, have: 9, durable: 4 }]))
  assert.deepEqual(welcome?.type === 'welcome' && welcome.durable, [{ lane: 1, sequence: 4 }])
  bench.frame(alias)
  assert.deepEqual(promises(bench.publish(9)), [[9, 1]])
})

test('of a resend that reaches further only the new part is stored', () => {
  bench.open([{ lane: 1, have: 3 }])
  bench.frame(alias)
  const [append] = appends(bench.frame(series(2, [1, 2, 3, 4])))
  assert.deepEqual(append?.tag, { epoch: 77, lane: 1, firstSequence: 4, sequenceCount: 2 })
})

test('a gap is refused and holds the lane until it is filled', () => {
  bench.openWithAlias()
  assert.deepEqual(nackOf(bench.publish(3)), { first: 1, count: 1, code: 10, retryMs: 0 })
  assert.deepEqual(bench.publish(4), [], 'beyond the hold it is read over')
  assert.equal(appends(bench.frame(series(1, [1, 2, 3, 4]))).length, 1)
})

test('a skip makes a gap on purpose, is counted and recorded', () => {
  bench.openWithAlias()
  const effects = bench.frame({ type: 'skip', lane: 1, first: 1, count: 25, why: 0 })
  assert.deepEqual(
    effects.map((effect) => effect.type),
    ['record', 'lost'],
  )
  assert.equal(appends(bench.publish(26)).length, 1)
  assert.deepEqual(
    framesOf(bench.settleAll()).map((frame) => frame.type === 'ack' && frame.upTo),
    [26],
  )
})

test('of a batch with one bad reading only that one is lost, and the device is told when it is on record', () => {
  bench.open()
  bench.frame({ ...alias, kind: 0, options: { contentType: 'text/plain' } })
  const values = [new Uint8Array(3), new Uint8Array(500), new Uint8Array(4)]
  const effects = bench.frame({ type: 'series', alias: 1, sequence: 1, time: 0, intervalMs: 10, values })
  assert.deepEqual(
    appends(effects).map(({ tag }) => tag?.firstSequence),
    [1, 3],
  )
  const [refused, ack] = framesOf(bench.settleAll())
  assert.ok(refused?.type === 'nack' && refused.retryMs === null && refused.first === 2 && refused.code === 9)
  assert.ok(ack?.type === 'ack' && ack.upTo === 3)
})

test('an append the log has no room for is taken back, and the lane is held', () => {
  bench.openWithAlias()
  bench.refuseNext = new EdgeError('EDGE_BACKPRESSURE', 'queue full')
  assert.deepEqual(nackOf(bench.publish(1)), { first: 1, count: 1, code: 11, retryMs: 250 })
  assert.deepEqual(bench.publish(2), [])
  assert.equal(appends(bench.publish(1)).length, 1)
})

test('what a full topic gave up is told to the device, counted, and takes no offset of another reading', () => {
  bench.openWithAlias()
  bench.isFull = true
  const lost = bench.frame(series(1, [1, 2])).filter(({ type }) => type === 'lost')
  assert.deepEqual(lost, [{ type: 'lost', reason: 'topic-full', lane: 1, first: 1, count: 2 }])
  bench.isFull = false
  bench.publish(3)
  const [refusal, ack, ...others] = framesOf(bench.settleAll())
  const text = 'the topic is full and drops what comes'
  assert.deepEqual(refusal, { type: 'nack', lane: 1, first: 1, count: 2, code: 13, retryMs: null, text })
  const runs = [{ alias: 1, partition: 3, offset: 100n, firstSequence: 3, count: 1 }]
  assert.deepEqual([ack, ...others], [{ type: 'ack', lane: 1, upTo: 3, promise: 0, runs }])
})

test('a write that fails takes back everything behind it', () => {
  bench.openWithAlias()
  bench.publish(1)
  bench.publish(2)
  const effects = bench.settleAll(new EdgeError('EDGE_APPEND_FAILED', 'disk'))
  assert.deepEqual(nackOf(effects), { first: 1, count: 1, code: 14, retryMs: 5000 })
  assert.deepEqual(bench.publish(3), [])
  assert.equal(appends(bench.frame(series(1, [1, 2, 3]))).length, 1)
})

test('a write behind a failed one that was kept nevertheless ends the session', () => {
  bench.openWithAlias()
  bench.publish(1)
  bench.publish(2)
  const [first = 0, second = 0] = bench.tickets
  bench.step({ type: 'settled', results: [{ ticket: first, error: new EdgeError('EDGE_APPEND_FAILED', 'disk') }] })
  assert.equal(closeCode(bench.step({ type: 'settled', results: [{ ticket: second, error: null }] })), 23)
})

test('readings under an alias that cannot be are refused for good, and the lane goes on', () => {
  bench = new SessionBench({ aliases: 1 })
  bench.openWithAlias()
  const { options: _, ...withoutFields } = alias
  bench.frame({ ...withoutFields, alias: 2 })
  bench.frame({ ...alias, alias: 3 })
  const codesOf = (frames: readonly Frame[]) =>
    frames.flatMap((frame) => (frame.type === 'nack' ? [[frame.first, frame.code, frame.retryMs]] : []))
  for (const [sequence, id] of [
    [1, 2],
    [2, 3],
  ] as const)
    bench.frame({ type: 'publish', alias: id, sequence, time: 1, value: 7 })
  bench.publish(3)
  const frames = framesOf(bench.settleAll())
  assert.deepEqual(codesOf(frames), [
    [1, 15, null],
    [2, 15, null],
  ])
  const last = frames.at(-1)
  assert.ok(last?.type === 'ack' && last.upTo === 3)
  bench = new SessionBench()
  bench.open()
  bench.frame(withoutFields)
  bench.publish(1)
  assert.deepEqual(codesOf(framesOf(bench.settleAll())), [[1, 8, null]])
})

test('readings under a refused alias are consumed when the refusal is final', () => {
  bench.open()
  const effects = bench.frame({ ...alias, topic: 'no/topic' })
  assert.deepEqual(
    framesOf(effects).map((frame) => frame.type === 'error' && frame.code),
    [6],
  )
  bench.publish(1)
  const [refused] = framesOf(bench.settleAll())
  assert.ok(refused?.type === 'nack' && refused.code === 6 && refused.retryMs === null)
})

test('an alias that was not declared and a lane on a second stream are wrong values', () => {
  bench.open()
  assert.deepEqual(
    framesOf(bench.publish(1)).map((frame) => frame.type === 'error' && [frame.code, frame.ref]),
    [[8, 1]],
  )
  bench.frame(alias)
  bench.publish(1)
  const effects = bench.frame({ type: 'publish', alias: 1, sequence: 2, time: 0, value: 1 }, 4)
  assert.deepEqual(
    framesOf(effects).map((frame) => frame.type === 'error' && frame.code),
    [8],
  )
  bench.step({ type: 'stream-ended', stream: 4 })
})

test('numbers that were given up take no room in the window, however many', () => {
  bench.open()
  bench.frame(alias)
  bench.frame({ type: 'skip', lane: 1, first: 1, count: 5000, why: 0 })
  assert.equal(closeCode(bench.publish(5001)), undefined)
  assert.deepEqual(
    framesOf(bench.settleAll()).map((frame) => frame.type === 'ack' && frame.upTo),
    [5001],
  )
})

test('more unacknowledged than the window allows ends the session', () => {
  bench.openWithAlias()
  for (let sequence = 1; sequence <= 1024; sequence++) assert.equal(closeCode(bench.publish(sequence)), undefined)
  assert.equal(closeCode(bench.publish(1025)), 11)
})

test('over the rate the lane is held for as long as it takes', () => {
  bench = new SessionBench({ readingsPerSecond: 10 })
  bench.openWithAlias()
  bench.frame(
    series(
      1,
      Array.from({ length: 20 }, (_, at) => at),
    ),
  )
  bench.settleAll()
  assert.deepEqual(nackOf(bench.publish(21)), { first: 21, count: 1, code: 12, retryMs: 100 })
  bench.nowMs += 100
  assert.equal(appends(bench.publish(21)).length, 1)
})

test('refused readings and skips are held to the rate too: each is a record in the log', () => {
  const nacked = (effects: readonly Effect[]) => nackOf(effects)?.code
  bench = new SessionBench({ readingsPerSecond: 10 })
  bench.open()
  bench.frame({ ...alias, topic: 'no/topic' })
  for (let sequence = 1; sequence <= 20; sequence++) assert.equal(nacked(bench.publish(sequence)), undefined)
  assert.deepEqual(nackOf(bench.publish(21)), { first: 21, count: 1, code: 12, retryMs: 100 })
  bench.nowMs += 2000
  const skip = (first: number, count = 1) => bench.frame({ type: 'skip', lane: 1, first, count, why: 0 })
  assert.equal(nacked(skip(21, 5000)), undefined, 'a skip costs as much as one reading')
  for (let first = 5021; first < 5040; first++) assert.equal(nacked(skip(first)), undefined)
  assert.deepEqual(nackOf(skip(5040, 3)), { first: 5040, count: 3, code: 12, retryMs: 100 })
  assert.deepEqual(bench.publish(5043), [], 'the lane is held')
  bench.nowMs += 100
  assert.equal(nacked(skip(5040, 3)), undefined)
})

test('a lane ends one below the largest number that a frame can carry', () => {
  const codesOf = (effects: readonly Effect[]) =>
    framesOf(effects).map((frame) => frame.type === 'error' && [frame.code, frame.of])
  bench.openWithAlias()
  bench.frame({ type: 'skip', lane: 1, first: 1, count: MAX_SEQUENCE - 2, why: 0 })
  assert.deepEqual(codesOf(bench.frame({ type: 'skip', lane: 1, first: MAX_SEQUENCE - 1, count: 3, why: 0 })), [
    [8, 11],
  ])
  assert.deepEqual(codesOf(bench.frame(series(MAX_SEQUENCE - 1, [1, 2, 3]))), [[8, 7]])
  assert.equal(appends(bench.frame(series(MAX_SEQUENCE - 1, [1, 2]))).length, 1)
  const frames = framesOf(bench.settleAll())
  for (const frame of frames) assert.doesNotThrow(() => decodeFrame(encodeBareFrame(frame)))
  const ack = frames.at(-1)
  assert.equal(ack?.type === 'ack' && ack.upTo, MAX_SEQUENCE)
})

test('datagrams that the log refuses are lost and counted, and are not among those taken', () => {
  bench.openWithAlias()
  const datagram = (number: number) =>
    bench.step({ type: 'datagram', frame: { type: 'datagram', alias: 1, number, time: 0, value: 1 } })
  datagram(1)
  bench.refuseNext = new EdgeError('EDGE_TOPIC_FULL', 'full')
  assert.deepEqual(
    datagram(2).filter(({ type }) => type === 'lost'),
    [{ type: 'lost', reason: 'datagram-dropped', lane: 1, first: 2, count: 1 }],
  )
  bench.isFull = true
  assert.deepEqual(
    datagram(3).filter(({ type }) => type === 'lost'),
    [{ type: 'lost', reason: 'topic-full', lane: 1, first: 3, count: 1 }],
  )
  bench.isFull = false
  datagram(4)
  bench.nowMs += 10_000
  const [report] = framesOf(bench.step({ type: 'tick' }))
  assert.deepEqual(report, { type: 'datagram-report', alias: 1, taken: 2, highest: 4, missing: 2 })
})

test('datagrams are stored once, and a report tells what is missing', () => {
  bench.openWithAlias()
  const datagram = (number: number) =>
    appends(bench.step({ type: 'datagram', frame: { type: 'datagram', alias: 1, number, time: 0, value: 1 } })).length
  assert.deepEqual([1, 3, 3, 2, 70, 5].map(datagram), [1, 1, 0, 1, 1, 0])
  bench.nowMs += 10_000
  const [report] = framesOf(bench.step({ type: 'tick' }))
  assert.deepEqual(report, { type: 'datagram-report', alias: 1, taken: 4, highest: 70, missing: 66 })
  bench.nowMs += 10_000
  assert.deepEqual(framesOf(bench.step({ type: 'tick' })), [])
})

test('an alias that is declared again stands at once, and what came before keeps what it stood for', () => {
  bench.openWithAlias()
  bench.publish(1)
  const effects = bench.frame({ ...alias, topic: 'sensors/alarms', options: { ...alias.options, lane: 2 } })
  assert.deepEqual(
    effects.map((effect) => (effect.type === 'send' ? effect.frame.type : effect.type)),
    ['resolve', 'alias-ok'],
  )
  const [append] = appends(bench.publish(1))
  assert.equal(append?.tag?.lane, 2)
  assert.deepEqual(
    framesOf(bench.settleAll()).map((frame) => frame.type === 'ack' && [frame.lane, frame.runs?.[0]?.offset]),
    [
      [1, 100n],
      [2, 101n],
    ],
  )
})

test('datagrams of an alias that is declared again go on counting', () => {
  bench.openWithAlias()
  const datagram = (number: number) =>
    bench.step({ type: 'datagram', frame: { type: 'datagram', alias: 1, number, time: 0, value: 1 } })
  datagram(1)
  datagram(2)
  bench.frame(alias)
  datagram(2)
  datagram(3)
  bench.nowMs += 10_000
  const [report] = framesOf(bench.step({ type: 'tick' }))
  assert.deepEqual(report, { type: 'datagram-report', alias: 1, taken: 3, highest: 3, missing: 0 })
})
