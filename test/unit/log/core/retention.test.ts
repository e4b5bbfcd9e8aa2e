import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type DiskState,
  planRetention,
  type RetentionPartition,
  type RetentionPlan,
  type RetentionTopic,
} from '../../../../src/log/core/retention.ts'
import type { JournalHead, SealedSegment } from '../../../../src/log/ports.ts'

const ROOMY: DiskState = { usedBytes: 0, budgetBytes: 1e12, freeBytes: 1e12, freeFloorBytes: 0 }
const NOW = 1_000_000n

/** Segments of 10 messages and 100 bytes, appended last at these times. */
function segments(...timesUs: readonly number[]): SealedSegment[] {
  return timesUs.map((timeUs, index) => ({
    baseOffset: BigInt(index * 10),
    endOffset: BigInt(index * 10 + 10),
    sizeBytes: 100,
    fileBytes: 100,
    messageCount: 10,
    lastAppendUs: BigInt(timeUs),
    isClockTrusted: true,
  }))
}

function partition(
  key: number,
  sealed: readonly SealedSegment[],
  barrierOffset: bigint | null = null,
): RetentionPartition {
  const sealedBytes = sealed.reduce((sum, segment) => sum + segment.sizeBytes, 0)
  return { key, sizeBytes: sealedBytes + 50, sealed, inJournal: [], active: null, barrierOffset, journalHead: null }
}

function topic(part: Partial<RetentionTopic>): RetentionTopic {
  return { overflow: 'drop-oldest', messageExpiryUs: null, maxSizeBytes: null, partitions: [], ...part }
}

function plan(topics: readonly RetentionTopic[], disk: DiskState = ROOMY, isClockTrusted = true): RetentionPlan {
  return planRetention({ nowUs: NOW, isClockTrusted, topics, disk })
}

/** Keys and counts of what goes, in order. */
function gone({ evictions }: RetentionPlan): (readonly [number, string, number])[] {
  return evictions.map(({ key, reason, segments: taken }) => [key, reason, taken.length] as const)
}

const head = (endOffset: bigint, sizeBytes = 100): JournalHead => {
  return { fromOffset: 0n, endOffset, messageCount: Number(endOffset), sizeBytes }
}

/** A partition without a segment, whose messages keep the oldest journal file from coming free. */
function stuck(key: number, barrierOffset: bigint | null = null): RetentionPartition {
  return { ...partition(key, [], barrierOffset), journalHead: head(10n) }
}

const journalGone = ({ journalEvictions }: RetentionPlan): unknown[] =>
  journalEvictions.map(({ key, reason, head: { endOffset } }) => [key, reason, endOffset])

test('a journal that is stuck on a full disk is freed of all that drop-oldest topics have in its oldest file', () => {
  const full = { ...ROOMY, freeBytes: 0 }
  const topics = [topic({ partitions: [stuck(1), stuck(2, 5n)] }), topic({ partitions: [stuck(3, 9n)] })]
  assert.deepEqual(journalGone(plan(topics, full)), [
    [1, 'disk-budget', 10n],
    [2, 'disk-budget-unread', 10n],
    [3, 'disk-budget', 10n],
  ])
})

test('nothing goes in vain: not where others need room that is not there, and not before segments went', () => {
  const full = { ...ROOMY, freeBytes: 0 }
  const mixed = [topic({ partitions: [stuck(1)] }), topic({ overflow: 'reject', partitions: [stuck(2)] })]
  assert.deepEqual(journalGone(plan(mixed, full)), [])
  assert.deepEqual(journalGone(plan(mixed, { ...full, freeBytes: 100 })), [[1, 'disk-budget', 10n]])
  const withSegments = [topic({ partitions: [{ ...stuck(1), sealed: segments(1, 2) }] })]
  assert.deepEqual(journalGone(plan(withSegments, { ...full, freeFloorBytes: 150 })), [])
})

