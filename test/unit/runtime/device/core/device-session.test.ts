import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { EdgeError } from '../../../../../src/errors.ts'
import type { Input } from '../../../../../src/runtime/device/core/exchange.ts'
import {
  alias,
  appends,
  closeCode,
  framesOf,
  hello,
  SessionBench,
  WALL_US,
} from '../../../../support/device-session-bench.ts'

let bench: SessionBench
beforeEach(() => {
  bench = new SessionBench()
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

test('ping is answered with the time, and moves the stamps of readings', () => {
  bench.openWithAlias()
  const [pong] = framesOf(bench.frame({ type: 'ping', number: 3, uptimeMs: 1000 }))
  assert.ok(pong?.type === 'pong' && pong.number === 3)
  const [append] = appends(bench.frame({ type: 'publish', alias: 1, sequence: 1, time: 1500, value: 2157 }))
  assert.equal(append?.batch.baseOriginUs, WALL_US + 500_000n)
})

test('silence ends the session: before hello with 20, after it with 19', () => {
  bench.nowMs = 5000
  assert.equal(closeCode(bench.step({ type: 'tick' })), 20)
  bench = new SessionBench()
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
  bench.openWithAlias()
  bench.publish(1)
  assert.equal(closeCode(bench.frame({ type: 'bye', code: 0, pauseMs: 900_000 })), undefined)
  const effects = bench.settleAll()
  assert.equal(framesOf(effects)[0]?.type, 'ack')
  assert.equal(closeCode(effects), 0)
})

test('an end that waits in vain is carried out after five seconds', () => {
  bench.openWithAlias()
  bench.publish(1)
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
