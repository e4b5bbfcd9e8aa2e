/** Several partitions on one link, by seed: whatever ends the link, only the records that do it are set aside. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LinkWorld, type LinkWorldOptions } from '../support/sync-link-world.ts'

const NONE: ReadonlySet<bigint> = new Set()
const CALM: LinkWorldOptions = {
  seed: 1,
  partitionCount: 4,
  deadly: [],
  refused: [],
  loseReply: 0,
  shortLived: 0,
  isInOrder: true,
  dailyBudgetBytes: 0,
  bytesPerSecond: Number.POSITIVE_INFINITY,
  recordBytes: [],
  foreignCount: 0,
}
const HOSTILE = { loseReply: 0.03, shortLived: 0.5 }
const TOTAL = 80
const HOURS = 3
/** The records take days then. */
const METERED = { dailyBudgetBytes: 12_000 }
const METERED_HOURS = 6 * 24
const SEEDS = Number(process.env.EDGE_TEST_SEEDS ?? 20)

function assertOnlyTheGuiltyAreSetAside({ options, partitions }: LinkWorld): void {
  for (const { id, ownOffsets, deadLetters, forwarder } of partitions) {
    const where = `seed ${options.seed}, partition ${id}`
    const guilty = [...(options.deadly[id] ?? NONE), ...(options.refused[id] ?? NONE)].sort((left, right) =>
      left < right ? -1 : 1,
    )
    assert.deepEqual(deadLetters, guilty, where)
    const expected = Array.from({ length: TOTAL }, (_, index) => BigInt(index))
    assert.deepEqual(
      ownOffsets,
      expected.filter((offset) => !guilty.includes(offset)),
      where,
    )
    const { state, counters } = forwarder.view()
    assert.equal(state, 'caught-up', where)
    const { sentCount, deadLetterCount, resentCount, gapCount, unreadableCount } = counters
    assert.deepEqual([resentCount, gapCount, unreadableCount], [0n, 0n, 0n], where)
    assert.equal(sentCount + deadLetterCount, BigInt(TOTAL), where)
  }
}

function forSeeds(options: Partial<LinkWorldOptions>): void {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const world = new LinkWorld({ ...CALM, ...options, seed })
    world.run(TOTAL, options.dailyBudgetBytes ? METERED_HOURS : HOURS)
    assertOnlyTheGuiltyAreSetAside(world)
  }
}

const DEADLY = [new Set([0n]), NONE, new Set([40n, 41n]), NONE]
const REFUSED = [new Set([30n]), NONE, NONE, new Set([0n, 79n])]

test('on a calm link every partition gets all of its records there', () => {
  forSeeds({})
})

test('a record at which the upstream hangs up costs the partitions beside it nothing', () => {
  forSeeds({ deadly: DEADLY, refused: REFUSED })
  forSeeds({ ...HOSTILE, deadly: DEADLY, refused: REFUSED })
})

test('nor where requests are served all at once, and a record ends them all', () => {
  forSeeds({ isInOrder: false, deadly: DEADLY })
  forSeeds({ ...HOSTILE, isInOrder: false, deadly: DEADLY, refused: REFUSED })
})

test('links that come and go while the budget is used up cost no record', () => {
  forSeeds({ ...HOSTILE, ...METERED })
  forSeeds({ ...HOSTILE, ...METERED, partitionCount: 3, deadly: DEADLY, refused: REFUSED })
})

test('on a link that is slow for the size of the records looks at them get through, also at pages of others', () => {
  const slow = { bytesPerSecond: 20_000, loseReply: 0.03, recordBytes: [40_000, 100, 100_000, 5000] }
  forSeeds(slow)
  forSeeds({ ...slow, isInOrder: false })
  // What was searched on a link that ended is not searched again: there is more than one link can carry.
  forSeeds({ ...slow, foreignCount: 3 })
})