test('a disk that refuses though the limits see room costs the oldest segments, as much as is stuck, not the journal', () => {
  const own = { ...stuck(1), sealed: segments(1, 3, 5), journalHead: { ...head(40n, 150), fromOffset: 30n } }
  const others = [partition(2, segments(2, 4), 9n), partition(3, segments(0))]
  const topics = [topic({ partitions: [own, ...others] }), topic({ overflow: 'reject', partitions: [stuck(4)] })]
  const planned = plan(topics)
  assert.deepEqual(journalGone(planned), [])
  assert.deepEqual(gone(planned), [
    [3, 'disk-budget', 1],
    [1, 'disk-budget', 1],
    [2, 'disk-budget', 1],
  ])
  const unread = { ...own, barrierOffset: 4n }
  assert.deepEqual(gone(plan([topic({ partitions: [unread] })])), [[1, 'disk-budget-unread', 2]])
})

test('a topic without limits on a roomy disk keeps everything', () => {
  assert.deepEqual(gone(plan([topic({ partitions: [partition(1, segments(1, 2, 3))] })])), [])
})

test('a segment expires when its last message is as old as the expiry, to the microsecond', () => {
  const partitions = [partition(1, segments(999_899, 999_900, 999_901))]
  assert.deepEqual(gone(plan([topic({ messageExpiryUs: 100n, partitions })])), [[1, 'expired', 2]])
})

test('an expiry of nothing takes all sealed segments, the longest expiry none', () => {
  const partitions = [partition(1, segments(1, 2, 1_000_000))]
  assert.deepEqual(gone(plan([topic({ messageExpiryUs: 0n, partitions })])), [[1, 'expired', 3]])
  assert.deepEqual(gone(plan([topic({ messageExpiryUs: 2n ** 63n, partitions })])), [])
})

test('nothing expires while the clock cannot be trusted, now or when the segment was written', () => {
  const [first, second] = segments(1, 2)
  assert.ok(first && second)
  assert.deepEqual(
    gone(plan([topic({ messageExpiryUs: 0n, partitions: [partition(1, segments(1))] })], ROOMY, false)),
    [],
  )
  const untrusted = [{ ...first, isClockTrusted: false }]
  assert.deepEqual(gone(plan([topic({ messageExpiryUs: 0n, partitions: [partition(1, untrusted)] })])), [])
})

test('a segment without a trusted time expires with the first one behind it that has one', () => {
  const [first, second, third] = segments(1, 2, 999_950)
  assert.ok(first && second && third)
  const untrusted = [{ ...first, isClockTrusted: false }, { ...second, isClockTrusted: false }, third]
  const expiring = (expiryUs: bigint) => topic({ messageExpiryUs: expiryUs, partitions: [partition(1, untrusted)] })
  assert.deepEqual(gone(plan([expiring(51n)])), [], 'the first could be as young as the third')
  assert.deepEqual(gone(plan([expiring(50n)])), [[1, 'expired', 3]])
})

test('a segment that still grows goes for the disk budget, after all that are older, and for nothing else', () => {
  const [active] = segments(5)
  assert.ok(active)
  const growing = { ...partition(1, []), sizeBytes: 150, active }
  const other = partition(2, segments(3, 9))
  const topics = [
    topic({ messageExpiryUs: 0n, maxSizeBytes: 10n, partitions: [growing] }),
    topic({ partitions: [other] }),
  ]
  assert.deepEqual(gone(plan(topics)), [])
  assert.deepEqual(gone(plan(topics, { ...ROOMY, usedBytes: 1000, budgetBytes: 850 })), [
    [2, 'disk-budget', 1],
    [1, 'disk-budget', 1],
  ])
})

test('expiry stops before the segment whose last offset a consumer has not reached', () => {
  const atLast = topic({ messageExpiryUs: 0n, partitions: [partition(1, segments(1, 2, 3), 19n)] })
  assert.deepEqual(gone(plan([atLast])), [[1, 'expired', 2]])
  const oneBefore = topic({ messageExpiryUs: 0n, partitions: [partition(1, segments(1, 2, 3), 18n)] })
  assert.deepEqual(gone(plan([oneBefore])), [[1, 'expired', 1]])
  const nothingConfirmed = topic({ messageExpiryUs: 0n, partitions: [partition(1, segments(1, 2, 3), -1n)] })
  assert.deepEqual(gone(plan([nothingConfirmed])), [])
})

