import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FineWallClock } from '../../src/clock.ts'

const START_MS = 1_800_000_000_000

/** Two clocks of one machine; the thread is held up before each reading of the coarse one for as long as `waitMs` says. */
function machine() {
  const state = { nowMs: 0, stepMs: 0, waitMs: 0 }
  const clocks = {
    fineMs: () => state.nowMs,
    coarseWallMs: () => {
      state.nowMs += state.waitMs
      return Math.floor(START_MS + state.nowMs + state.stepMs)
    },
  }
  return { state, clock: new FineWallClock(clocks, START_MS) }
}

/** What the clock is off by, µs. */
const errorUs = ({ state, clock }: ReturnType<typeof machine>): number =>
  Number(clock.nowUs() - BigInt(Math.round((START_MS + state.nowMs + state.stepMs) * 1000)))

test('as long as nobody sets the wall clock, it is told to the microsecond', () => {
  const world = machine()
  for (let turn = 0; turn < 1000; turn++) {
    world.state.nowMs += 0.777
    assert.ok(Math.abs(errorUs(world)) <= 1)
  }
})

test('every step of the wall clock is followed, whichever way, and small ones too', () => {
  const world = machine()
  for (const stepMs of [3, -3, 20, -40, 49, 1000, -3_600_000, 86_400_000_000]) {
    world.state.nowMs += 12.3
    world.state.stepMs += stepMs
    assert.ok(Math.abs(errorUs(world)) <= 1000, `a step of ${stepMs} ms`)
  }
})

test('many small steps do not add up', () => {
  const world = machine()
  for (let turn = 0; turn < 100; turn++) {
    world.state.stepMs += 1
    assert.ok(Math.abs(errorUs(world)) <= 3000)
  }
})

test('a thread that is held up between two readings does not take it for a step', () => {
  const world = machine()
  world.state.waitMs = 30
  assert.ok(Math.abs(errorUs(world)) <= 1)
  world.state.waitMs = 0
  world.state.nowMs += 5
  assert.ok(Math.abs(errorUs(world)) <= 1)
})
