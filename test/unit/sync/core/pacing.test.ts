import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { errorOfStatus } from '../../../../src/sdk/index.ts'
import { Batcher } from '../../../../src/sync/core/batcher.ts'
import { Budget } from '../../../../src/sync/core/budget.ts'
import { failureKindOf, isSilence, linkFailureKindOf, retryAfterUsOf } from '../../../../src/sync/core/classify.ts'
import { Link, type LinkEffect } from '../../../../src/sync/core/link.ts'
import { RoundTrip } from '../../../../src/sync/core/round-trip.ts'

const SECOND_US = 1_000_000
const POLICY = {
  minDelayUs: 250_000,
  maxDelayUs: 30 * SECOND_US,
  silentMaxDelayUs: 5 * SECOND_US,
  stableAfterUs: 60 * SECOND_US,
  blockedRetryUs: 30 * SECOND_US,
  clockRetryUs: 4 * SECOND_US,
}
const LOST = new EdgeError('EDGE_UPSTREAM_UNREACHABLE', 'gone')

function wakeOf(effects: readonly LinkEffect[]): number {
  const wake = effects.find((effect) => effect.type === 'wake')
  assert.ok(wake)
  return wake.atUs
}

test('a limit of the peer is learned once and obeyed', () => {
  const batcher = new Batcher({ maxCount: 1000, maxBytes: 1_000_000 })
  batcher.refusedAsTooLarge(1000, 800_000)
  assert.deepEqual(batcher.bounds, { maxCount: 500, maxBytes: 400_000 })
  for (let sends = 0; sends < 900; sends++) batcher.succeeded()
  assert.deepEqual(batcher.bounds, { maxCount: 500, maxBytes: 400_000 })
})

test('a refused batch is halved down to the record and grows again', () => {
  const batcher = new Batcher({ maxCount: 8, maxBytes: 1000 })
  for (const count of [8, 4, 2]) batcher.refusedAsInvalid(count)
  assert.equal(batcher.bounds.maxCount, 1)
  for (let sends = 0; sends < 3; sends++) batcher.succeeded()
  assert.equal(batcher.bounds.maxCount, 8)
})

test('batches that vanish again and again get smaller, but never tiny', () => {
  const batcher = new Batcher({ maxCount: 1000, maxBytes: 1_000_000 })
  batcher.lost(1_000_000)
  assert.equal(batcher.bounds.maxBytes, 1_000_000)
  for (let sends = 0; sends < 100; sends++) batcher.lost(batcher.bounds.maxBytes)
  assert.equal(batcher.bounds.maxBytes, 4096)
})

test('a day of failures never waits longer than the maximum, and a next attempt always stands', () => {
  const link = new Link(POLICY, () => 0.999)
  let nowUs = 0
  link.step({ type: 'start' }, nowUs)
  while (nowUs < 24 * 3600 * SECOND_US) {
    const atUs = wakeOf(link.step({ type: 'failed', kind: 'unreachable', error: LOST }, nowUs))
    assert.ok(atUs > nowUs && atUs - nowUs <= POLICY.maxDelayUs)
    assert.equal(link.nextAttemptUs, atUs)
    nowUs = atUs
    assert.ok(link.step({ type: 'woken' }, nowUs).some(({ type }) => type === 'connect'))
  }
})

test('after silence the next attempt is never far, and after an answer it may be', () => {
  const silence = new EdgeError('EDGE_UPSTREAM_TIMEOUT', 'nothing came')
  const link = new Link(POLICY, () => 0.999)
  link.step({ type: 'start' }, 0)
  const pauses = [silence, silence, silence, silence, silence, silence, silence, silence, LOST].map((error) => {
    const pauseUs = wakeOf(link.step({ type: 'failed', kind: 'unreachable', error }, 0))
    link.step({ type: 'woken' }, pauseUs)
    return Math.round(pauseUs / 1000)
  })
  assert.deepEqual(pauses, [250, 500, 999, 1998, 3996, 4996, 4996, 4996, 29973])
  const told = (details: Readonly<Record<string, unknown>>): EdgeError =>
    new EdgeError('EDGE_UPSTREAM_UNREACHABLE', 'x', { details })
  const answers = [told({ systemCode: 'EHOSTUNREACH' }), told({ reason: 'name' }), told({ systemCode: 'ECONNREFUSED' })]
  assert.deepEqual(answers.map(isSilence), [true, true, false])
})

test('a link that lives two seconds each time is not hammered', () => {
  const link = new Link(POLICY, () => 0.999)
  let nowUs = 0
  link.step({ type: 'start' }, nowUs)
  let delayUs = 0
  for (let round = 0; round < 12; round++) {
    link.step({ type: 'connected' }, nowUs)
    nowUs += 2 * SECOND_US
    const atUs = wakeOf(link.step({ type: 'failed', kind: 'unreachable', error: LOST }, nowUs))
    delayUs = atUs - nowUs
    nowUs = atUs
    link.step({ type: 'woken' }, nowUs)
  }
  assert.ok(delayUs > 29 * SECOND_US)
  link.step({ type: 'connected' }, nowUs)
  nowUs += POLICY.stableAfterUs
  assert.ok(wakeOf(link.step({ type: 'failed', kind: 'unreachable', error: LOST }, nowUs)) - nowUs <= POLICY.minDelayUs)
})

