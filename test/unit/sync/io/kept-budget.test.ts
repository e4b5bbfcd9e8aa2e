import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeptBudget } from '../../../../src/sync/io/kept-budget.ts'
import type { BudgetStore, SpentBudget } from '../../../../src/sync/ports.ts'

const HOUR_US = 3600e6
const OPTIONS = { name: 'central', maxBytesPerSecond: 0, dailyBudgetBytes: 64_000 }

/** A clock that a test sets, and a store that outlives the processes. */
class World implements BudgetStore {
  wall = 1_795_968_000_000_000n
  monotonic = 0
  kept: SpentBudget | undefined
  saves = 0

  start(options = OPTIONS): KeptBudget {
    this.monotonic = 0
    return new KeptBudget(options, this, { wallUs: () => this.wall, monotonicUs: () => this.monotonic })
  }

  pass(us: number): void {
    this.wall += BigInt(us)
    this.monotonic += us
  }

  spent(): SpentBudget | undefined {
    return this.kept
  }

  async setSpent(_upstream: string, spent: SpentBudget): Promise<void> {
    this.saves += 1
    this.kept = spent
  }
}

test('a restart does not give the day anew, and a day away does', async () => {
  const world = new World()
  const first = world.start()
  world.pass(2 * HOUR_US)
  assert.equal(first.take(64_000), 0)
  await first.close()

  world.pass(HOUR_US)
  const second = world.start()
  assert.deepEqual(second.pause(), { reason: 'day', forUs: 21 * HOUR_US })
  await second.close()

  world.pass(21 * HOUR_US)
  assert.equal(world.start().pause(), null)
})

test('a wall clock that went back takes nothing of what has passed', async () => {
  const world = new World()
  const first = world.start()
  world.pass(2 * HOUR_US)
  first.take(64_000)
  await first.close()
  world.wall = 0n
  assert.deepEqual(world.start().pause(), { reason: 'day', forUs: 22 * HOUR_US })
})

test('a process that is killed forgets a small share, and what is sent costs few writes', () => {
  const world = new World()
  const budget = world.start()
  for (let sends = 0; sends < 640; sends++) assert.equal(budget.take(100), 0)
  assert.ok(world.saves <= 64)
  assert.equal(world.start().usedTodayBytes, 64_000)

  const unlimited = world.start({ ...OPTIONS, dailyBudgetBytes: 0 })
  unlimited.take(1e9)
  assert.ok(world.saves <= 64)
})

test('a disk that keeps nothing stops no sending', async () => {
  const world = new World()
  world.setSpent = () => Promise.reject(new Error('full'))
  const budget = world.start()
  assert.equal(budget.take(1000), 0)
  await budget.close()
})
