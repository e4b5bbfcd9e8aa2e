import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HEALTH_LIMITS, HealthWatch, type PartReport } from '../../../../src/runtime/observe/health.ts'

const SECOND = 1_000_000
const part = (change: Partial<PartReport> = {}): PartReport => ({
  name: 'sync central',
  kind: 'sync',
  state: 'running',
  cause: '',
  waiting: 0,
  progress: 0,
  isEssential: false,
  ...change,
})
const LOG = part({ name: 'log', kind: 'log', isEssential: true })

test('before anything was looked at, nothing is ready', () => {
  assert.equal(new HealthWatch().health.status, 'not-ready')
})

test('a part that says it runs but gets nowhere with waiting work is stalled, with cause and advice', () => {
  const watch = new HealthWatch()
  watch.observe([part({ waiting: 5, cause: 'timeout' })], 0)
  const patienceUs = HEALTH_LIMITS.patienceUs.sync
  assert.equal(watch.observe([part({ waiting: 5 })], patienceUs).checks[0]?.state, 'ok')
  const health = watch.observe([part({ waiting: 7, cause: 'timeout' })], patienceUs + SECOND)
  assert.equal(health.status, 'degraded')
  assert.equal(health.checks[0]?.state, 'stalled')
  assert.equal(health.checks[0]?.cause, '7 waiting and no progress for 46 s (timeout)')
  assert.match(health.checks[0]?.action ?? '', /upstream confirms nothing/)
})

test('the patience starts when work begins to wait, not when the part was last busy', () => {
  const watch = new HealthWatch()
  watch.observe([part()], 0)
  watch.observe([part()], 3600 * SECOND)
  assert.equal(watch.observe([part({ waiting: 1 })], 3601 * SECOND).checks[0]?.state, 'ok')
  assert.equal(watch.observe([part({ waiting: 1 })], 3650 * SECOND).checks[0]?.state, 'stalled')
})

test('progress ends a stall, and the time in a state starts anew', () => {
  const watch = new HealthWatch()
  watch.observe([part({ waiting: 1 })], 0)
  watch.observe([part({ waiting: 1 })], 60 * SECOND)
  assert.equal(watch.observe([part({ waiting: 1 })], 65 * SECOND).checks[0]?.forUs, 5 * SECOND)
  const [check] = watch.observe([part({ waiting: 1, progress: 1 })], 70 * SECOND).checks
  assert.equal(check?.state, 'ok')
  assert.equal(check?.cause, '')
  assert.equal(check?.forUs, 0)
})

test('readiness needs every essential part; parts that are off do not count', () => {
  const watch = new HealthWatch()
  const off = part({ name: 'listener quic', kind: 'listener', state: 'off', isEssential: true })
  assert.equal(watch.observe([LOG, off], 0).status, 'ready')
  assert.equal(watch.observe([LOG, part({ state: 'failed', cause: 'refused' })], 1).status, 'degraded')
  const health = watch.observe([{ ...LOG, state: 'failed', cause: 'no space left on device' }], 2)
  assert.equal(health.status, 'not-ready')
  assert.equal(health.checks[0]?.cause, 'no space left on device')
  assert.notEqual(health.checks[0]?.action, '')
  assert.equal(watch.observe([{ ...LOG, state: 'starting' }], 3).status, 'not-ready')
})

test('every kind is patient for less than the minute within which a state must be named', () => {
  for (const patienceUs of Object.values(HEALTH_LIMITS.patienceUs)) assert.ok(patienceUs < 60 * SECOND)
})

test('a part that went away and came back starts with fresh patience', () => {
  const watch = new HealthWatch()
  watch.observe([part({ waiting: 1 })], 0)
  watch.observe([], 50 * SECOND)
  assert.equal(watch.observe([part({ waiting: 1 })], 51 * SECOND).checks[0]?.state, 'ok')
})