test('a topic over its size gives up its oldest segments over all partitions, and no more than suffices', () => {
  const partitions = [partition(1, segments(10, 40)), partition(2, segments(20, 30))]
  assert.deepEqual(gone(plan([topic({ maxSizeBytes: 500n, partitions })])), [])
  assert.deepEqual(gone(plan([topic({ maxSizeBytes: 499n, partitions })])), [[1, 'topic-size', 1]])
  assert.deepEqual(gone(plan([topic({ maxSizeBytes: 400n, partitions })])), [[1, 'topic-size', 1]])
  assert.deepEqual(gone(plan([topic({ maxSizeBytes: 399n, partitions })])), [
    [1, 'topic-size', 1],
    [2, 'topic-size', 1],
  ])
})

test('what expired counts as gone before the size is looked at', () => {
  const partitions = [partition(1, segments(1, 999_999))]
  const result = plan([topic({ messageExpiryUs: 100n, maxSizeBytes: 150n, partitions })])
  assert.deepEqual(gone(result), [[1, 'expired', 1]])
})

test('the barrier holds against the size of a topic', () => {
  const partitions = [partition(1, segments(1, 2), 3n), partition(2, segments(5, 6))]
  const result = plan([topic({ maxSizeBytes: 10n, partitions })])
  assert.deepEqual(gone(result), [[2, 'topic-size', 2]])
})

test('a full topic that may not drop takes nothing more and loses nothing', () => {
  for (const overflow of ['reject', 'drop-newest'] as const) {
    const partitions = [partition(1, segments(1)), partition(2, segments(2))]
    const result = plan([topic({ overflow, maxSizeBytes: 300n, partitions })])
    assert.deepEqual(gone(result), [])
    assert.deepEqual(
      [...result.refusals],
      [
        [1, overflow],
        [2, overflow],
      ],
    )
    assert.equal(plan([topic({ overflow, maxSizeBytes: 301n, partitions })]).refusals.size, 0)
  }
})

test('over the disk budget the oldest segments of all topics go first, just enough of them', () => {
  const topics = [
    topic({ partitions: [partition(1, segments(30, 40))] }),
    topic({ partitions: [partition(2, segments(20, 50))] }),
  ]
  const disk = { ...ROOMY, usedBytes: 1000, budgetBytes: 850 }
  assert.deepEqual(gone(plan(topics, disk)), [
    [2, 'disk-budget', 1],
    [1, 'disk-budget', 1],
  ])
  assert.deepEqual(gone(plan(topics, { ...disk, budgetBytes: 900 })), [[2, 'disk-budget', 1]])
  assert.deepEqual(gone(plan(topics, { ...disk, budgetBytes: 1000 })), [])
})

test('the free-space floor works like the budget', () => {
  const topics = [topic({ partitions: [partition(1, segments(1, 2))] })]
  assert.deepEqual(gone(plan(topics, { ...ROOMY, freeBytes: 10, freeFloorBytes: 110 })), [[1, 'disk-budget', 1]])
  assert.deepEqual(gone(plan(topics, { ...ROOMY, freeBytes: 110, freeFloorBytes: 110 })), [])
})

test('unread segments go last, and only for the disk budget', () => {
  const topics = [
    topic({ partitions: [partition(1, segments(1, 2), -1n)] }),
    topic({ partitions: [partition(2, segments(5, 6))] }),
  ]
  const result = plan(topics, { ...ROOMY, usedBytes: 1000, budgetBytes: 700 })
  assert.deepEqual(gone(result), [
    [2, 'disk-budget', 2],
    [1, 'disk-budget-unread', 1],
  ])
})

test('topics that may not drop are closed before unread segments of others are given up', () => {
  const keeping = topic({ overflow: 'reject', partitions: [partition(1, segments(1))] })
  const unread = topic({ partitions: [partition(2, segments(5), -1n)] })
  const read = topic({ partitions: [partition(3, segments(9))] })
  const disk = { ...ROOMY, usedBytes: 1000, budgetBytes: 900 }
  assert.equal(plan([keeping, unread, read], disk).refusals.size, 0, 'what was read suffices')
  const result = plan([keeping, unread], disk)
  assert.deepEqual([...result.refusals], [[1, 'reject']])
  assert.deepEqual(gone(result), [[2, 'disk-budget-unread', 1]])
})

test('what no eviction can give back is told', () => {
  const result = plan([topic({ partitions: [partition(1, segments(1))] })], {
    ...ROOMY,
    usedBytes: 1000,
    budgetBytes: 500,
  })
  assert.equal(result.excessBytes, 400)
})

