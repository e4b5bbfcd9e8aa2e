/**
 * Carries out what `core/retention.ts` plans: by the schedule, and soon after segments were closed. One run at a time; what
 * is asked for meanwhile is one more run. Every message given up is in the books before the run ends.
 */
import { formatBytes } from '../byte-text.ts'
import type { Clock } from '../clock.ts'
import { EdgeError } from '../errors.ts'
import type { Catalog, DropReason, MetadataStore, Partition, Topic, TopicOptions } from './api.ts'
import { planDiskBudget } from './core/disk-budget.ts'
import { DropLedger } from './core/drop-ledger.ts'
import { earlier } from './core/offset.ts'
import {
  type Eviction,
  type JournalEviction,
  planRetention,
  type RetentionInput,
  type RetentionPartition,
  type RetentionPlan,
} from './core/retention.ts'
import type { Cron } from './cron.ts'
import type { FileSystem } from './io/file-system.ts'
import type { DropTotals } from './metadata/log-tables.ts'
import { lowestOffsetInUse } from './offsets-in-use.ts'
import { partitionText, topicText } from './place-text.ts'
import type { AppendGate, JournalHead, ReportFinding, SealedSegment, SegmentHost, StuckJournalHost } from './ports.ts'
import type { Quarantine } from './quarantine.ts'
import type { RetentionSettings } from './retention-settings.ts'
import type { Scheduler } from './scheduler.ts'

/** Topics that one finding names; of more it tells the number. */
const NAMED_TOPICS_MAX = 3
/** Segments are closed in bunches, one per partition of a repacked journal file: one run for all of them. */
const SEGMENTS_CHANGED_DELAY_MS = 50
/** While messages are refused or the disk is over its limits: others may have made room, and the schedule is far. */
const RELIEF_CHECK_MS = 2_000

export interface RetentionLoopOptions {
  readonly settings: RetentionSettings
  readonly clock: Clock
  /** Whether wall time can be trusted now; else nothing expires by age. */
  readonly isClockTrusted: () => boolean
  readonly scheduler: Scheduler
  readonly cron: Cron
  readonly catalog: Pick<Catalog, 'streams'>
  readonly metadata: Pick<MetadataStore, 'offsetsOf' | 'cursorsOf'>
  readonly drops: Pick<DropTotals, 'load' | 'save'>
  readonly segments: SegmentHost
  readonly stuckJournal: StuckJournalHost
  readonly fileSystem: Pick<FileSystem, 'space'>
  readonly quarantine: Pick<Quarantine, 'sweep'>
  readonly report: ReportFinding
}

/** Messages that somebody had not read, gone for want of space. */
interface UnreadLoss {
  readonly fromOffset: bigint
  readonly endOffset: bigint
  readonly messageCount: number
}

export class RetentionLoop implements AppendGate {
  readonly ledger = new DropLedger()
  readonly #options: RetentionLoopOptions
  #refusals: ReadonlyMap<number, 'reject' | 'drop-newest'> = new Map()
  #running: Promise<void> | null = null
  #isAskedAgain = false
  #isOverBudget = false
  #fullTopicCount = 0
  #isStuck = false
  #isFailing = false
  /** The last loss of each partition. */
  readonly #unread = new Map<number, UnreadLoss>()
  #isClosed = false
  #stopCron: (() => void) | null = null
  #cancelSoon: (() => void) | null = null
  #cancelReliefCheck: (() => void) | null = null

  constructor(options: RetentionLoopOptions) {
    this.#options = options
    for (const { partitionKey, reason, ...total } of options.drops.load()) {
      if (isDropReason(reason)) this.ledger.load({ ...total, key: partitionKey, reason })
    }
  }

