import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { EdgeError } from '../../../../../src/errors.ts'
import { DeviceSession } from '../../../../../src/runtime/device/core/device-session.ts'
import type { Effect, Input, Moment, TargetFacts } from '../../../../../src/runtime/device/core/exchange.ts'
import { DEFAULT_LIMITS, type EdgeLimits, type Frame } from '../../../../../src/sdk/wire/edge/index.ts'

const WALL_US = 1_764_439_200_000_000n
const TARGET: TargetFacts = { partitionId: 3, promise: 'durable', maxPayloadBytes: 100 }
const hello: Frame<'hello'> = {
  type: 'hello',
  minVersion: 1,
  maxVersion: 1,
  name: 'dev-1',
  auth: new Uint8Array(16),
  epoch: 77,
  lanes: [],
}
const alias: Frame<'alias'> = {
  type: 'alias',
  alias: 1,
  topic: 'sensors/climate',
  kind: 3,
  options: { fields: [{ name: 'temp', unit: 'Cel', scale: -2 }], storedAs: 1, wantsOffsets: true },
}

/** Answers what the shell answers in the same turn; everything else the test says. */
class Bench {
  readonly session: DeviceSession
  nowMs = 0
  offset = 100n
  refuseNext: EdgeError | undefined
  /** A full topic that drops the newest. */
  isFull = false
  tickets: number[] = []
  target = TARGET

  constructor(limits: Partial<EdgeLimits> = {}) {
    this.session = new DeviceSession({ startedMs: 0, limits: { ...DEFAULT_LIMITS, ...limits } })
  }

  step(input: Input): Effect[] {
    const all: Effect[] = []
    const left = this.session.step(input, this.moment())
    for (let effect = left.shift(); effect !== undefined; effect = left.shift()) {
      all.push(effect)
      const answer = this.#answer(effect)
      if (answer !== undefined) left.unshift(...this.session.step(answer, this.moment()))
    }
    return all
  }

  frame(frame: Frame, stream = 0, sizeBytes = 20): Effect[] {
    return this.step({ type: 'frame', stream, frame, sizeBytes })
  }

  /** `durable`: all that it has when not said. */
  open(given: { lane: number; have: number; durable?: number }[] = [], first: Frame = hello): Effect[] {
    this.frame(first)
    const lanes = given.map((one) => ({ durable: one.have, ...one }))
    return this.step({ type: 'authenticated', welcome: { session: 9, mayReadAllKeys: false, lanes } })
  }

  settleAll(error: EdgeError | null = null): Effect[] {
    return this.step({ type: 'settled', results: this.tickets.splice(0).map((ticket) => ({ ticket, error })) })
  }

  moment(): Moment {
    return { monotonicMs: this.nowMs, wallUs: WALL_US, isWallTrusted: true, accuracyMs: 40 }
  }

  #answer(effect: Effect): Input | undefined {
    if (effect.type === 'resolve') {
      if (effect.topic === 'no/topic') {
        return {
          type: 'resolve-failed',
          alias: effect.alias,
          error: new EdgeError('EDGE_FORBIDDEN', 'publish no/topic'),
        }
      }
      return { type: 'resolved', alias: effect.alias, target: this.target }
    }
    if (effect.type === 'record') this.tickets.push(effect.ticket)
    if (effect.type !== 'append') return undefined
    const error = this.refuseNext
    this.refuseNext = undefined
    if (error !== undefined) return { type: 'append-refused', ticket: effect.ticket, error }
    if (effect.tag !== null) this.tickets.push(effect.ticket)
    if (this.isFull) return { type: 'appended', ticket: effect.ticket, offset: null }
    const offset = this.offset
    this.offset += BigInt(effect.batch.count)
    return { type: 'appended', ticket: effect.ticket, offset }
  }
}

let bench: Bench
beforeEach(() => {
  bench = new Bench()
})

test('a session opens with hello and welcome, and tells the time', () => {
  const effects = bench.open([{ lane: 1, have: 9 }])
  assert.deepEqual(framesOf(effects), [
    {
      type: 'welcome',
      version: 1,
      session: 9,
      lanes: [{ lane: 1, sequence: 9 }],
      limits: {},
      time: { seconds: 1764439200, milliseconds: 0, accuracyMs: 40 },
      durable: [{ lane: 1, sequence: 9 }],
    },
  ])
})