test('a clock that fell within a partition does not make a later segment go before an earlier one', () => {
  const topics = [
    topic({ partitions: [partition(1, segments(500, 1, 2))] }),
    topic({ partitions: [partition(2, segments(100))] }),
  ]
  const result = plan(topics, { ...ROOMY, usedBytes: 1000, budgetBytes: 800 })
  assert.deepEqual(gone(result), [
    [2, 'disk-budget', 1],
    [1, 'disk-budget', 1],
  ])
})

// ---- the same rules on generated stores ------------------------------------------------------------------------------

function createRandom(seed: number): (end: number) => number {
  let state = seed
  return (end) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * end)
  }
}

function generate(random: (end: number) => number): { topics: RetentionTopic[]; disk: DiskState } {
  let key = 1
  const topics = Array.from({ length: 1 + random(4) }, () => {
    const partitions = Array.from({ length: random(4) }, () => {
      let offset = random(50)
      let timeUs = random(900_000)
      const sealed = Array.from({ length: random(8) }, () => {
        const baseOffset = BigInt(offset)
        offset += 1 + random(30)
        timeUs += random(40_000)
        const messageCount = offset - Number(baseOffset)
        const isClockTrusted = random(10) > 0
        const sizeBytes = 1 + random(500)
        return {
          baseOffset,
          endOffset: BigInt(offset),
          sizeBytes,
          fileBytes: sizeBytes,
          messageCount,
          lastAppendUs: BigInt(timeUs),
          isClockTrusted,
        }
      })
      return partition(key++, sealed, random(2) === 0 ? null : BigInt(random(offset + 10) - 1))
    })
    return topic({
      overflow: (['drop-oldest', 'drop-oldest', 'drop-newest', 'reject'] as const)[random(4)] ?? 'reject',
      messageExpiryUs: random(2) === 0 ? null : BigInt(random(1_000_000)),
      maxSizeBytes: random(2) === 0 ? null : BigInt(random(3000)),
      partitions,
    })
  })
  const usedBytes = topics.flatMap(({ partitions }) => partitions).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  return {
    topics,
    disk: {
      usedBytes,
      budgetBytes: random(2) === 0 ? 1e9 : random(usedBytes + 1),
      freeBytes: random(1000),
      freeFloorBytes: random(600),
    },
  }
}

test('on any store: oldest first, never past the barrier but for the budget, least that suffices, books balance', () => {
  for (let seed = 1; seed <= 3000; seed++) {
    const { topics, disk } = generate(createRandom(seed))
    const result = plan(topics, disk)
    const partitions = new Map(
      topics.flatMap((owner) => owner.partitions.map((own) => [own.key, { own, owner }] as const)),
    )
    const takenOf = new Map<number, SealedSegment[]>()
    for (const { key, reason, segments: taken } of result.evictions) {
      const place = partitions.get(key)
      assert.ok(place && taken.length > 0, `seed ${seed}`)
      takenOf.set(key, [...(takenOf.get(key) ?? []), ...taken])
      const { barrierOffset } = place.own
      for (const segment of taken) {
        const isRead = barrierOffset === null || barrierOffset >= segment.endOffset - 1n
        if (reason !== 'disk-budget-unread') assert.ok(isRead, `seed ${seed}: key ${key} past its barrier by ${reason}`)
      }
      if (reason !== 'expired') assert.equal(place.owner.overflow, 'drop-oldest', `seed ${seed}`)
    }
    let freedBytes = 0
    for (const [key, taken] of takenOf) {
      assert.deepEqual(
        taken,
        partitions.get(key)?.own.sealed.slice(0, taken.length),
        `seed ${seed}: a prefix, each once`,
      )
      freedBytes += taken.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    }
    checkLeast(result, disk, freedBytes, `seed ${seed}`)
  }
})

/** Without its last segment the disk would still be over; and nothing is left over that could be given back. */
function checkLeast(result: RetentionPlan, disk: DiskState, freedBytes: number, label: string): void {
  const excess = (freed: number) =>
    Math.max(disk.usedBytes - freed - disk.budgetBytes, disk.freeFloorBytes - disk.freeBytes - freed)
  assert.equal(result.excessBytes, Math.max(0, excess(freedBytes)), label)
  const budgetEvictions = result.evictions.filter(({ reason }) => reason.startsWith('disk-budget'))
  if (budgetEvictions.length === 0) return
  const lastOnes = budgetEvictions.map(({ segments: taken }) => taken.at(-1)?.sizeBytes ?? 0)
  assert.ok(
    lastOnes.some((sizeBytes) => excess(freedBytes - sizeBytes) > 0),
    `${label}: one segment less would not have been enough`,
  )
}

