import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { EdgeError } from '../../../../../src/errors.ts'
import { Downlink } from '../../../../../src/runtime/device/core/downlink.ts'
import type { Effect, Moment } from '../../../../../src/runtime/device/core/exchange.ts'
import type { DownMessage } from '../../../../../src/runtime/device/ports.ts'
import { DEFAULT_LIMITS, type Frame } from '../../../../../src/sdk/wire/edge/index.ts'

const WALL_US = 1_764_439_200_000_000n
const INCARNATION = 7
const now: Moment = { monotonicMs: 0, wallUs: WALL_US, isWallTrusted: true, accuracyMs: 40 }
const subscribe: Frame<'subscribe'> = {
  type: 'subscribe',
  subscription: 1,
  topic: 'commands/valves',
  from: 'stored',
  window: { bytes: 2048, messages: 2 },
}

let downlink: Downlink
beforeEach(() => {
  downlink = new Downlink({ deviceName: 'dev-1', mayReadAllKeys: false, limits: DEFAULT_LIMITS, maxFrameBytes: 1024 })
})

test('a subscription goes on after the stored offset, or at the oldest when there is none', () => {
  assert.equal(nextOf(open(subscribe, { storedOffset: 87n })), 88n)
  assert.equal(nextOf(open({ ...subscribe, subscription: 2 }, { storedOffset: undefined })), 10n)
  assert.equal(nextOf(open({ ...subscribe, subscription: 3, from: 'new' }, {})), 100n)
})

test('an offset that retention took is told, and reading goes on at the oldest', () => {
  const frames = framesOf(open({ ...subscribe, from: 4n }, {}))
  assert.deepEqual(
    frames.map((frame) => (frame.type === 'error' ? frame.code : frame.type)),
    ['subscribed', 21],
  )
})

test('an offset of another log is told, and reading begins at its oldest message', () => {
  const startOf = (subscription: number, from: bigint, incarnation?: number) => {
    const frame = { ...subscribe, subscription, from, options: incarnation === undefined ? {} : { incarnation } }
    const frames = framesOf(open(frame, {}))
    downlink.end({ type: 'end', subscription })
    const told = frames.flatMap((each) => (each.type === 'error' ? [each.code] : []))
    return [frames.flatMap((each) => (each.type === 'subscribed' ? [each.next] : [])), told].flat()
  }
  assert.deepEqual(startOf(1, 50n, INCARNATION), [50n])
  assert.deepEqual(startOf(1, 50n, INCARNATION + 1), [10n, 21])
  // Who does not say which log it read: only an offset that was never given shows that it is another.
  assert.deepEqual(startOf(1, 100n), [100n])
  assert.deepEqual(startOf(1, 101n), [10n, 21])
})

test('an answer of an earlier session moves nothing over what was not sent in this one', () => {
  open({ ...subscribe, window: { bytes: 2048, messages: 10 } }, {})
  downlink.read(1, read([10n, 11n]), now)
  assert.deepEqual(downlink.result(0, { type: 'result', subscription: 1, offset: 500n, status: 0 }), [])
  const taken = downlink.result(0, { type: 'result', subscription: 1, offset: 11n, status: 0 })
  assert.equal(storedOf(taken), 11n)
})

test('at most the window is unanswered; an answer moves the cursor and lets more come', () => {
  open(subscribe, {})
  const sent = framesOf(downlink.read(1, read([10n, 11n, 12n]), now))
  assert.deepEqual(
    sent.map((frame) => frame.type === 'message' && frame.offset),
    [10n, 11n],
  )
  const effects = downlink.result(0, { type: 'result', subscription: 1, offset: 10n, status: 0 })
  assert.deepEqual(effects.slice(0, 1), [{ type: 'store-offset', subscription: 1, offset: 10n }])
  assert.ok(effects.some((effect) => effect.type === 'read' && effect.fromOffset === 12n))
})

test('what is unanswered stays within the window; a larger message comes alone', () => {
  const sizes = [500, 300, 5000, 100]
  downlink = new Downlink({ deviceName: 'dev-1', mayReadAllKeys: false, limits: DEFAULT_LIMITS, maxFrameBytes: 16_384 })
  open({ ...subscribe, window: { bytes: 1000, messages: 10 } }, {})
  const messages = sizes.map((size, at) => ({ ...message(10n + BigInt(at)), body: new Uint8Array(size) }))
  let rest = messages
  const sent = (effects: readonly Effect[]) =>
    framesOf(effects).map((frame) => frame.type === 'message' && frame.offset)
  const readRest = () => downlink.read(1, { messages: rest, nextOffset: 14n, endOffset: 14n, hasHole: false }, now)
  const answer = (offset: bigint) => {
    rest = messages.filter((one) => one.offset > offset)
    return downlink.result(0, { type: 'result', subscription: 1, offset, status: 0 })
  }
  assert.deepEqual(sent(readRest()), [10n, 11n])
  const isReadOn = (effects: readonly Effect[]) => effects.some(({ type }) => type === 'read')
  assert.ok(!isReadOn(answer(10n)), 'the large one waits until nothing is open')
  assert.ok(isReadOn(answer(11n)))
  assert.deepEqual(sent(readRest()), [12n])
  answer(12n)
  assert.deepEqual(sent(readRest()), [13n])
})