test('anything before hello ends the session', () => {
  assert.equal(closeCode(bench.frame(alias)), 2)
})

test('without a common version the session ends with code 1 and the range', () => {
  const effects = bench.frame({ ...hello, minVersion: 2, maxVersion: 9 })
  assert.deepEqual(
    framesOf(effects).map((frame) => frame.type === 'error' && frame.text),
    ['1..1'],
  )
  assert.equal(closeCode(effects), 1)
})

test('a refused credential ends the session with code 5 and no reason', () => {
  bench.frame(hello)
  const error = new EdgeError('EDGE_TOKEN_EXPIRED', 'expired yesterday')
  const effects = bench.step({ type: 'authentication-failed', error })
  assert.equal(closeCode(effects), 5)
  assert.ok(!JSON.stringify(framesOf(effects)).includes('yesterday'))
})

test('readings are acknowledged once they are settled, with offsets where the alias asked for them', () => {
  openWithAlias()
  assert.deepEqual(framesOf(publish(1)), [])
  publish(2)
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
  openWithAlias()
  publish(1)
  assert.deepEqual(promises(bench.settleAll()), [[1, 1]])
  bench.target = TARGET
  bench.frame(alias)
  publish(2)
  assert.deepEqual(promises(bench.settleAll()), [[2, 0]])
  assert.deepEqual(promises(publish(1)), [[2, 1]])
  assert.deepEqual(promises(publish(2)), [[2, 0]])
  bench = new Bench()
  const [welcome] = framesOf(bench.open([{ lane: 1, have: 9, durable: 4 }]))
  assert.deepEqual(welcome?.type === 'welcome' && welcome.durable, [{ lane: 1, sequence: 4 }])
  bench.frame(alias)
  assert.deepEqual(promises(publish(9)), [[9, 1]])
})

test('of a resend that reaches further only the new part is stored', () => {
  bench.open([{ lane: 1, have: 3 }])
  bench.frame(alias)
  const [append] = appends(bench.frame(series(2, [1, 2, 3, 4])))
  assert.deepEqual(append?.tag, { epoch: 77, lane: 1, firstSequence: 4, sequenceCount: 2 })
})

test('a gap is refused and holds the lane until it is filled', () => {
  openWithAlias()
  assert.deepEqual(nackOf(publish(3)), { first: 1, count: 1, code: 10, retryMs: 0 })
  assert.deepEqual(publish(4), [], 'beyond the hold it is read over')
  assert.equal(appends(bench.frame(series(1, [1, 2, 3, 4]))).length, 1)
})

test('a skip makes a gap on purpose, is counted and recorded', () => {
  openWithAlias()
  const effects = bench.frame({ type: 'skip', lane: 1, first: 1, count: 25, why: 0 })
  assert.deepEqual(
    effects.map((effect) => effect.type),
    ['record', 'lost'],
  )
  assert.equal(appends(publish(26)).length, 1)
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
  openWithAlias()
  bench.refuseNext = new EdgeError('EDGE_BACKPRESSURE', 'queue full')
  assert.deepEqual(nackOf(publish(1)), { first: 1, count: 1, code: 11, retryMs: 250 })
  assert.deepEqual(publish(2), [])
  assert.equal(appends(publish(1)).length, 1)
})

test('what a full topic gave up is told to the device, counted, and takes no offset of another reading', () => {
  openWithAlias()
  bench.isFull = true
  const lost = bench.frame(series(1, [1, 2])).filter(({ type }) => type === 'lost')
  assert.deepEqual(lost, [{ type: 'lost', reason: 'topic-full', lane: 1, first: 1, count: 2 }])
  bench.isFull = false
  publish(3)
  const [refusal, ack, ...others] = framesOf(bench.settleAll())
  const text = 'the topic is full and drops what comes'
  assert.deepEqual(refusal, { type: 'nack', lane: 1, first: 1, count: 2, code: 13, retryMs: null, text })
  const runs = [{ alias: 1, partition: 3, offset: 100n, firstSequence: 3, count: 1 }]
  assert.deepEqual([ack, ...others], [{ type: 'ack', lane: 1, upTo: 3, promise: 0, runs }])
})