test('segments that are closed in the journal go by age and by the size of their topic, behind those in files', () => {
  const [first, second, third] = segments(1, 2, 999_999).map((segment) => ({ ...segment, fileBytes: 0 }))
  assert.ok(first !== undefined && second !== undefined && third !== undefined)
  const held = { ...partition(1, [{ ...first, fileBytes: 100 }]), inJournal: [second, third], sizeBytes: 350 }
  assert.deepEqual(gone(plan([topic({ messageExpiryUs: 100n, partitions: [held] })])), [[1, 'expired', 2]])
  assert.deepEqual(gone(plan([topic({ maxSizeBytes: 200n, partitions: [held] })])), [[1, 'topic-size', 2]])
  const behind = { ...held, barrierOffset: 9n }
  assert.deepEqual(gone(plan([topic({ maxSizeBytes: 0n, partitions: [behind] })])), [[1, 'topic-size', 1]])
})

test('what lies in the journal is not dropped for a full disk: that would free nothing', () => {
  const [file, inJournal, active] = segments(1, 2, 3)
  assert.ok(file !== undefined && inJournal !== undefined && active !== undefined)
  const part = { ...partition(1, [file]), inJournal: [{ ...inJournal, fileBytes: 0 }] }
  const full = { ...ROOMY, usedBytes: 1000, budgetBytes: 0 }
  const found = plan([topic({ partitions: [part] })], full)
  assert.deepEqual([gone(found), found.excessBytes], [[[1, 'disk-budget', 1]], 900])
  // It was dropped by age with what grows; nothing is left to take for the disk.
  const old = topic({ messageExpiryUs: 100n, partitions: [{ ...part, active }] })
  assert.deepEqual(gone(plan([old], full)), [[1, 'expired', 2]])
})

test('large batches of the journal go for a full disk, with what lies before them', () => {
  const [file, small, large, last, active] = segments(1, 2, 3, 4, 2)
  assert.ok(file && small && large && last && active)
  const inJournal = [
    { ...small, fileBytes: 0 },
    { ...large, fileBytes: 90 },
    { ...last, fileBytes: 0 },
  ]
  const full = { ...ROOMY, usedBytes: 1000, budgetBytes: 0 }
  const found = plan([topic({ partitions: [{ ...partition(1, [file]), inJournal }] })], full)
  assert.deepEqual([gone(found), found.excessBytes], [[[1, 'disk-budget', 3]], 810])

  // The first segment of the journal has the one that grows in it, which is not counted twice.
  const growing = [{ ...small, fileBytes: 100 }, ...inJournal.slice(1)]
  const both = plan([topic({ partitions: [{ ...partition(1, [file]), inJournal: growing, active }] })], full)
  assert.deepEqual([gone(both), both.excessBytes], [[[1, 'disk-budget', 3]], 710])
})

test('where nothing has to go, no segment is looked into', () => {
  const unread = segments(1, 2).map((segment) => ({
    ...segment,
    get lastAppendUs(): bigint {
      throw new Error('the time of a segment was read')
    },
  }))
  const topics = [topic({ maxSizeBytes: 1000n, partitions: [partition(1, unread), partition(2, unread, 3n)] })]
  assert.deepEqual(gone(plan(topics)), [])
})

test('of thousands of segments without a trusted time each is looked at once', () => {
  const count = 2000
  let lookCount = 0
  const sealed = segments(...Array.from({ length: count }, () => 9_000_000), 500).map((segment, at) => ({
    ...segment,
    get isClockTrusted(): boolean {
      lookCount++
      return at === count
    },
  }))
  const topics = [topic({ messageExpiryUs: 500_000n, partitions: [partition(1, sealed)] })]
  assert.deepEqual(gone(plan(topics)), [[1, 'expired', count + 1]])
  assert.ok(lookCount <= 2 * count, `${lookCount} looks`)
})