  /** @throws EDGE_CONFIG_INVALID when the schedule is no cron expression. */
  async start(): Promise<void> {
    const stop = await this.#options.cron.schedule(this.#options.settings.schedule, () => this.#runSoon(0))
    if (this.#isClosed) stop()
    else this.#stopCron = stop
    this.#runSoon(0)
  }

  /** As the last run found it. */
  get isOverBudget(): boolean {
    return this.#isOverBudget
  }

  /** Topics that refuse or give up new messages. */
  get fullTopicCount(): number {
    return this.#fullTopicCount
  }

  /** @param totalBytes of the volume. */
  diskBudgetBytes(totalBytes: number): number {
    return this.#budget(totalBytes).budgetBytes
  }

  refusal(key: number): 'reject' | 'drop-newest' | null {
    return this.#refusals.get(key) ?? null
  }

  droppedNewest(key: number, nextOffset: bigint, messageCount: number, sizeBytes: number): void {
    const [fromOffset, endOffset] = [nextOffset, nextOffset]
    this.ledger.record({ key, reason: 'drop-newest', fromOffset, endOffset, messageCount, sizeBytes })
  }

  segmentsChanged(): void {
    this.#runSoon(SEGMENTS_CHANGED_DELAY_MS)
  }

  /** Runs now, or once more after the run under way. Resolves when a run that began after the call has ended. */
  async run(): Promise<void> {
    if (this.#running !== null) {
      this.#isAskedAgain = true
      return this.#running
    }
    // Begun in a later microtask: `#running` is set before anything in the run can ask for another.
    this.#running = Promise.resolve().then(() => this.#runAll())
    return this.#running
  }

  /** Waits for the run under way and saves the books; a disk that refuses them is told. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stopCron?.()
    this.#cancelSoon?.()
    await this.#running
    this.#cancelReliefCheck?.()
    try {
      this.#saveBooks()
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
      this.#reportFailure(error)
    }
  }

  #runSoon(delayMs: number): void {
    if (this.#isClosed || this.#cancelSoon !== null) return
    this.#cancelSoon = this.#options.scheduler.after(delayMs, () => {
      this.#cancelSoon = null
      // Failures of the disk were reported inside; what is left is a bug and must end the process.
      void this.run()
    })
  }

  async #runAll(): Promise<void> {
    try {
      do {
        this.#isAskedAgain = false
        await this.#runOnce()
      } while (this.#isAskedAgain && !this.#isClosed)
    } finally {
      // In the turn of the last look at `#isAskedAgain`: nobody can ask a run that will not look again.
      this.#running = null
      this.#checkReliefLater()
    }
  }

  #checkReliefLater(): void {
    this.#cancelReliefCheck?.()
    this.#cancelReliefCheck = null
    if (this.#isClosed || (this.#refusals.size === 0 && !this.#isOverBudget)) return
    this.#cancelReliefCheck = this.#options.scheduler.after(RELIEF_CHECK_MS, () => {
      if (this.#isRelieved()) void this.run()
      else this.#checkReliefLater()
    })
  }

  /** Looks only: a run writes to the disk, which is too much for every two seconds that a topic stays full. */
  #isRelieved(): boolean {
    try {
      const { refusals, excessBytes } = planRetention(this.#input(new Map(), new Map()))
      const hasRoom = [...this.#refusals.keys()].some((key) => !refusals.has(key))
      return hasRoom || (excessBytes === 0 && this.#isOverBudget)
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
      return false
    }
  }

  async #runOnce(): Promise<void> {
    const partitions = new Map<number, Partition>()
    const places = new Map<number, Topic>()
    try {
      const input = this.#input(partitions, places)
      const plan = planRetention(input)
      this.#announceRefusals(plan, places)
      for (const key of this.#unread.keys()) if (!places.has(key)) this.#unread.delete(key)
      const growing = new Set(input.topics.flatMap((topic) => topic.partitions.flatMap(({ active }) => active ?? [])))
      const failure = await this.#evictAll(plan, partitions, places, growing)
      this.#announceBudget(plan)
      this.#announceStuck(plan, places)
      this.#options.quarantine.sweep(this.#options.clock.wallUs())
      this.ledger.retain((key) => partitions.has(key))
      this.#saveBooks()
      if (failure !== undefined) this.#reportFailure(failure)
      else this.#isFailing = false
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
      this.#reportFailure(error)
    }
  }

  #input(partitions: Map<number, Partition>, places: Map<number, Topic>): RetentionInput {
    const topics = [...this.#options.catalog.streams.values()].flatMap((stream) => [...stream.topics.values()])
    for (const topic of topics) {
      for (const partition of topic.partitions) {
        partitions.set(partition.key, partition)
        places.set(partition.key, topic)
      }
    }
    const heads = this.#options.stuckJournal.heads()
    return {
      nowUs: this.#options.clock.wallUs(),
      isClockTrusted: this.#options.isClockTrusted(),
      topics: topics.map(({ options, partitions: own }) => ({
        overflow: options.overflow,
        messageExpiryUs: options.messageExpiryUs,
        maxSizeBytes: options.maxSizeBytes,
        partitions: own.map((partition) => this.#partitionInput(partition, options, heads.get(partition.key))),
      })),
      disk: this.#disk(),
    }
  }

  #partitionInput(
    { key, sizeBytes }: Partition,
    { messageExpiryUs, maxSizeBytes }: TopicOptions,
    journalHead: JournalHead | undefined,
  ): RetentionPartition {
    const { segments } = this.#options
    const [sealed, active] = [segments.sealedSegments(key), segments.activeSegment(key)]
    // Found by a look at every batch, so only where they may go.
    const mayGo = messageExpiryUs !== null || maxSizeBytes !== null || segments.hasLargeBatches(key)
    const inJournal = mayGo ? segments.journalSegments(key) : []
    const barrierOffset = lowestOffsetInUse(this.#options.metadata, key)
    return { key, sizeBytes, sealed, inJournal, active, barrierOffset, journalHead: journalHead ?? null }
  }

  #disk() {
    const { freeBytes, totalBytes } = this.#options.fileSystem.space()
    return { ...this.#budget(totalBytes), usedBytes: this.#options.segments.diskUsedBytes(), freeBytes }
  }

  #budget(totalBytes: number) {
    const { disk_budget: budget, free_space_floor: freeFloor } = this.#options.settings
    return planDiskBudget({ budget, freeFloor }, totalBytes)
  }

  /**
   * What cannot be dropped in one place holds up nothing else. Partitions of a topic go at a time, since one file tells where
   * they begin; what a stop leaves is for the next start.
   *
   * @returns the first failure.
   */
  async #evictAll(
    { evictions, journalEvictions }: RetentionPlan,
    partitions: ReadonlyMap<number, Partition>,
    places: ReadonlyMap<number, Topic>,
    growing: ReadonlySet<SealedSegment>,
  ): Promise<EdgeError | undefined> {
    let failure: EdgeError | undefined
    const attempt = async (task: () => Promise<void>): Promise<void> => {
      try {
        await task()
      } catch (error) {
        if (!(error instanceof EdgeError)) throw error
        failure ??= error
      }
    }
    for (const own of Map.groupBy(evictions, ({ key }) => places.get(key)).values()) {
      if (this.#isClosed) return failure
      await Promise.all(
        [...Map.groupBy(own, ({ key }) => key)].map(async ([key, ofPartition]) => {
          for (const eviction of ofPartition) await attempt(() => this.#evict(eviction, partitions.get(key), growing))
        }),
      )
    }
    for (const eviction of journalEvictions) {
      if (this.#isClosed) return failure
      await attempt(() => this.#evictHead(eviction, partitions.get(eviction.key)))
    }
    return failure
  }

  async #evictHead({ key, reason, head }: JournalEviction, partition: Partition | undefined): Promise<void> {
    if (partition === undefined || !(await this.#options.stuckJournal.drop(key, head.endOffset))) return
    this.ledger.record({ key, reason, ...head })
    if (reason === 'disk-budget-unread') this.#reportUnread(partition, head)
  }

  async #evict(
    eviction: Eviction,
    partition: Partition | undefined,
    growing: ReadonlySet<SealedSegment>,
  ): Promise<void> {
    if (partition === undefined) return
    const { segments } = this.#options
    const { key, reason } = eviction
    const count = eviction.segments.length
    const isUnread = reason === 'disk-budget-unread'
    const last = eviction.segments.at(-1)
    if (last !== undefined && growing.has(last)) await segments.sealActive(key)
    const dropped = await segments.dropOldest(key, count, this.#lastToGo(eviction))
    if (dropped === undefined) return
    const { fromOffset, endOffset, messageCount, sizeBytes } = dropped
    this.ledger.record({ key, reason, fromOffset, endOffset, messageCount, sizeBytes })
    if (isUnread) this.#reportUnread(partition, { fromOffset, endOffset, messageCount })
  }

  /** What somebody still needs stays. For age and size nothing goes that was not planned; for the disk files may have grown since. */
  #lastToGo({ key, reason, segments }: Eviction): bigint | null {
    if (reason === 'disk-budget-unread') return null
    const barrier = lowestOffsetInUse(this.#options.metadata, key)
    const planned = reason === 'disk-budget' ? undefined : segments.at(-1)
    if (planned === undefined) return barrier
    return barrier === null ? planned.endOffset - 1n : earlier(barrier, planned.endOffset - 1n)
  }

  /** What goes on where the last loss ended is the same loss, grown: days of it are one finding. */
  #reportUnread(partition: Partition, dropped: UnreadLoss): void {
    const { streamId, topicId, partitionId, key } = partition
    const before = this.#unread.get(key)
    const goesOn = before?.endOffset === dropped.fromOffset ? before : { ...dropped, messageCount: 0 }
    const { fromOffset } = goesOn
    const { endOffset } = dropped
    const messageCount = goesOn.messageCount + dropped.messageCount
    this.#unread.set(key, { fromOffset, endOffset, messageCount })
    const place = partitionText(this.#options.catalog, partition)
    this.#options.report({
      series: `unread ${key} ${fromOffset}`,
      event: 'log.retention.unread_dropped',
      level: 'error',
      text: `the disk budget is used up: ${messageCount} messages of ${place} are gone that a consumer or upstream had not read, offsets ${fromOffset} to ${endOffset - 1n}`,
      fields: {
        stream_id: streamId,
        topic_id: topicId,
        partition_id: partitionId,
        key,
        from_offset: fromOffset,
        end_offset: endOffset,
        message_count: messageCount,
        reason: 'disk-budget-unread',
      },
    })
  }

  /** Tells once when a topic stops taking messages and once when it takes them again. */
  #announceRefusals(plan: RetentionPlan, places: ReadonlyMap<number, Topic>): void {
    const before = topicsOf(this.#refusals, places)
    const now = topicsOf(plan.refusals, places)
    this.#refusals = plan.refusals
    this.#fullTopicCount = now.size
    for (const topic of now) if (!before.has(topic)) this.#reportTopic('log.topic.full', topic, 'is full')
    for (const topic of before) if (!now.has(topic)) this.#reportTopic('log.topic.room', topic, 'takes messages again')
  }

  #reportTopic(event: string, topic: Topic, state: string): void {
    const text = `${topicText(this.#options.catalog, topic)} ${state} (overflow ${topic.options.overflow})`
    const fields = { stream_id: topic.streamId, topic_id: topic.id, overflow: topic.options.overflow }
    this.#options.report({ event, level: 'warn', text, fields })
  }

  #announceBudget({ excessBytes }: RetentionPlan): void {
    if (excessBytes > 0 && !this.#isOverBudget) {
      const text = `the disk is ${formatBytes(excessBytes)} over the budget or under the free-space floor and nothing is left to drop`
      this.#options.report({
        event: 'log.disk.over_budget',
        level: 'error',
        text,
        fields: { excess_bytes: excessBytes },
      })
    }
    this.#isOverBudget = excessBytes > 0
  }

  /** Everybody waits, and nothing that may be dropped would free a journal file. */
  #announceStuck({ evictions, journalEvictions }: RetentionPlan, places: ReadonlyMap<number, Topic>): void {
    const hasNothing = evictions.length + journalEvictions.length === 0
    const heads = this.#options.stuckJournal.heads()
    const isStuck = hasNothing && heads.size > 0
    if (isStuck && !this.#isStuck) {
      const keeping = [...topicsOf(heads, places)].filter(({ options }) => options.overflow !== 'drop-oldest')
      const topics = this.#listed(keeping)
      const text = `the disk is full and what the journal holds of topics that drop nothing (${topics}) cannot be moved into segments: senders wait until you free space on the volume`
      this.#options.report({ event: 'log.journal.stuck', level: 'error', text, fields: {} })
    }
    this.#isStuck = isStuck
  }