test('a probe ends a pause at once and does nothing to a link that is up', () => {
  const link = new Link(POLICY, () => 0.5)
  link.step({ type: 'start' }, 0)
  link.step({ type: 'failed', kind: 'unreachable', error: LOST }, 0)
  assert.ok(link.step({ type: 'probe' }, 1).some(({ type }) => type === 'connect'))
  link.step({ type: 'connected' }, 2)
  assert.deepEqual(link.step({ type: 'probe' }, 3), [])
})

const SILENCE = new EdgeError('EDGE_UPSTREAM_TIMEOUT', 'nothing came')
const typesOf = (effects: readonly LinkEffect[]): string[] => effects.map(({ type }) => type)

test('a link that comes up after silence is a sign for others, and for those that met silence too', () => {
  for (const [error, expected] of [
    [SILENCE, ['changed', 'reached']],
    [LOST, ['changed']],
  ] as const) {
    const link = new Link(POLICY, () => 0.5)
    link.step({ type: 'start' }, 0)
    link.step({ type: 'failed', kind: 'unreachable', error }, 0)
    const tried = link.step({ type: 'reached-elsewhere' }, 1)
    assert.equal(tried.length > 0, error === SILENCE)
    link.step({ type: 'probe' }, 1)
    assert.deepEqual(typesOf(link.step({ type: 'connected' }, 2)), expected)
    assert.deepEqual(typesOf(link.step({ type: 'reached-elsewhere' }, 3)), [])
  }
})

test('that sign shortens one pause, and the next no sooner than the longest one is over', () => {
  const link = new Link(POLICY, () => 0.999)
  link.step({ type: 'start' }, 0)
  const triesUs: number[] = []
  for (let nowUs = 0; nowUs < 61 * SECOND_US; nowUs += SECOND_US / 2) {
    link.step({ type: 'failed', kind: 'unreachable', error: SILENCE }, nowUs)
    if (link.step({ type: 'reached-elsewhere' }, nowUs).length > 0) triesUs.push(nowUs)
  }
  assert.deepEqual(triesUs, [0, 30 * SECOND_US, 60 * SECOND_US])
})

test('certificate dates that do not fit the clock are tried again soon, refusals slowly, both by name', () => {
  const link = new Link(POLICY, () => 0.5)
  link.step({ type: 'start' }, 0)
  assert.equal(wakeOf(link.step({ type: 'failed', kind: 'clock', error: LOST }, 0)), POLICY.clockRetryUs)
  assert.deepEqual([link.state, link.failureKind], ['blocked', 'clock'])
  link.step({ type: 'woken' }, POLICY.clockRetryUs)
  const refusedUs = wakeOf(link.step({ type: 'failed', kind: 'refused', error: LOST }, POLICY.clockRetryUs))
  assert.equal(refusedUs - POLICY.clockRetryUs, POLICY.blockedRetryUs)
})

test('timeouts follow the round trip of the link, from fibre to satellite', () => {
  const bounds = { initialUs: 10 * SECOND_US, minUs: 2 * SECOND_US, maxUs: 60 * SECOND_US }
  const fast = new RoundTrip(bounds).of('send')
  for (let answers = 0; answers < 50; answers++) fast.answered(5000)
  assert.equal(fast.timeoutUs, bounds.minUs)
  const slow = new RoundTrip(bounds).of('send')
  assert.equal(slow.timeoutUs, bounds.initialUs)
  for (let answers = 0; answers < 50; answers++) slow.answered(3 * SECOND_US)
  assert.ok(slow.timeoutUs >= 9 * SECOND_US && slow.timeoutUs < 20 * SECOND_US)
  for (let timeouts = 0; timeouts < 30; timeouts++) slow.timedOut()
  assert.equal(slow.timeoutUs, bounds.maxUs)
})

test('what takes long is given longer, though a login before each try is answered at once', () => {
  const roundTrip = new RoundTrip({ initialUs: 10 * SECOND_US, minUs: 2 * SECOND_US, maxUs: 60 * SECOND_US })
  const [login, look] = [roundTrip.of('session'), roundTrip.of('look')]
  for (let links = 0; links < 5; links++) {
    login.answered(5000)
    look.timedOut()
  }
  assert.equal(look.timeoutUs, 60 * SECOND_US)
  assert.equal(login.timeoutUs, 2 * SECOND_US)
  for (let answers = 0; answers < 50; answers++) {
    look.answered(7 * SECOND_US)
    for (let pings = 0; pings < 50; pings++) login.answered(5000)
    assert.ok(look.timeoutUs > 7 * SECOND_US, 'an answer that comes as late as the one before is waited for')
  }
})

