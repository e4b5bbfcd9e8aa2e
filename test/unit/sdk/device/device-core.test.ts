import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeviceCore } from '../../../../src/sdk/device/device-core.ts'
import {
  decodeFrame,
  EDGE_CODES,
  EdgeFrameAssembler,
  FRAMES,
  type Frame,
  MAX_FRAME_BYTES,
  MAX_SUBSCRIPTION,
} from '../../../../src/sdk/wire/edge/index.ts'

const IDENTITY = { name: 'dev-1', auth: Uint8Array.of(1, 2, 3), epoch: 7 }

function deviceWith(bounds = { maxReadings: 100, maxBytes: 10_000 }, overflow: 'reject' | 'drop-oldest' = 'reject') {
  const core = new DeviceCore({ identity: IDENTITY, bounds, overflow, maxFrameBytes: 1024 })
  const alias = core.declare('sensors/climate', 'numbers')
  const publish = (value: number): number => {
    return core.publish(alias, 1, (sequence) => ({ type: 'publish', alias, sequence, time: 1, value })).first
  }
  return { core, alias, publish }
}

function sent(core: DeviceCore, nowUs = 0): Frame[] {
  const frames: Frame[] = []
  const assembler = new EdgeFrameAssembler(MAX_FRAME_BYTES)
  for (let bytes = core.take(nowUs); bytes !== null; bytes = core.take(nowUs)) {
    assembler.push(bytes, (frameView) => {
      const frame = decodeFrame(frameView)
      assert.notEqual(frame.type, 'ignorable')
      frames.push(frame as Frame)
      return true
    })
  }
  return frames
}

function welcome(have: number | null, limits: Frame<'welcome'>['limits'] = {}): Frame<'welcome'> {
  const lanes = have === null ? [] : [{ lane: 1, sequence: have }]
  return { type: 'welcome', version: 1, session: 1, lanes, limits, time: null }
}

const sequences = (frames: readonly Frame[]): number[] =>
  frames.flatMap((frame) => (frame.type === 'publish' ? [frame.sequence] : []))

test('hello, aliases and first readings leave in one flight, hello first', () => {
  const { core, publish } = deviceWith()
  publish(1)
  core.opened(0, 500)
  const frames = sent(core)
  assert.deepEqual(
    frames.map(({ type }) => type),
    ['hello', 'alias', 'publish'],
  )
  assert.deepEqual((frames[0] as Frame<'hello'>).options?.uptimeMs, 500)
})

test('before the welcome no more than one flight of 4,096 bytes is sent', () => {
  const { core, publish } = deviceWith({ maxReadings: 1000, maxBytes: 100_000 })
  for (let value = 0; value < 600; value++) publish(value)
  core.opened(0, 0)
  const first = sent(core)
  assert.ok(first.length > 50 && first.length < 600)
  core.received(welcome(null), 1)
  assert.equal(sequences([...first, ...sent(core)]).length, 600)
})

test('what no edge can read takes no number: the readings after it do not wait for it', () => {
  const { core, alias, publish } = deviceWith()
  const series = (intervalMs: number, values: readonly number[]) =>
    core.publish(alias, values.length, (sequence) => {
      return { type: 'series', alias, sequence, time: 1, intervalMs, values }
    })
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => publish(value), { code: 'EDGE_READING_INVALID' })
  assert.throws(() => series(1000, [1, Number.NaN]), { code: 'EDGE_READING_INVALID' })
  assert.throws(() => series(1000, []), { code: 'EDGE_READING_INVALID' })
  assert.throws(() => series(-1, [1]), { code: 'EDGE_READING_INVALID' })
  assert.equal(publish(7), 1)
})

test('what cannot be declared is refused at once: nothing published under it would be taken', () => {
  const { core } = deviceWith()
  const scaled = { fields: [{ name: 'temp', unit: 'Cel', scale: 20 }] }
  assert.throws(() => core.declare('climate', 'numbers'), { code: 'EDGE_READING_INVALID' })
  assert.throws(() => core.declare('sensors/climate', 'numbers', scaled), { code: 'EDGE_READING_INVALID' })
  for (let alias = 1; alias < 32; alias++) assert.equal(core.declare(`sensors/${alias}`, 'bytes'), alias)
  assert.throws(() => core.declare('sensors/32', 'bytes'), { code: 'EDGE_LIMIT_REACHED' })
})

