import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import type { ConsumerKind, CursorRow, Partition, Stream, Topic, TopicOptions } from '../../../src/log/api.ts'
import type { DropTotal } from '../../../src/log/metadata/log-tables.ts'
import type { DroppedSegments, JournalHead, NewFinding, SealedSegment } from '../../../src/log/ports.ts'
import { RetentionLoop } from '../../../src/log/retention-loop.ts'
import { topicOptions } from '../../support/topic-options.ts'

const OPTIONS = topicOptions('durable')

/** One partition of segments of 10 messages and 100 bytes each, and everything around it. */
class World {
  readonly segments: SealedSegment[] = []
  readonly inJournal: SealedSegment[] = []
  readonly offsets: { kind: ConsumerKind; consumerId: number; offset: bigint }[] = []
  readonly cursors: { route: string; row: CursorRow }[] = []
  readonly findings: NewFinding[] = []
  readonly saved = new Map<string, DropTotal>()
  readonly lastOffsets: (bigint | null)[] = []
  tasks: { delayMs: number; task: () => void }[] = []
  nowUs = 1_000_000n
  isClockTrusted = true
  active: SealedSegment | null = null
  readonly heads = new Map<number, JournalHead>()
  options = OPTIONS
  budgetBytes = 1_000_000
  sweepCount = 0
  cronTask: (() => void) | null = null
  refuse: EdgeError | null = null
  refuseBooks: EdgeError | null = null
  duringDelete: (() => void) | null = null
  /** Beside the one of the partition; their segments are the same. */
  readonly others: Topic[] = []
  readonly morePartitions: Partition[] = []
  dropping: ((key: number, count: number) => Promise<void>) | null = null
  readonly partition: Partition
  readonly loop: RetentionLoop

  constructor(segmentCount: number) {
    for (let index = 0; index < segmentCount; index++) {
      const [baseOffset, endOffset] = [BigInt(index * 10), BigInt(index * 10 + 10)]
      const times = { lastAppendUs: BigInt(index), isClockTrusted: true }
      this.segments.push({ baseOffset, endOffset, sizeBytes: 100, fileBytes: 100, messageCount: 10, ...times })
    }
    this.partition = this.createPartition()
    this.loop = this.createLoop()
  }

  createPartition(): Partition {
    const world = this
    const part = {
      key: 5,
      streamId: 1,
      topicId: 2,
      partitionId: 3,
      get sizeBytes() {
        return world.usedBytes()
      },
    }
    return part as unknown as Partition
  }

  drop(count: number): DroppedSegments | undefined {
    const files = this.segments.splice(0, count)
    const dropped = [...files, ...this.inJournal.splice(0, count - files.length)]
    const [first, last] = [dropped.at(0), dropped.at(-1)]
    if (first === undefined || last === undefined) return undefined
    return {
      count: dropped.length,
      fromOffset: first.baseOffset,
      endOffset: last.endOffset,
      messageCount: dropped.reduce((sum, { messageCount }) => sum + messageCount, 0),
      sizeBytes: dropped.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    }
  }

