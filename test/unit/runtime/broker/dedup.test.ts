import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DedupWindow, keepTogether, type SeenMessage } from '../../../../src/runtime/broker/dedup.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

const LIMITS = { maxEntries: 3, expiryUs: 100n }
const at = (offset: bigint) => ({ partitionId: 0, offset })

test('an id that was seen is found with its place, until it expires', () => {
  const window = new DedupWindow(LIMITS, 1)
  window.add(7n, at(1n), 1000n)
  assert.equal(window.find(7n, 1099n)?.offset, 1n)
  assert.equal(window.find(7n, 1100n), undefined)
  assert.equal(window.find(8n, 1000n), undefined)
})

test('the window keeps the newest ids, as many as it may', () => {
  const window = new DedupWindow(LIMITS, 1)
  for (let id = 1n; id <= 5n; id++) window.add(id, at(id), 1000n)
  assert.equal(window.size, 3)
  assert.deepEqual(
    [1n, 2n, 3n, 4n, 5n].map((id) => window.find(id, 1000n) !== undefined),
    [false, false, true, true, true],
  )
})

test('old ids leave as new ones come, so an idle topic holds nothing it does not need', () => {
  const window = new DedupWindow(LIMITS, 1)
  window.add(1n, at(1n), 1000n)
  window.add(2n, at(2n), 1100n)
  assert.equal(window.size, 1)
})

test('an id that was not stored after all is new again', () => {
  const window = new DedupWindow(LIMITS, 1)
  window.add(1n, at(1n), 1000n)
  window.forget(1n)
  assert.equal(window.find(1n, 1000n), undefined)
})

test('a smaller window lets the oldest go at once', () => {
  const window = new DedupWindow(LIMITS, 1)
  for (let id = 1n; id <= 3n; id++) window.add(id, at(id), 1000n)
  window.resize({ maxEntries: 1, expiryUs: 100n })
  assert.equal(window.size, 1)
  assert.equal(window.find(3n, 1000n)?.offset, 3n)
})

test('what was read back in any order lies in the order of its times, the newest ones', () => {
  const window = new DedupWindow(LIMITS, 1)
  for (const id of [5n, 1n, 9n, 3n, 7n, 2n, 8n]) window.load(id, at(id), 1000n + id)
  // Of one id that is stored twice, the newer one counts.
  window.load(8n, at(80n), 1001n)
  window.loaded()
  assert.equal(window.oldestUs, 1007n)
  assert.deepEqual(
    [5n, 7n, 8n, 9n].map((id) => window.find(id, 1010n)?.offset),
    [undefined, 7n, 8n, 9n],
  )
  window.add(10n, at(10n), 1010n)
  assert.equal(window.find(7n, 1010n), undefined)
})

test('a full window that goes on being loaded says from when on entries find a place, without being put in order again', () => {
  const window = new DedupWindow(LIMITS, 1)
  const { maxEntries } = LIMITS
  for (let id = 1; id < 2 * maxEntries; id++) window.load(BigInt(id), at(0n), BigInt(1000 + id))
  assert.equal(window.oldestUs, undefined)
  window.load(100n, at(0n), 1000n)
  assert.deepEqual([window.size, window.oldestUs], [maxEntries, BigInt(1000 + maxEntries)])
  window.load(101n, at(0n), 2000n)
  assert.deepEqual([window.size, window.oldestUs], [maxEntries + 1, BigInt(1000 + maxEntries)])
  window.clear()
  assert.equal(window.oldestUs, undefined)
})

/** The same window as a map of objects. */
class Model {
  readonly entries = new Map<bigint, SeenMessage & { atUs: bigint }>()
  maxEntries = 50

  find(id: bigint, nowUs: bigint): SeenMessage | undefined {
    const entry = this.entries.get(id)
    if (entry === undefined || nowUs - entry.atUs < 1000n) return entry
    this.entries.delete(id)
    return undefined
  }

  add(id: bigint, message: SeenMessage, atUs: bigint): void {
    this.entries.delete(id)
    this.entries.set(id, { ...message, atUs })
    for (const [each, entry] of this.entries) {
      if (atUs - entry.atUs < 1000n) break
      this.entries.delete(each)
    }
    this.trim()
  }

  trim(): void {
    for (const id of this.entries.keys()) if (this.entries.size > this.maxEntries) this.entries.delete(id)
  }
}

test('whatever comes, expires and is forgotten, the window knows what a map would, in bounded memory', () => {
  const random = new SeededRandom(7)
  const window = new DedupWindow({ maxEntries: 50, expiryUs: 1000n }, random.below(2 ** 32))
  const model = new Model()
  // Few ids in each half, so that they come again and search for each other.
  const nextId = () => (BigInt(random.below(12)) << 64n) | BigInt(1 + random.below(12))
  let nowUs = 1_700_000_000_000_000n
  for (let step = 0; step < 100_000; step++) {
    nowUs += BigInt(random.below(random.chance(0.001) ? 3000 : 20))
    const id = nextId()
    const kind = random.below(1000)
    if (kind < 600) {
      const message = { partitionId: random.below(4), offset: BigInt(step) }
      window.add(id, message, nowUs)
      model.add(id, message, nowUs)
    } else if (kind < 900) {
      const [found, expected] = [window.find(id, nowUs), model.find(id, nowUs)]
      assert.deepEqual([found?.partitionId, found?.offset], [expected?.partitionId, expected?.offset])
    } else if (kind < 990) {
      window.forget(id)
      model.entries.delete(id)
    } else if (kind < 997) {
      const maxEntries = 1 + random.below(100)
      window.resize({ maxEntries, expiryUs: 1000n })
      model.maxEntries = maxEntries
      model.trim()
    } else if (kind < 999) {
      window.forgetPartitions(2)
      for (const [each, { partitionId }] of model.entries) if (partitionId >= 2) model.entries.delete(each)
    } else {
      window.clear()
      model.entries.clear()
    }
    assert.equal(window.size, model.entries.size)
    assert.ok(window.capacityBytes <= 256 * 44, `${window.capacityBytes}`)
  }
})

test('an entry takes 44 bytes, 88 at most, and an idle window none', () => {
  const window = new DedupWindow({ maxEntries: 10_000, expiryUs: 1000n }, 1)
  for (let id = 1n; id <= 30_000n; id++) window.add(id, at(id), id / 100n)
  assert.equal(window.size, 10_000)
  assert.ok(window.capacityBytes <= 10_000 * 88, `${window.capacityBytes}`)
  window.expire(10_000n)
  assert.deepEqual([window.size, window.capacityBytes], [0, 0])
})

test('windows that hold too much together forget down to a common size; small ones keep theirs', () => {
  const sizes = [10, 0, 500, 40, 300]
  const windows = sizes.map((size) => {
    const window = new DedupWindow({ maxEntries: 1000, expiryUs: 1000n }, 1)
    for (let id = 1; id <= size; id++) window.add(BigInt(id), at(BigInt(id)), 1000n)
    return window
  })
  const now = () => windows.map(({ size }) => size)
  keepTogether(windows, 850, 1000n)
  assert.deepEqual(now(), sizes)
  keepTogether(windows, 250, 1000n)
  assert.deepEqual(now(), [10, 0, 100, 40, 100])
  assert.equal(windows[2]?.find(400n, 1000n), undefined)
  assert.equal(windows[2]?.find(401n, 1000n)?.offset, 401n)
  keepTogether(windows, 250, 2000n)
  assert.deepEqual(now(), [0, 0, 0, 0, 0])
})