test('a resend has the numbers and bytes of the first time', () => {
  const { core, publish } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null), 0)
  for (let value = 0; value < 5; value++) publish(value)
  const before = sent(core).filter(({ type }) => type === 'publish')
  core.received({ type: 'ack', lane: 1, upTo: 2, promise: 0 }, 1)
  core.closed()
  core.opened(2, 2)
  const after = sent(core)
  assert.deepEqual((after[0] as Frame<'hello'>).lanes, [{ lane: 1, sequence: 2 }])
  assert.deepEqual(
    after.filter(({ type }) => type === 'publish'),
    before.slice(2),
  )
})

test('what the edge holds already is dropped and told as acknowledged', () => {
  const { core, publish } = deviceWith()
  for (let value = 0; value < 5; value++) publish(value)
  core.opened(0, 0)
  const events = core.received(welcome(3), 0)
  assert.ok(events.some((event) => event.type === 'acked' && event.upTo === 3))
  assert.deepEqual(sequences(sent(core)), [4, 5])
  assert.equal(core.pendingReadings, 2)
})

test('what a welcome brings is durable as far as it says, and buffered beyond', () => {
  const ackedOf = (frame: Frame<'welcome'>) => {
    const { core, publish } = deviceWith()
    for (let value = 0; value < 5; value++) publish(value)
    core.opened(0, 0)
    return core.received(frame, 0).flatMap((event) => (event.type === 'acked' ? [[event.upTo, event.promise]] : []))
  }
  assert.deepEqual(ackedOf(welcome(3)), [[3, 'buffered']])
  assert.deepEqual(ackedOf({ ...welcome(3), durable: [{ lane: 1, sequence: 3 }] }), [[3, 'durable']])
  assert.deepEqual(ackedOf({ ...welcome(3), durable: [{ lane: 1, sequence: 2 }] }), [
    [2, 'durable'],
    [3, 'buffered'],
  ])
})

test('readings that the edge acknowledged and lost are reported as skipped', () => {
  const { core, publish } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null), 0)
  for (let value = 0; value < 4; value++) publish(value)
  sent(core)
  core.received({ type: 'ack', lane: 1, upTo: 3, promise: 1 }, 0)
  core.closed()
  core.opened(1, 1)
  core.received(welcome(1), 1)
  const frames = sent(core).filter(({ type }) => type === 'skip' || type === 'publish')
  assert.deepEqual(frames[0], { type: 'skip', lane: 1, first: 2, count: 2, why: 3 })
  assert.deepEqual(sequences(frames), [4])
})

test('a refusal with a pause holds the lane and sends again from there', () => {
  const { core, publish } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null), 0)
  for (let value = 0; value < 3; value++) publish(value)
  sent(core)
  core.received({ type: 'nack', lane: 1, first: 2, count: 2, code: 12, retryMs: 50 }, 0)
  assert.deepEqual(sent(core, 49_999), [])
  assert.deepEqual(sequences(sent(core, 50_000)), [2, 3])
})

test('a topic that is not there is declared again, and what waits for it goes on a second after its alias stands', () => {
  const { core, alias, publish } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null), 1)
  publish(1)
  sent(core)
  core.received({ type: 'nack', lane: 1, first: 1, count: 1, code: 7, retryMs: 60_000 }, 10)
  assert.deepEqual(
    sent(core, 20).map(({ type }) => type),
    ['alias'],
  )
  core.received({ type: 'alias-ok', alias, promise: 0 }, 1000)
  assert.deepEqual(sequences(sent(core, 1_000_999)), [])
  assert.deepEqual(sequences(sent(core, 1_001_000)), [1])
})