  usedBytes(): number {
    return this.segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) + (this.active?.sizeBytes ?? 0)
  }

  createLoop(): RetentionLoop {
    const topic = (): Topic => ({
      id: 2,
      streamId: 1,
      name: 't',
      createdAtUs: 0n,
      options: this.options,
      partitions: [this.partition],
    })
    const stable = topic()
    const others = () => this.others.map((each) => [each.id, each] as const)
    const catalog = {
      get streams(): ReadonlyMap<number, Stream> {
        return new Map([[1, { id: 1, name: 's', createdAtUs: 0n, topics: new Map([[2, stable], ...others()]) }]])
      },
    }
    Object.defineProperty(stable, 'options', { get: () => this.options })
    Object.defineProperty(stable, 'partitions', { get: () => [this.partition, ...this.morePartitions] })
    return new RetentionLoop({
      settings: { schedule: '* * * * *', disk_budget: this.budgetBytes, free_space_floor: 0 },
      clock: { wallUs: () => this.nowUs, monotonicUs: () => 0 },
      isClockTrusted: () => this.isClockTrusted,
      scheduler: {
        nextTurn: (task) => task(),
        after: (delayMs, task) => {
          const timer = { delayMs, task }
          this.tasks.push(timer)
          return () => {
            this.tasks = this.tasks.filter((other) => other !== timer)
          }
        },
      },
      cron: {
        schedule: async (_expression, task) => {
          this.cronTask = task
          return () => {
            this.cronTask = null
          }
        },
      },
      catalog,
      metadata: { offsetsOf: () => this.offsets, cursorsOf: () => this.cursors },
      drops: {
        load: () => [...this.saved.values()],
        save: (totals, removedKeys) => {
          if (this.refuseBooks !== null) throw this.refuseBooks
          for (const [name, { partitionKey }] of this.saved)
            if (removedKeys.includes(partitionKey)) this.saved.delete(name)
          for (const total of totals) this.saved.set(`${total.partitionKey}/${total.reason}`, total)
        },
      },
      segments: {
        sealedSegments: () => [...this.segments],
        journalSegments: () => [...this.inJournal],
        hasLargeBatches: () => false,
        activeSegment: () => this.active,
        sealActive: async () => {
          if (this.active !== null) this.segments.push(this.active)
          this.active = null
        },
        dropOldest: async (key, count, lastOffset) => {
          await this.dropping?.(key, count)
          this.duringDelete?.()
          if (this.refuse !== null) throw this.refuse
          this.lastOffsets.push(lastOffset)
          return this.drop(count)
        },
        diskUsedBytes: () => this.usedBytes(),
      },
      stuckJournal: {
        heads: () => this.heads,
        drop: async (key) => this.heads.delete(key),
      },
      fileSystem: { space: () => ({ freeBytes: 1e12, totalBytes: 1e12 }) },
      quarantine: {
        sweep: () => {
          this.sweepCount++
          return []
        },
      },
      report: (finding) => this.findings.push(finding),
    })
  }

  events(): string[] {
    return this.findings.map(({ event }) => event)
  }
}

function otherTopic(key: number, options: TopicOptions): Topic {
  const place = { streamId: 1, topicId: key, partitionId: 0 }
  const partition = { key, ...place, sizeBytes: 0 } as unknown as Partition
  return { id: key, streamId: 1, name: `t${key}`, createdAtUs: 0n, options, partitions: [partition] }
}

let world: World

beforeEach(() => {
  world = new World(5)
})

test('expired segments go, and are in the books with their offsets, also after a restart', async () => {
  world.options = { ...OPTIONS, messageExpiryUs: 999_998n }
  await world.loop.run()
  assert.equal(world.segments.length, 2)
  const [range] = world.loop.ledger.report().recent
  assert.deepEqual(
    [range?.key, range?.reason, range?.fromOffset, range?.endOffset, range?.messageCount],
    [5, 'expired', 0n, 30n, 30],
  )
  assert.equal(world.createLoop().ledger.totalMessages(), 30)
  assert.deepEqual(world.events(), [])
})

test('the slowest of consumers and sync routes holds segments back', async () => {
  world.options = { ...OPTIONS, messageExpiryUs: 0n }
  world.offsets.push({ kind: 'consumer', consumerId: 1, offset: 40n }, { kind: 'group', consumerId: 1, offset: 29n })
  world.cursors.push({ route: 'central', row: { confirmedOffset: 19n, upstreamOffset: null } })
  await world.loop.run()
  assert.equal(world.segments.length, 3)
  assert.deepEqual(world.lastOffsets, [19n])
  world.cursors.length = 0
  await world.loop.run()
  assert.equal(world.segments.length, 2)
})