test('a rate and a day have their budgets', () => {
  const budget = new Budget({ maxBytesPerSecond: 1000, dailyBudgetBytes: 5000 }, 0)
  assert.equal(budget.take(3000, 0), 0)
  const waitUs = budget.take(100, 0)
  assert.ok(waitUs >= 2 * SECOND_US && waitUs < 2.1 * SECOND_US)
  assert.equal(budget.take(2000, waitUs), 0)
  const dayUs = 24 * 3600 * SECOND_US
  assert.equal(budget.take(1, 10 * SECOND_US), dayUs - 10 * SECOND_US)
  assert.equal(budget.take(1, dayUs), 0)
  assert.equal(new Budget({ maxBytesPerSecond: 0, dailyBudgetBytes: 0 }, 0).take(1e12, 0), 0)
})

test('what goes beyond the day, the next one lacks', () => {
  const dayUs = 24 * 3600 * SECOND_US
  const budget = new Budget({ maxBytesPerSecond: 0, dailyBudgetBytes: 5000 }, 0)
  assert.equal(budget.leftBytes(0), 5000)
  assert.equal(budget.take(4000, 0), 0)
  assert.equal(budget.leftBytes(0), 1000)
  assert.equal(budget.take(7000, 0), 0)
  assert.equal(budget.leftBytes(0), 0)
  assert.equal(budget.take(1, dayUs), dayUs)
  assert.equal(budget.leftBytes(2 * dayUs), 4000)
  assert.equal(budget.leftBytes(9 * dayUs), 5000)
})

test('without a daily budget nothing is left out, and what was sent counts anew each day', () => {
  const budget = new Budget({ maxBytesPerSecond: 0, dailyBudgetBytes: 0 }, 0)
  assert.equal(budget.take(7000, 0), 0)
  assert.equal(budget.leftBytes(0), Number.POSITIVE_INFINITY)
  assert.equal(budget.usedTodayBytes, 7000)
  assert.equal(budget.take(100, 24 * 3600 * SECOND_US), 0)
  assert.equal(budget.usedTodayBytes, 100)
})

test('a day goes on after a restart, and a pause names the limit that makes it', () => {
  const dayUs = 24 * 3600 * SECOND_US
  const options = { maxBytesPerSecond: 1000, dailyBudgetBytes: 5000 }
  const budget = new Budget(options, 0, { usedBytes: 4000, elapsedUs: dayUs / 2 })
  assert.equal(budget.pause(0), null)
  assert.equal(budget.take(2000, 0), 0)
  assert.deepEqual(budget.pause(0), { reason: 'day', forUs: dayUs / 2 })
  assert.deepEqual(budget.day(SECOND_US), { usedBytes: 6000, elapsedUs: dayUs / 2 + SECOND_US })
  assert.equal(budget.pause(dayUs / 2), null)
  assert.equal(budget.take(3000, dayUs / 2), 0)
  assert.equal(budget.pause(dayUs / 2)?.reason, 'rate')
})

test('refusals are told apart by who can help', () => {
  const kinds = [57, 58, 3009, 4010, 20, 2010, 4022, 41, 40, 4036, 3, 1].map((code) =>
    failureKindOf(errorOfStatus(code, 'send')),
  )
  assert.deepEqual(kinds, [
    'busy',
    'busy',
    'busy',
    'busy',
    'missing',
    'missing',
    'too-large',
    'forbidden',
    'lost',
    'invalid',
    'invalid',
    'invalid',
  ])
  const http = [401, 403, 404, 413, 422, 429, 503].map((httpStatus) =>
    failureKindOf(new EdgeError('EDGE_UPSTREAM_REFUSED', 'x', { details: { httpStatus } })),
  )
  assert.deepEqual(http, ['lost', 'forbidden', 'missing', 'too-large', 'invalid', 'busy', 'busy'])
  assert.equal(failureKindOf(new EdgeError('EDGE_UPSTREAM_TIMEOUT', 'x')), 'lost')
  assert.equal(linkFailureKindOf(errorOfStatus(42, 'login')), 'refused')
  assert.equal(
    linkFailureKindOf(new EdgeError('EDGE_UPSTREAM_UNREACHABLE', 'x', { details: { reason: 'clock' } })),
    'clock',
  )
})

test('a peer is waited for as long as it asks, and at most for an hour', () => {
  const waits = [undefined, 2000, 31_536_000_000].map((retryAfterMs) =>
    retryAfterUsOf(new EdgeError('EDGE_UPSTREAM_REFUSED', 'x', { details: { httpStatus: 503, retryAfterMs } })),
  )
  assert.deepEqual(waits, [undefined, 2 * SECOND_US, 3600 * SECOND_US])
})