test('an alias beside the one whose topic is not there is not declared again, and does not end the pause', () => {
  const { core, alias, publish } = deviceWith()
  const other = core.declare('site/other', 'numbers', { fields: [{ name: 'value', unit: '', scale: 0 }] })
  core.opened(0, 0)
  core.received(welcome(null), 1)
  publish(1)
  sent(core)
  core.received({ type: 'nack', lane: 1, first: 1, count: 1, code: 7, retryMs: 60_000 }, 10)
  const again = sent(core, 20).flatMap((frame) => (frame.type === 'alias' ? [frame.alias] : []))
  assert.deepEqual(again, [alias])
  core.received({ type: 'alias-ok', alias: other, promise: 0 }, 1000)
  assert.deepEqual(sequences(sent(core, 59_000_000)), [])
  assert.deepEqual(sequences(sent(core, 60_000_010)), [1])
})

test('a final refusal loses that reading alone', () => {
  const { core, publish } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null), 0)
  publish(1)
  publish(2)
  sent(core)
  const [event] = core.received({ type: 'nack', lane: 1, first: 1, count: 1, code: 8, retryMs: null }, 0)
  assert.ok(event?.type === 'refused' && event.error.code === 'EDGE_READING_INVALID')
  assert.equal(core.pendingReadings, 1)
})

test('unacknowledged readings stay within the window of the edge', () => {
  const { core, publish } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null, { windowReadings: 3 }), 0)
  for (let value = 0; value < 10; value++) publish(value)
  assert.deepEqual(sequences(sent(core)), [1, 2, 3])
  core.received({ type: 'ack', lane: 1, upTo: 2, promise: 0 }, 0)
  assert.deepEqual(sequences(sent(core)), [4, 5])
  core.received({ type: 'window', lane: 1, bytes: 0, readings: 0 }, 0)
  core.received({ type: 'ack', lane: 1, upTo: 5, promise: 0 }, 0)
  assert.deepEqual(sent(core), [])
})

test('a full queue refuses, or gives up the oldest reading and says so', () => {
  const refusing = deviceWith({ maxReadings: 2, maxBytes: 1000 })
  refusing.publish(1)
  refusing.publish(2)
  assert.throws(() => refusing.publish(3), { code: 'EDGE_BACKPRESSURE' })

  const dropping = deviceWith({ maxReadings: 2, maxBytes: 1000 }, 'drop-oldest')
  for (let value = 1; value <= 5; value++) dropping.publish(value)
  dropping.core.opened(0, 0)
  const frames = sent(dropping.core)
  assert.deepEqual(
    frames.filter(({ type }) => type === 'skip'),
    [{ type: 'skip', lane: 1, first: 1, count: 3, why: 0 }],
  )
  assert.deepEqual(sequences(frames), [4, 5])
})

test('nothing is given up for readings that get no room all the same', () => {
  const { core, alias, publish } = deviceWith({ maxReadings: 4, maxBytes: 1000 }, 'drop-oldest')
  const series = (count: number) => {
    return core.publish(alias, count, (sequence) => {
      return { type: 'series', alias, sequence, time: 1, intervalMs: 1, values: new Array<number>(count).fill(7) }
    })
  }
  for (let value = 1; value <= 2; value++) publish(value)
  core.opened(0, 0)
  core.received(welcome(null), 0)
  assert.deepEqual(sequences(sent(core)), [1, 2])
  publish(3)
  assert.throws(() => series(3), { code: 'EDGE_BACKPRESSURE' })
  assert.throws(() => series(5), { code: 'EDGE_BACKPRESSURE' })
  assert.equal(core.pendingReadings, 3)
  assert.deepEqual(series(2).dropped, [{ type: 'dropped', lane: 1, first: 3, count: 1 }])
})