test('unread messages that the disk budget takes are an error with their range', async () => {
  world.cursors.push({ route: 'central', row: { confirmedOffset: -1n, upstreamOffset: null } })
  world.budgetBytes = 350
  const loop = world.createLoop()
  await loop.run()
  assert.equal(world.segments.length, 3)
  assert.deepEqual(world.lastOffsets, [null])
  const [finding] = world.findings
  assert.equal(finding?.event, 'log.retention.unread_dropped')
  assert.equal(finding?.level, 'error')
  assert.match(finding?.text ?? '', /20 messages of stream "s", topic "t", partition 3 are gone .* offsets 0 to 19$/)
  assert.deepEqual(
    [finding?.fields.from_offset, finding?.fields.end_offset, finding?.fields.message_count],
    [0n, 20n, 20],
  )
  assert.deepEqual(loop.ledger.report().byReason.get('disk-budget-unread'), { messageCount: 20, sizeBytes: 200 })
})

test('a loss that goes on is told as one, from its first offset on', async () => {
  world.cursors.push({ route: 'central', row: { confirmedOffset: -1n, upstreamOffset: null } })
  world.budgetBytes = 450
  const loop = world.createLoop()
  await loop.run()
  world.segments.push(...new World(6).segments.slice(5))
  await loop.run()
  const [first, second] = world.findings
  assert.match(first?.text ?? '', /10 messages .* offsets 0 to 9$/)
  assert.match(second?.text ?? '', /20 messages .* offsets 0 to 19$/)
  assert.deepEqual([second?.series, second?.fields.message_count], [first?.series, 20])
})

test('a segment that still grows is sealed before the disk budget takes it, and counted as it is then', async () => {
  const active = { baseOffset: 50n, endOffset: 60n, sizeBytes: 100, fileBytes: 100, messageCount: 10, lastAppendUs: 9n }
  world.active = { ...active, endOffset: 70n, messageCount: 20, isClockTrusted: true }
  world.budgetBytes = 0
  const loop = world.createLoop()
  await loop.run()
  assert.equal(world.active, null)
  assert.equal(world.segments.length, 0)
  const [range] = loop.ledger.report().recent
  assert.deepEqual([range?.fromOffset, range?.endOffset, range?.messageCount], [0n, 70n, 70])
})

test('segments that are closed in the journal are dropped by age, and what grows stays as it is', async () => {
  const times = { lastAppendUs: 9n, isClockTrusted: true }
  world.active = { baseOffset: 50n, endOffset: 60n, sizeBytes: 50, fileBytes: 50, messageCount: 10, ...times }
  world.inJournal.push({ baseOffset: 50n, endOffset: 75n, sizeBytes: 120, fileBytes: 50, messageCount: 25, ...times })
  world.options = { ...OPTIONS, messageExpiryUs: 0n }
  await world.loop.run()
  assert.notEqual(world.active, null)
  assert.equal(world.inJournal.length, 0)
  const [range] = world.loop.ledger.report().recent
  assert.deepEqual([range?.fromOffset, range?.endOffset, range?.messageCount, range?.sizeBytes], [0n, 75n, 75, 620])
})

test('for age nothing goes that was not planned, for the disk a file that has grown since', async () => {
  const planned = { offset: 1_000n, kind: 'consumer', consumerId: 1 } as const
  world.offsets.push(planned)
  world.options = { ...OPTIONS, messageExpiryUs: 999_998n }
  await world.loop.run()
  assert.deepEqual(world.lastOffsets, [29n], 'three of five had expired')
  world.budgetBytes = 100
  await world.createLoop().run()
  assert.deepEqual(world.lastOffsets, [29n, 1_000n])
})

test('a partition whose segments cannot be dropped does not keep the others from it', async () => {
  world.options = { ...OPTIONS, messageExpiryUs: 0n }
  world.refuse = new EdgeError('EDGE_IO', 'EIO')
  await world.loop.run()
  assert.deepEqual(world.events(), ['log.retention.failed'])
  assert.equal(world.sweepCount, 1, 'the rest of the run was done')
  world.refuse = null
  await world.loop.run()
  assert.equal(world.segments.length, 0)
})