test('messages for other devices are left out, counted, and do not hold the cursor back', () => {
  open(subscribe, {})
  const messages = [message(10n, 'dev-2'), message(11n, '*'), message(12n, 'dev-3')]
  const effects = downlink.read(1, { messages, nextOffset: 13n, endOffset: 13n, hasHole: false }, now)
  const [frame] = framesOf(effects)
  assert.ok(frame?.type === 'message' && frame.offset === 11n && frame.options?.skippedCount === 1)
  assert.equal(storedOf(effects), 10n)
  assert.equal(storedOf(downlink.result(0, { type: 'result', subscription: 1, offset: 11n, status: 0 })), 12n)
})

test('a message that the device cannot take is counted once, and only if it is meant for it', () => {
  open(subscribe, {})
  const large = (offset: bigint, key: string) => ({ ...message(offset, key), body: new Uint8Array(2000) })
  const rest = [message(12n, 'dev-1'), large(13n, 'dev-1')]
  const messages = [large(9n, 'dev-2'), message(10n, 'dev-1'), message(11n, 'dev-1'), ...rest]
  const first = downlink.read(1, { messages, nextOffset: 14n, endOffset: 14n, hasHole: false }, now)
  const answered = downlink.result(0, { type: 'result', subscription: 1, offset: 11n, status: 0 })
  const again = downlink.read(1, { messages: rest, nextOffset: 14n, endOffset: 14n, hasHole: false }, now)
  assert.deepEqual(
    [...first, ...answered, ...again].filter(({ type }) => type === 'lost'),
    [{ type: 'lost', reason: 'message-too-large', lane: 0, first: 13, count: 1 }],
  )
})

test('a poll ends after so many messages and stays until they are answered', () => {
  open({ ...subscribe, options: { maxMessages: 1 } }, {})
  const effects = downlink.read(1, read([10n, 11n]), now)
  assert.deepEqual(
    framesOf(effects).map((frame) => frame.type),
    ['message', 'end'],
  )
  const answered = downlink.result(0, { type: 'result', subscription: 1, offset: 10n, status: 0 })
  assert.deepEqual(
    answered.map((effect) => effect.type),
    ['store-offset', 'close-source'],
  )
})

test('a poll of an empty topic ends at once', () => {
  const effects = open({ ...subscribe, from: 'new', options: { maxMessages: 5 } }, {})
  assert.deepEqual(
    framesOf(effects).map((frame) => frame.type),
    ['subscribed', 'end'],
  )
})

test('a message larger than the device takes is left out and counted', () => {
  open(subscribe, {})
  const large = { ...message(10n), body: new Uint8Array(2000) }
  const effects = downlink.read(1, { messages: [large], nextOffset: 11n, endOffset: 11n, hasHole: false }, now)
  assert.deepEqual(
    effects.map((effect) => effect.type),
    ['lost', 'store-offset', 'read'],
  )
})

test('rights, limits and results of commands are refused by their code', () => {
  const all = downlink.subscribe(0, { ...subscribe, options: { allKeys: true } })
  assert.deepEqual(codesOf(all), [6])
  open(subscribe, {})
  assert.deepEqual(codesOf(downlink.subscribe(0, subscribe)), [8])
  for (const subscription of [2, 3, 4]) open({ ...subscribe, subscription }, {})
  assert.deepEqual(codesOf(downlink.subscribe(0, { ...subscribe, subscription: 5 })), [15])
  assert.deepEqual(codesOf(downlink.result(0, { type: 'result', subscription: 1, offset: 1n, status: 1 })), [3])
})

test('a source that cannot be opened or read ends the subscription with its code', () => {
  downlink.subscribe(0, subscribe)
  assert.deepEqual(codesOf(downlink.refused(1, new EdgeError('EDGE_TOPIC_NOT_FOUND', 'commands/valves'))), [7])
  open(subscribe, {})
  const failed = framesOf(downlink.readFailed(1, new EdgeError('EDGE_IO', 'disk')))
  assert.deepEqual(failed, [{ type: 'end', subscription: 1, code: 14 }])
})

test('subscriptions end with their stream', () => {
  open(subscribe, {})
  assert.deepEqual(downlink.streamEnded(0), [{ type: 'close-source', subscription: 1 }])
  assert.deepEqual(downlink.grew(1, 200n), [])
})

function open(frame: Frame<'subscribe'>, source: { storedOffset?: bigint | undefined }): Effect[] {
  downlink.subscribe(0, frame)
  const facts = { incarnation: INCARNATION, storedOffset: source.storedOffset, startOffset: 10n, endOffset: 100n }
  return downlink.opened(frame.subscription, facts)
}

function message(offset: bigint, key?: string): DownMessage {
  return { offset, appendTimeUs: WALL_US - 1_500_000n, key, body: Buffer.from('open 3') }
}

function read(offsets: bigint[]) {
  const nextOffset = (offsets.at(-1) ?? 0n) + 1n
  return { messages: offsets.map((offset) => message(offset)), nextOffset, endOffset: 100n, hasHole: false }
}

function framesOf(effects: readonly Effect[]): Frame[] {
  return effects.flatMap((effect) => (effect.type === 'send' ? [effect.frame] : []))
}

function codesOf(effects: readonly Effect[]) {
  return framesOf(effects).map((frame) => frame.type === 'error' && frame.code)
}

function nextOf(effects: readonly Effect[]) {
  const frame = framesOf(effects).find((one) => one.type === 'subscribed')
  return frame?.type === 'subscribed' ? frame.next : undefined
}

function storedOf(effects: readonly Effect[]) {
  const stored = effects.find((effect) => effect.type === 'store-offset')
  return stored?.type === 'store-offset' ? stored.offset : undefined
}