test('what was given up takes no room in the window, however many readings it were', () => {
  const { core, publish } = deviceWith({ maxReadings: 5, maxBytes: 1000 }, 'drop-oldest')
  for (let value = 1; value <= 3000; value++) publish(value)
  core.opened(0, 0)
  core.received(welcome(null), 0)
  const frames = sent(core)
  assert.deepEqual(
    frames.filter(({ type }) => type === 'skip'),
    [{ type: 'skip', lane: 1, first: 1, count: 2995, why: 0 }],
  )
  assert.deepEqual(sequences(frames), [2996, 2997, 2998, 2999, 3000])
})

test('what would never be sent is refused, and what was queued for a larger window goes alone', () => {
  const { core, alias } = deviceWith({ maxReadings: 5000, maxBytes: 100_000 })
  const alarm = core.declare('sensors/alarms', 'numbers', { lane: 0 })
  const series = (to: number, count: number) =>
    core.publish(to, count, (sequence) => {
      return { type: 'series', alias: to, sequence, time: 1, intervalMs: 1, values: new Array<number>(count).fill(7) }
    })
  assert.throws(() => series(alarm, 65), { code: 'EDGE_FRAME_TOO_LARGE' })
  assert.throws(() => series(alias, 1025), { code: 'EDGE_FRAME_TOO_LARGE' })
  series(alias, 10)
  series(alias, 10)
  core.opened(0, 0)
  core.received({ type: 'window', lane: 1, bytes: 0, readings: 0 }, 0)
  core.received(welcome(null, { windowReadings: 4 }), 0)
  const sequencesSent = () => sent(core).flatMap((frame) => (frame.type === 'series' ? [frame.sequence] : []))
  assert.deepEqual(sequencesSent(), [1])
  core.received({ type: 'ack', lane: 1, upTo: 10, promise: 0 }, 0)
  assert.deepEqual(sequencesSent(), [11])
})

test('a silent edge is noticed after the idle time, and pinged before', () => {
  const { core } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null), 0)
  sent(core)
  assert.ok(core.tick(10_000_000, 10_000))
  assert.deepEqual(
    sent(core, 10_000_000).map(({ type }) => type),
    ['ping'],
  )
  assert.equal(core.tick(30_000_001, 30_000), false)
})

test('a subscription that is refused ends with the reason; one that goes on tells what is missing', () => {
  const { core } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null), 1)
  const [refused, missing] = [1, 2].map(() =>
    core.subscribe('sensors/climate', 'oldest', { bytes: 1000, messages: 10 }),
  )
  assert.ok(refused !== undefined && missing !== undefined)
  core.received({ type: 'subscribed', subscription: missing, next: 0n }, 2)
  const about = (ref: number, code: number) =>
    core.received({ type: 'error', code, of: FRAMES.subscribe.number, ref, retryMs: null, text: 'why' }, 3)
  const codesOf = (events: ReturnType<typeof about>) =>
    events.map((event) => [event.type, 'error' in event ? event.error?.code : undefined])
  assert.deepEqual(codesOf(about(refused, EDGE_CODES.forbidden.code)), [['subscription-ended', 'EDGE_FORBIDDEN']])
  assert.deepEqual(codesOf(about(missing, EDGE_CODES.offsetGone.code)), [['error', 'EDGE_OFFSET_GONE']])
  core.opened(10, 0)
  const again = sent(core).flatMap((frame) => (frame.type === 'subscribe' ? [frame.subscription] : []))
  assert.deepEqual(again, [missing])
})

test('a subscription goes on behind what has come when the session is another, and one from the stored offset there', () => {
  const { core } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null), 1)
  const window = { bytes: 1000, messages: 10 }
  const [oldest, fresh, stored, poll] = [
    core.subscribe('sensors/climate', 'oldest', window),
    core.subscribe('sensors/climate', 'new', window),
    core.subscribe('sensors/climate', 'stored', window),
    core.subscribe('sensors/climate', 5n, window, { maxMessages: 3 }),
  ]
  for (const subscription of [oldest, fresh, stored, poll])
    core.received({ type: 'subscribed', subscription, next: subscription === fresh ? 40n : 5n, incarnation: 9 }, 2)
  for (const subscription of [oldest, stored, poll])
    core.received({ type: 'message', subscription, offset: 7n, ageMs: null, body: Uint8Array.of(1) }, 3)
  core.opened(10, 0)
  const again = sent(core).flatMap((frame) => (frame.type === 'subscribe' ? [[frame.from, frame.options]] : []))
  assert.deepEqual(again, [
    [8n, { incarnation: 9 }],
    [40n, { incarnation: 9 }],
    ['stored', { incarnation: 9 }],
    [8n, { maxMessages: 2, incarnation: 9 }],
  ])
})