  #listed(topics: readonly Topic[]): string {
    const named = topics.slice(0, NAMED_TOPICS_MAX).map((topic) => topicText(this.#options.catalog, topic))
    return [...named, ...(topics.length > named.length ? [`${topics.length - named.length} more`] : [])].join('; ')
  }

  #saveBooks(): void {
    const { changed, removedKeys } = this.ledger.unsaved()
    if (changed.length + removedKeys.length === 0) return
    const totals = changed.map(({ key, ...total }) => ({ ...total, partitionKey: key }))
    this.#options.drops.save(totals, removedKeys)
    this.ledger.saved()
  }

  #reportFailure(error: EdgeError): void {
    if (!this.#isFailing) {
      const text = `retention could not do its work, it tries again at the next run: ${error.message}`
      this.#options.report({ event: 'log.retention.failed', level: 'error', text, fields: { error_code: error.code } })
    }
    this.#isFailing = true
  }
}

/** @param byKey anything by partition key. */
function topicsOf(byKey: ReadonlyMap<number, unknown>, places: ReadonlyMap<number, Topic>): Set<Topic> {
  return new Set([...byKey.keys()].flatMap((key) => places.get(key) ?? []))
}

const DROP_REASONS: readonly string[] = [
  'expired',
  'topic-size',
  'disk-budget',
  'disk-budget-unread',
  'drop-newest',
] satisfies DropReason[]

/** A reason that only a newer release knows is kept in the database and not counted. */
function isDropReason(reason: string): reason is DropReason {
  return DROP_REASONS.includes(reason)
}