test('a full topic is told once, refuses appends, and once more when it has room', async () => {
  world.options = { ...OPTIONS, overflow: 'reject', maxSizeBytes: 400n }
  assert.equal(world.loop.refusal(5), null)
  await world.loop.run()
  await world.loop.run()
  assert.equal(world.loop.refusal(5), 'reject')
  world.options = { ...OPTIONS, overflow: 'reject', maxSizeBytes: 4000n }
  await world.loop.run()
  assert.equal(world.loop.refusal(5), null)
  assert.deepEqual(world.events(), ['log.topic.full', 'log.topic.room'])
  assert.equal(world.findings[0]?.text, 'stream "s", topic "t" is full (overflow reject)')
})

test('room that others made is seen within seconds, and looking for it writes nothing', async () => {
  world.options = { ...OPTIONS, overflow: 'reject' }
  world.budgetBytes = 400
  const loop = world.createLoop()
  await loop.run()
  assert.deepEqual([loop.refusal(5), loop.isOverBudget], ['reject', true])
  const sweeps = world.sweepCount
  const look = () => {
    const [timer, ...others] = world.tasks.splice(0)
    assert.deepEqual([timer?.delayMs, others.length], [2_000, 0])
    timer?.task()
  }
  look()
  assert.equal(world.sweepCount, sweeps, 'nothing has changed: no run')
  world.segments.shift()
  look()
  await loop.run()
  assert.deepEqual([loop.refusal(5), loop.isOverBudget], [null, false])
  assert.deepEqual(world.tasks, [], 'nobody waits for room: the schedule will do')
})

test('room is seen also where as many others have become full', async () => {
  world.options = { ...OPTIONS, overflow: 'reject', maxSizeBytes: 400n }
  const other = otherTopic(6, { ...OPTIONS, overflow: 'reject', maxSizeBytes: 1_000n })
  world.others.push(other)
  await world.loop.run()
  assert.deepEqual([world.loop.refusal(5), world.loop.refusal(6)], ['reject', null])
  world.segments.splice(0, 3)
  Object.assign(other.partitions[0] ?? {}, { sizeBytes: 1_000 })
  world.tasks.shift()?.task()
  await new Promise(setImmediate)
  assert.deepEqual([world.loop.refusal(5), world.loop.refusal(6)], [null, 'reject'])
})

test('a stop waits for the topic whose segments go now, not for the next', async () => {
  world.options = { ...OPTIONS, messageExpiryUs: 999_999n }
  world.others.push(otherTopic(6, world.options))
  let closed: Promise<void> | undefined
  world.duringDelete = () => {
    closed ??= world.loop.close()
  }
  await world.loop.run()
  await closed
  assert.equal(world.lastOffsets.length, 1)
  assert.equal(world.loop.ledger.totalMessages(), 20, 'what went is in the books')
})

test('partitions of a topic go at a time, and a partition that is full for two reasons one after the other', async () => {
  world.options = { ...OPTIONS, messageExpiryUs: 999_999n, maxSizeBytes: 500n }
  const asked: string[] = []
  let open: (() => void) | undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const second = otherTopic(6, world.options).partitions[0]
  assert.ok(second !== undefined)
  world.morePartitions.push({ ...second, sizeBytes: 500 })
  world.dropping = async (key, count) => {
    asked.push(`${key}: ${count}`)
    if (asked.length === 2) open?.()
    await opened
    asked.push(`${key} done`)
  }
  await world.loop.run()
  assert.deepEqual(asked, ['5: 2', '6: 2', '5 done', '6 done', '5: 1', '5 done'])
})