test('a write that fails takes back everything behind it', () => {
  openWithAlias()
  publish(1)
  publish(2)
  const effects = bench.settleAll(new EdgeError('EDGE_APPEND_FAILED', 'disk'))
  assert.deepEqual(nackOf(effects), { first: 1, count: 1, code: 14, retryMs: 5000 })
  assert.deepEqual(publish(3), [])
  assert.equal(appends(bench.frame(series(1, [1, 2, 3]))).length, 1)
})

test('a write behind a failed one that was kept nevertheless ends the session', () => {
  openWithAlias()
  publish(1)
  publish(2)
  const [first = 0, second = 0] = bench.tickets
  bench.step({ type: 'settled', results: [{ ticket: first, error: new EdgeError('EDGE_APPEND_FAILED', 'disk') }] })
  assert.equal(closeCode(bench.step({ type: 'settled', results: [{ ticket: second, error: null }] })), 23)
})

test('readings under an alias that cannot be are refused for good, and the lane goes on', () => {
  bench = new Bench({ aliases: 1 })
  openWithAlias()
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
  publish(3)
  const frames = framesOf(bench.settleAll())
  assert.deepEqual(codesOf(frames), [
    [1, 15, null],
    [2, 15, null],
  ])
  const last = frames.at(-1)
  assert.ok(last?.type === 'ack' && last.upTo === 3)
  bench = new Bench()
  bench.open()
  bench.frame(withoutFields)
  publish(1)
  assert.deepEqual(codesOf(framesOf(bench.settleAll())), [[1, 8, null]])
})

test('readings under a refused alias are consumed when the refusal is final', () => {
  bench.open()
  const effects = bench.frame({ ...alias, topic: 'no/topic' })
  assert.deepEqual(
    framesOf(effects).map((frame) => frame.type === 'error' && frame.code),
    [6],
  )
  publish(1)
  const [refused] = framesOf(bench.settleAll())
  assert.ok(refused?.type === 'nack' && refused.code === 6 && refused.retryMs === null)
})

test('an alias that was not declared and a lane on a second stream are wrong values', () => {
  bench.open()
  assert.deepEqual(
    framesOf(publish(1)).map((frame) => frame.type === 'error' && [frame.code, frame.ref]),
    [[8, 1]],
  )
  bench.frame(alias)
  publish(1)
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
  assert.equal(closeCode(publish(5001)), undefined)
  assert.deepEqual(
    framesOf(bench.settleAll()).map((frame) => frame.type === 'ack' && frame.upTo),
    [5001],
  )
})

test('more unacknowledged than the window allows ends the session', () => {
  openWithAlias()
  for (let sequence = 1; sequence <= 1024; sequence++) assert.equal(closeCode(publish(sequence)), undefined)
  assert.equal(closeCode(publish(1025)), 11)
})

test('over the rate the lane is held for as long as it takes', () => {
  bench = new Bench({ readingsPerSecond: 10 })
  openWithAlias()
  bench.frame(
    series(
      1,
      Array.from({ length: 20 }, (_, at) => at),
    ),
  )
  bench.settleAll()
  assert.deepEqual(nackOf(publish(21)), { first: 21, count: 1, code: 12, retryMs: 100 })
  bench.nowMs += 100
  assert.equal(appends(publish(21)).length, 1)
})

test('datagrams are stored once, and a report tells what is missing', () => {
  openWithAlias()
  const datagram = (number: number) =>
    appends(bench.step({ type: 'datagram', frame: { type: 'datagram', alias: 1, number, time: 0, value: 1 } })).length
  assert.deepEqual([1, 3, 3, 2, 70, 5].map(datagram), [1, 1, 0, 1, 1, 0])
  bench.nowMs += 10_000
  const [report] = framesOf(bench.step({ type: 'tick' }))
  assert.deepEqual(report, { type: 'datagram-report', alias: 1, taken: 4, highest: 70, missing: 66 })
  bench.nowMs += 10_000
  assert.deepEqual(framesOf(bench.step({ type: 'tick' })), [])
})

test('ping is answered with the time, and moves the stamps of readings', () => {
  openWithAlias()
  const [pong] = framesOf(bench.frame({ type: 'ping', number: 3, uptimeMs: 1000 }))
  assert.ok(pong?.type === 'pong' && pong.number === 3)
  const [append] = appends(bench.frame({ type: 'publish', alias: 1, sequence: 1, time: 1500, value: 2157 }))
  assert.equal(append?.batch.baseOriginUs, WALL_US + 500_000n)
})

