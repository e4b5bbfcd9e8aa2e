import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lane, type Offer } from '../../src/runtime/device/core/lane.ts'
import { runDeviceWorld, type WorldResult } from '../support/device-world.ts'

const STEPS = 400

test('over lossy links, crashes, reboots and refusals no reading is stored twice, out of order or lost without a count', () => {
  let storedCount = 0
  for (let seed = 1; seed <= 400; seed++) {
    const result = runDeviceWorld(seed, STEPS)
    assert.deepEqual(problemsOf(result), [], `seed ${seed}`)
    storedCount += result.stored.length
  }
  assert.ok(storedCount > 10_000, `only ${storedCount} readings were stored: the simulation does not get far enough`)
})

test('the same seed gives the same run', () => {
  assert.deepEqual(runDeviceWorld(5, STEPS).stored, runDeviceWorld(5, STEPS).stored)
})

test('without rule 2 readings are stored twice', () => {
  assert.ok(problemsWith((have, durable) => new LaneWithoutRule2(have, durable)).includes('twice'))
})

test('without rule 4 and the hold readings are lost without a count', () => {
  assert.ok(problemsWith((have, durable) => new LaneWithoutRule4(have, durable)).includes('lost'))
})

class LaneWithoutRule2 extends Lane {
  override offer(first: number, last: number): Offer {
    const offer = super.offer(first, last)
    return offer.type === 'new' ? { type: 'new', first } : offer
  }
}

class LaneWithoutRule4 extends Lane {
  override offer(first: number, last: number): Offer {
    if (last <= this.have) return { type: 'duplicate' }
    return { type: 'new', first: Math.max(first, this.have + 1) }
  }
}

function problemsWith(createLane: (have: number, durable: number) => Lane): string[] {
  for (let seed = 1; seed <= 100; seed++) {
    const problems = problemsOf(runDeviceWorld(seed, STEPS, createLane))
    if (problems.length > 0) return problems
  }
  return []
}

function problemsOf({ stored, published, counted }: WorldResult): string[] {
  const kept = new Set(stored)
  const problems: string[] = []
  if (kept.size !== stored.length) problems.push('twice')
  if (stored.some((value, at) => value < (stored[at - 1] ?? 0))) problems.push('out of order')
  if (published.some((value) => !kept.has(value) && !counted.has(value))) problems.push('lost')
  return problems
}