test('a loop that is closed looks for no room any more', async () => {
  world.options = { ...OPTIONS, overflow: 'reject', maxSizeBytes: 400n }
  await world.loop.run()
  assert.equal(world.tasks.length, 1)
  await world.loop.close()
  assert.deepEqual(world.tasks, [])
})

test('what a full topic did not take is counted and saved', async () => {
  world.loop.droppedNewest(5, 50n, 7, 70)
  await world.loop.close()
  assert.deepEqual(
    [...world.saved.values()].map(({ reason, messageCount, fromOffset }) => [reason, messageCount, fromOffset]),
    [['drop-newest', 7, 50n]],
  )
})

test('it runs at the start, by the schedule, and once for many closed segments', async () => {
  await world.loop.start()
  assert.deepEqual(
    world.tasks.map(({ delayMs }) => delayMs),
    [0],
  )
  world.tasks.shift()?.task()
  await world.loop.run()
  const sweeps = world.sweepCount
  for (let index = 0; index < 10; index++) world.loop.segmentsChanged()
  assert.equal(world.tasks.length, 1)
  world.tasks.shift()
  await world.loop.close()
  world.cronTask?.()
  world.loop.segmentsChanged()
  assert.equal(world.tasks.length, 0, 'closed: nothing more is scheduled')
  assert.equal(world.cronTask, null)
  assert.ok(sweeps >= 1)
})

test('a run that is asked for during a run is made after it', async () => {
  world.options = { ...OPTIONS, messageExpiryUs: 999_999n }
  let asked: Promise<void> | undefined
  world.duringDelete = () => {
    world.duringDelete = null
    world.nowUs += 1n
    asked = world.loop.run()
  }
  await world.loop.run()
  await asked
  assert.equal(world.segments.length, 2, 'two by the first run, one more by the second')
})

test('a disk that refuses is told once and tried again', async () => {
  world.options = { ...OPTIONS, messageExpiryUs: 0n }
  world.refuse = new EdgeError('EDGE_IO', 'EIO')
  await world.loop.run()
  await world.loop.run()
  assert.deepEqual(world.events(), ['log.retention.failed'])
  world.refuse = null
  await world.loop.run()
  assert.equal(world.segments.length, 0)
  assert.equal(world.loop.ledger.totalMessages(), 50)
})

test('a disk that refuses the books at the end is told, and the loop is closed all the same', async () => {
  const world = new World(0)
  world.loop.droppedNewest(5, 50n, 7, 70)
  world.refuseBooks = new EdgeError('EDGE_IO', 'EROFS')
  await world.loop.close()
  assert.deepEqual(
    world.findings.map(({ event }) => event),
    ['log.retention.failed'],
  )
})

test('a disk without room is told in units, and once', async () => {
  world.options = { ...OPTIONS, overflow: 'reject' }
  world.segments.push({
    baseOffset: 50n,
    endOffset: 60n,
    sizeBytes: 3 * 1024 ** 3,
    fileBytes: 3 * 1024 ** 3,
    messageCount: 10,
    lastAppendUs: 5n,
    isClockTrusted: true,
  })
  await world.loop.run()
  await world.loop.run()
  const told = world.findings.filter(({ event }) => event === 'log.disk.over_budget')
  assert.equal(told.length, 1)
  assert.match(told[0]?.text ?? '', /^the disk is 3\.0 GiB over the budget/)
  assert.equal(told[0]?.fields.excess_bytes, 3 * 1024 ** 3 + 500 - world.budgetBytes)
})

test('a journal that is stuck names the topics that keep it so', async () => {
  world.options = { ...OPTIONS, overflow: 'reject' }
  world.heads.set(5, { fromOffset: 50n, endOffset: 60n, messageCount: 10, sizeBytes: 100 })
  await world.loop.run()
  const told = world.findings.find(({ event }) => event === 'log.journal.stuck')
  assert.match(told?.text ?? '', /topics that drop nothing \(stream "s", topic "t"\) cannot be moved/)
})