test('silence ends the session: before hello with 20, after it with 19', () => {
  bench.nowMs = 5000
  assert.equal(closeCode(bench.step({ type: 'tick' })), 20)
  bench = new Bench()
  bench.open()
  bench.nowMs = 30_000
  assert.equal(closeCode(bench.step({ type: 'tick' })), 19)
})

test('sixteen wrong frames in a row end the session, fifteen do not', () => {
  bench.open()
  const wrong: Input = {
    type: 'refused',
    stream: 0,
    refusal: { fault: 'frame-invalid', of: 5, ref: null, text: 'wrong' },
  }
  for (let count = 1; count < 16; count++) assert.equal(closeCode(bench.step(wrong)), undefined)
  assert.equal(closeCode(bench.step(wrong)), 2)
})

test('lost framing and oversized frames end the session at once', () => {
  bench.open()
  const fault = { of: 0, ref: null, text: '' }
  assert.equal(
    closeCode(bench.step({ type: 'refused', stream: 0, refusal: { ...fault, fault: 'frame-too-large' } })),
    4,
  )
})

test('bye waits for what is not settled, and so does the end of the edge', () => {
  openWithAlias()
  publish(1)
  assert.equal(closeCode(bench.frame({ type: 'bye', code: 0, pauseMs: 900_000 })), undefined)
  const effects = bench.settleAll()
  assert.equal(framesOf(effects)[0]?.type, 'ack')
  assert.equal(closeCode(effects), 0)
})

test('an end that waits in vain is carried out after five seconds', () => {
  openWithAlias()
  publish(1)
  const effects = bench.step({ type: 'end', code: 18, retryMs: 5000, isDraining: true })
  assert.deepEqual(framesOf(effects), [{ type: 'bye', code: 18, pauseMs: 5000 }])
  bench.nowMs = 5000
  assert.equal(closeCode(bench.step({ type: 'tick' })), 18)
})

test('what comes in a later version or stage is refused by name, not ignored', () => {
  const effects = bench.open([], { ...hello, options: { will: { topic: 'a/b', body: new Uint8Array() } } })
  assert.deepEqual(
    framesOf(effects).map((frame) => (frame.type === 'error' ? frame.text : frame.type)),
    ['welcome', 'wills are not available'],
  )
  const refused = bench.frame({
    type: 'subscribe',
    subscription: 1,
    topic: 'a/b',
    from: 'last-value',
    window: { bytes: 100, messages: 1 },
  })
  assert.deepEqual(
    framesOf(refused).map((frame) => frame.type === 'error' && frame.code),
    [3],
  )
})

test('an alias that is declared again stands at once, and what came before keeps what it stood for', () => {
  openWithAlias()
  publish(1)
  const effects = bench.frame({ ...alias, topic: 'sensors/alarms', options: { ...alias.options, lane: 2 } })
  assert.deepEqual(
    effects.map((effect) => (effect.type === 'send' ? effect.frame.type : effect.type)),
    ['resolve', 'alias-ok'],
  )
  const [append] = appends(publish(1))
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
  openWithAlias()
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

function openWithAlias(): void {
  bench.open()
  bench.frame(alias)
}

function publish(sequence: number): Effect[] {
  return bench.frame({ type: 'publish', alias: 1, sequence, time: 81_234, value: 2157 })
}

function series(sequence: number, values: number[]): Frame<'series'> {
  return { type: 'series', alias: 1, sequence, time: 0, intervalMs: 1000, values }
}

function framesOf(effects: readonly Effect[]): Frame[] {
  return effects.flatMap((effect) => (effect.type === 'send' ? [effect.frame] : []))
}

function appends(effects: readonly Effect[]) {
  return effects.filter((effect) => effect.type === 'append')
}

function nackOf(effects: readonly Effect[]) {
  const frame = framesOf(effects).find((one) => one.type === 'nack')
  if (frame?.type !== 'nack') return undefined
  const { first, count, code, retryMs } = frame
  return { first, count, code, retryMs }
}

function closeCode(effects: readonly Effect[]): number | undefined {
  const closing = effects.find((effect) => effect.type === 'close')
  return closing?.type === 'close' ? closing.code : undefined
}