test('an edge that asks for months of pause is asked again within an hour', () => {
  const { core, publish } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(null), 1)
  publish(1)
  sent(core)
  const monthsMs = 3_000_000_000
  core.received({ type: 'nack', lane: 1, first: 1, count: 1, code: EDGE_CODES.noRoom.code, retryMs: monthsMs }, 0)
  assert.deepEqual(sequences(sent(core, 3_599_000_000)), [])
  assert.deepEqual(sequences(sent(core, 3_600_000_000)), [1])
  const [bye] = core.received({ type: 'bye', code: 0, pauseMs: monthsMs }, 4_000_000_000)
  assert.deepEqual(bye, { type: 'bye', error: null, pauseMs: 3_600_000 })
})

test('what was on its way to a subscription that ended is none of the next one', () => {
  const { core } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(0), 0)
  const window = { bytes: 4096, messages: 16 }
  const first = core.subscribe('commands/old', 0n, window)
  sent(core)
  core.unsubscribe(first, 5, 6)
  const [, ping] = sent(core)
  assert.deepEqual(ping, { type: 'ping', number: 1, uptimeMs: 6 })
  const second = core.subscribe('commands/new', 0n, window)
  const body = Uint8Array.of(1)
  const late: Frame[] = [
    { type: 'subscribed', subscription: first, next: 40n },
    { type: 'message', subscription: first, offset: 40n, ageMs: null, body },
    { type: 'end', subscription: first, code: EDGE_CODES.notFound.code },
  ]
  const events = late.flatMap((frame) => core.received(frame, 0))
  assert.deepEqual(
    events.filter((event) => event.type === 'message' || ('subscription' in event && event.subscription === second)),
    [],
  )
  core.received({ type: 'subscribed', subscription: second, next: 0n }, 0)
  assert.equal(
    core.received({ type: 'message', subscription: second, offset: 0n, ageMs: null, body }, 0)[0]?.type,
    'message',
  )
  core.received({ type: 'pong', number: 1, time: null }, 0)
  assert.equal(core.subscribe('commands/next', 0n, window), first)
})

test('a device that subscribes and ends over and over runs out of numbers only until the edge has answered', () => {
  const { core } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(0), 0)
  const once = () => core.unsubscribe(core.subscribe('commands/all', 0n, { bytes: 1, messages: 1 }), 0, 0)
  for (let number = 0; number <= MAX_SUBSCRIPTION; number++) once()
  assert.throws(once, { code: 'EDGE_LIMIT_REACHED' })
  core.received({ type: 'pong', number: 3, time: null }, 0)
  once()
  assert.throws(once, { code: 'EDGE_LIMIT_REACHED' })
  core.opened(1, 0)
  once()
})

test('the number of a subscription that the edge ended is given again once its program is through with it', () => {
  const { core } = deviceWith()
  core.opened(0, 0)
  core.received(welcome(0), 0)
  const window = { bytes: 4096, messages: 16 }
  const first = core.subscribe('commands/old', 0n, window, { maxMessages: 1 })
  core.received({ type: 'subscribed', subscription: first, next: 0n }, 0)
  core.received({ type: 'end', subscription: first }, 0)
  assert.notEqual(core.subscribe('commands/new', 0n, window), first)
  sent(core)
  core.opened(1, 0)
  assert.equal(sent(core).filter(({ type }) => type === 'subscribe').length, 1)
  core.unsubscribe(first, 0, 0)
  assert.deepEqual(sent(core), [{ type: 'end', subscription: first }])
  assert.equal(core.subscribe('commands/next', 0n, window), first)
})
