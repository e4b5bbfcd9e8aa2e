import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../../src/logger.ts'
import { type ClockSigns, judgeClock, plausibleClock, watchClock } from '../../../src/runtime/clock-trust.ts'

const at = (iso: string): bigint => BigInt(Date.parse(iso)) * 1000n
const NOW: ClockSigns = {
  wallUs: at('2027-03-01'),
  floorUs: at('2027-02-01'),
  isTimeServiceRunning: false,
  hasTimeServiceSetIt: false,
}

test('a clock is trusted from the newest known time on, unless a time service has yet to set it', () => {
  assert.equal(judgeClock(NOW), '')
  assert.equal(judgeClock({ ...NOW, isTimeServiceRunning: true, hasTimeServiceSetIt: true }), '')
  assert.match(judgeClock({ ...NOW, isTimeServiceRunning: true }), /time service has not set/)
  assert.match(judgeClock({ ...NOW, wallUs: at('2027-01-01') }), /behind the newest time/)
  for (const iso of ['1970-01-01', '1979-12-31', '2025-12-31'])
    assert.match(judgeClock({ ...NOW, floorUs: 0n, wallUs: at(iso) }), /not set/, iso)
})

test('a floor from an hour in which the clock was ahead does not outlive the time service', () => {
  const ahead = { ...NOW, floorUs: at('2036-02-07') }
  assert.match(judgeClock(ahead), /behind the newest time/)
  assert.equal(judgeClock({ ...ahead, isTimeServiceRunning: true, hasTimeServiceSetIt: true }), '')
})

test('a clock too far ahead reads as one that was never set, and as itself again once it is', () => {
  let wallUs = at('2099-12-31')
  const clock = plausibleClock({ wallUs: () => wallUs, monotonicUs: () => 5_000_000.4 })
  assert.equal(clock.wallUs(), 5_000_000n)
  assert.match(judgeClock({ ...NOW, floorUs: 0n, wallUs: clock.wallUs() }), /not set/)
  wallUs = at('2027-03-01')
  assert.equal(clock.wallUs(), wallUs)
  wallUs = at('2089-12-31')
  assert.equal(clock.wallUs(), wallUs)
})

test('the newest time is kept a minute after the clock is trusted, then every hour; one that cannot be read counts as none', (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] })
  let monotonicUs = 0
  const clock = { wallUs: () => at('2027-03-01') + BigInt(monotonicUs), monotonicUs: () => monotonicUs }
  const written: string[] = []
  const store = {
    setting: () => '17999y9000000000',
    setSetting: async (_name: string, value: string) => void written.push(value),
  }
  const trust = watchClock(clock, () => store, silentLogger)
  context.after(() => trust.close())
  const counts: number[] = []
  for (let minute = 1; minute <= 121; minute++) {
    monotonicUs += 60_000_000
    context.mock.timers.tick(60_000)
    counts[minute] = written.length
  }
  assert.deepEqual([counts[1], counts[60], counts[61], counts[120], counts[121]], [1, 1, 2, 2, 3])
})
