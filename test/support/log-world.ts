/**
 * The log's engine on a simulated disk beside the simplest possible model of a log: what was given, promised, seen. Random
 * operations, crashes and faults from a seed; after every look and every open the named invariants are checked.
 *
 *   J1 what was promised is there          J5 an offset names one message for ever, the next is above every one seen
 *   J2 no hole without damage              J9 purged stays purged, nothing else is
 *   J3 what was cut or replaced never comes back   J12 a deleted partition's key never serves again
 *   J4 offsets rise                        J14 with a healthy disk everything waiting gets through
 */
import { EdgeError } from '../../src/errors.ts'
import type { Receipt } from '../../src/log/api.ts'
import { type LogEngine, openEngine } from '../../src/log/engine.ts'
import type { EngineRules } from '../../src/log/engine-options.ts'
import { plainCodec } from '../../src/log/io/block-codec.ts'
import type { LogPartition } from '../../src/log/partition.ts'
import type { HintStore, PartitionHint } from '../../src/log/ports.ts'
import {
  batchesIn,
  check,
  drained,
  FakeCatalog,
  type Given,
  ignore,
  isDamaged,
  JOURNAL_FILE_SIZE,
  Known,
  max,
  noProducers,
  type Placed,
  Process,
  SETTINGS,
} from './log-world-parts.ts'
import { idsOf, recordsOf } from './records.ts'
import { SeededRandom } from './seeded-random.ts'
import { SimDisk } from './sim-disk.ts'

const MAX_PARTITIONS = 4
/** Rounds after which an open or a settling that has not ended counts as stuck. */
const PATIENCE = 4000
const MAX_OPENS = 20
const TRACE_LENGTH = 400

export interface WorldCounts {
  steps: number
  kills: number
  cuts: number
  acks: number
  rots: number
  failures: number
  repacks: number
}

export class LogWorld {
  readonly random: SeededRandom
  readonly disk: SimDisk
  readonly counts: WorldCounts = { steps: 0, kills: 0, cuts: 0, acks: 0, rots: 0, failures: 0, repacks: 0 }
  /** What happened last, for the one who looks into a failure. */
  readonly trace: string[] = []
  readonly #rules: EngineRules
  readonly #catalog: FakeCatalog
  readonly #known = new Map<number, Known>()
  #process = new Process()
  #kill: () => void = () => {}
  #engine: LogEngine | undefined
  #nowUs = 1_000_000
  #bootId = 1
  #isClosing = false
  #nextId = 1
  #hints = new Map<number, PartitionHint>()

  constructor(seed: number, rules: EngineRules = {}) {
    this.random = new SeededRandom(seed)
    this.#rules = rules
    const isSmall = this.random.chance(0.3)
    this.disk = new SimDisk(this.random, isSmall ? 8 * JOURNAL_FILE_SIZE : 4_000_000)
    if (this.random.chance(0.4)) this.disk.syncFailureRate = 0.04
    if (this.random.chance(0.2)) this.disk.shortWriteRate = 0.005
    this.#catalog = new FakeCatalog(() => this.#process, this.random)
  }

  /** @throws Error that begins with the name of the invariant. */
  async run(steps: number): Promise<void> {
    await this.#open()
    for (let step = 0; step < steps; step++) {
      this.counts.steps++
      await this.#step()
    }
    await this.#settle()
    this.counts.failures = this.disk.failureCount
  }

  get #live(): LogEngine {
    if (this.#engine === undefined) throw new Error('the log is not open')
    return this.#engine
  }

  #note(text: string): void {
    this.trace.push(`${this.counts.steps} ${text}`)
    if (this.trace.length > TRACE_LENGTH) this.trace.shift()
  }

  // ---- steps --------------------------------------------------------------------------------------------------------

  async #step(): Promise<void> {
    const roll = this.random.below(1000)
    const keys = [...this.#known.keys()]
    const key = keys[this.random.below(keys.length)]
    if (roll < 10 || key === undefined) this.#create()
    else if (roll < 380) this.#append(key)
    else if (roll < 650) this.#turn()
    else if (roll < 870) this.#event()
    else if (roll < 915) this.#timer()
    else if (roll < 950) await this.#look(key)
    else if (roll < 956) await this.#purge(key)
    else if (roll < 970) await this.#dropSegment(key)
    else if (roll < 973) this.#delete(key)
    else if (roll < 980) this.#rot()
    else if (roll < 987) await this.#crash('kill')
    else if (roll < 991) await this.#crash('cut')
    else if (roll < 992) await this.#crash('stop')
    await drained()
  }

  #create(): void {
    if (this.#known.size >= MAX_PARTITIONS) return
    const isBuffered = this.random.chance(0.5)
    const spec = this.#catalog.create(isBuffered)
    this.#known.set(spec.key, new Known(isBuffered))
    this.#live.addPartition(spec)
  }

  #append(key: number): void {
    const partition = this.#partition(key)
    const known = this.#knownOf(key)
    const count = 1 + this.random.below(3)
    const ids = Array.from({ length: count }, () => this.#nextId++)
    const recordsView = recordsOf(ids, this.#payloadSize())
    if (!this.#live.hasRoom(recordsView.length)) return
    const given: { value?: Given } = {}
    const receipt: Receipt = {
      settled: (error) => {
        if (error !== null || given.value === undefined) return
        this.#acked(key, known, given.value)
        // A client that sends on as soon as it is answered.
        if (this.random.chance(0.2) && this.#known.get(key) === known && !this.#isClosing) this.#append(key)
      },
    }
    const { baseOffset } = partition.append({ count, baseOriginUs: 1n, recordsView }, receipt)
    given.value = { baseOffset, ids }
    // A large batch that could not be stored gave its offsets back, and those behind it.
    known.given = known.given.filter((each) => each.baseOffset + BigInt(each.ids.length) <= baseOffset)
    known.given.push(given.value)
    this.#note(`append key ${key} offset ${baseOffset} x${count}${known.isBuffered ? ' buffered' : ''}`)
  }

  /** Mostly small; now and then more than the journal takes. */
  #payloadSize(): number {
    if (this.random.chance(0.03)) return 2000 + this.random.below(3000)
    return this.random.chance(0.3) ? this.random.below(1200) : 8
  }

  #acked(key: number, known: Known, given: Given): void {
    this.counts.acks++
    this.#note(`ack key ${key} offset ${given.baseOffset}`)
    const end = given.baseOffset + BigInt(given.ids.length)
    if (end > known.writtenAck) known.writtenAck = end
    if (!known.isBuffered && end > known.durableAck) known.durableAck = end
    this.#see(key, known, given, 'ack')
  }

  #see(key: number, known: Known, { baseOffset, ids }: Given, how: string): void {
    for (const [index, id] of ids.entries()) {
      const offset = baseOffset + BigInt(index)
      const seen = known.seen.get(offset)
      check(seen === undefined || seen === id, 'J5', `key ${key} offset ${offset} was ${seen}, now ${id} (${how})`)
      known.seen.set(offset, id)
    }
  }

  #turn(): void {
    const tasks = this.#process.turns.splice(0)
    this.#nowUs += 50
    for (const task of tasks) task()
  }

  #event(): void {
    const { events } = this.#process
    if (events.length === 0) return
    const [task] = events.splice(this.random.below(events.length), 1)
    this.#nowUs += 300
    task?.()
  }

  #timer(): void {
    const { timers } = this.#process
    timers.sort((a, b) => a.atUs - b.atUs)
    const next = timers.shift()
    if (next === undefined) return
    this.#nowUs = Math.max(this.#nowUs, next.atUs)
    next.task()
  }

  async #purge(key: number): Promise<void> {
    const partition = this.#partition(key)
    const known = this.#knownOf(key)
    known.droppableTo = partition.nextOffset
    const end = partition.nextOffset
    this.#note(`purge key ${key} to ${end}`)
    void partition.purge().then(() => {
      if (end > known.purgedTo) known.purgedTo = end
    }, ignore)
  }

  async #dropSegment(key: number): Promise<void> {
    const partition = this.#partition(key)
    const [first] = partition.segments
    if (first === undefined) return
    const known = this.#knownOf(key)
    if (first.endOffset > known.droppableTo) known.droppableTo = first.endOffset
    this.#note(`drop first segment of key ${key} to ${first.endOffset}`)
    void partition.deleteSegments(1, first.endOffset - 1n).catch(ignore)
  }

  #delete(key: number): void {
    this.#note(`delete key ${key}`)
    this.#catalog.remove(key)
    this.#live.removePartition(key)
    this.#known.delete(key)
  }

  // ---- looking ------------------------------------------------------------------------------------------------------

  /** A poll from the start: all given below the visible end and above the floor, in order, nothing else. */
  async #look(key: number): Promise<void> {
    const partition = this.#partition(key)
    await this.#compare(partition, partition.visibleEnd, 'poll')
  }

  async #compare(partition: LogPartition, end: bigint, how: string): Promise<void> {
    const { key } = partition
    const known = this.#knownOf(key)
    const given = new Map(known.given.map((each) => [each.baseOffset, each]))
    const have = new Set<bigint>()
    let next = partition.logStartOffset
    let last = -1n
    for (let round = 0; next < end && round < PATIENCE; round++) {
      const request = { fromOffset: next, maxCount: 1000, maxBytes: 1 << 20 }
      const result = await this.#finished(Promise.resolve(this.#live.read(partition, request, end)))
      for (const batch of result.batches) {
        const { baseOffset } = batch
        check(baseOffset > last, 'J4', `key ${key} offset ${baseOffset} after ${last} (${how})`)
        last = baseOffset
        const ids = idsOf(batch)
        const same = given.get(baseOffset)
        const isSame = same !== undefined && same.ids.join() === ids.join()
        check(isSame, 'J3', `key ${key} offset ${baseOffset} ids ${ids}, given ${same?.ids} (${how})`)
        have.add(baseOffset)
        if (baseOffset + BigInt(ids.length) <= partition.visibleEnd) this.#see(key, known, { baseOffset, ids }, how)
      }
      check(result.nextOffset > next, 'J2', `key ${key}: no progress at ${next} of ${end} (${how})`)
      next = result.nextOffset
    }
    const start = max(partition.logStartOffset, known.droppableTo)
    for (const { baseOffset, ids } of known.given) {
      const batchEnd = baseOffset + BigInt(ids.length)
      if (batchEnd > end || baseOffset < start || isDamaged(known, baseOffset)) continue
      check(have.has(baseOffset), 'J2', `key ${key} offset ${baseOffset} of ${end} is missing (${how})`)
    }
  }

  // ---- damage -------------------------------------------------------------------------------------------------------

  /** Flips a bit in a full journal file whose groups later, synced ones prove, or in a synced segment. */
  #rot(): void {
    if (this.disk.syncFailureRate > 0 || this.disk.shortWriteRate > 0) return
    if (this.random.chance(0.5)) this.#rotJournal()
    else this.#rotSegment()
  }

  #rotJournal(): void {
    const { files, journal } = this.#live
    const active = files.active
    const sealed = files.all.filter((file) => file.state === 'sealed' && !file.isHeld)
    const file = sealed[this.random.below(sealed.length)]
    // Without a synced group behind it, damage at the end cannot be told from a torn tail.
    if (file === undefined || active === undefined || !journal.isProvenBy(active)) return
    const position = 4096 + this.random.below(Math.max(1, Math.min(file.position, file.size) - 4096))
    const batches = batchesIn(this.#live.partitions.values(), file.number)
    const hit = batches.find(({ from, end }) => from <= position && position < end)
    if (hit !== undefined) this.#markDamaged(hit.partition, hit.baseOffset, 1n)
    // Between batches lies a group's header. Its batches are found again by their session's salt, where another group of
    // the session tells it; else they go with it.
    else this.#markGroup(batches.filter(({ from }) => from > position))
    this.counts.rots++
    this.#note(`rot journal/${file.number} at ${position}`)
    this.disk.rot(`journal/${file.number}`, position)
  }

  #markGroup(behind: readonly Placed[]): void {
    let end = behind[0]?.from
    for (const batch of behind) {
      if (batch.from !== end) return
      this.#markDamaged(batch.partition, batch.baseOffset, 1n)
      end = batch.end
    }
  }

  #rotSegment(): void {
    const partitions = [...this.#live.partitions.values()].filter((each) => each.segments.length > 0)
    const partition = partitions[this.random.below(partitions.length)]
    const segment = partition?.segments[this.random.below(partition.segments.length)]
    if (partition === undefined || segment === undefined || segment.entries === undefined) return
    if (this.disk.isFileDirty(segment.path) || this.#live.maintenance.isBusy) return
    const entry = segment.entries[this.random.below(segment.entries.length)]
    if (entry === undefined) return
    const next = segment.entries[segment.entries.indexOf(entry) + 1]
    const end = next?.baseOffset ?? segment.endOffset
    const block = next?.position ?? segment.sizeBytes
    const position = entry.position + this.random.below(block - entry.position)
    this.#markDamaged(partition, entry.baseOffset, end - entry.baseOffset)
    this.#note(`rot ${segment.path} at ${position}, block at ${entry.position}`)
    this.counts.rots++
    this.#live.segmentFiles.forget(segment.path)
    this.disk.rot(segment.path, position)
  }

  #markDamaged(partition: LogPartition, from: bigint, count: bigint): void {
    this.#known.get(partition.key)?.damaged.push({ from, end: from + count })
  }

  // ---- crashes ------------------------------------------------------------------------------------------------------

  async #crash(how: 'kill' | 'cut' | 'stop'): Promise<void> {
    const before = this.#live
    this.#note(how)
    this.#isClosing = true
    if (how === 'stop') await this.#finished(before.close())
    const hadFailure = this.disk.failureCount > this.counts.failures
    this.counts.failures = this.disk.failureCount
    this.#kill()
    if (how === 'cut') {
      this.disk.powerCut()
      this.#bootId++
      if (this.random.chance(0.3)) this.#hints.clear()
      this.counts.cuts++
    } else this.counts.kills++
    this.#process = new Process()
    this.#catalog.crash()
    await this.#open()
    this.#isClosing = false
    for (const [key, known] of this.#known) {
      await this.#checkOpened(before.partitions.get(key), known, key, how === 'cut' || hadFailure)
    }
  }

  async #checkOpened(before: LogPartition | undefined, known: Known, key: number, isUnsafe: boolean): Promise<void> {
    const partition = this.#partition(key)
    this.#note(
      `opened key ${key}: ${partition.logStartOffset} ${partition.segmentEnd} ${partition.durableEnd} ${partition.watermark.writtenEnd} next ${partition.nextOffset} holes ${partition.holes.map((h) => `${h.from}-${h.end} ${h.reason}`)}`,
    )
    const floor = partition.spec.floorOffset
    const end = max(partition.watermark.writtenEnd, floor)
    const promised = max(known.durableAck, max(before?.durableEnd ?? 0n, isUnsafe ? 0n : known.writtenAck))
    const isExcused = known.damaged.some((range) => range.end >= end)
    check(end >= promised || isExcused, 'J1', `key ${key}: end ${end}, floor ${floor}, promised ${promised}`)
    check(partition.logStartOffset >= known.purgedTo, 'J9', `key ${key}: purged to ${known.purgedTo}`)
    check(floor <= known.droppableTo, 'J9', `key ${key}: floor ${floor} above ${known.droppableTo}`)
    await this.#compare(partition, end, 'open')
    for (const offset of known.seen.keys()) {
      check(
        partition.nextOffset > offset || isExcused,
        'J5',
        `key ${key}: next ${partition.nextOffset}, seen ${offset}`,
      )
    }
    known.given = known.given.filter((each) => each.baseOffset < end)
    if (known.writtenAck > end) known.writtenAck = end
  }

  async #open(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#openOnce()
      } catch (error) {
        // A disk that refuses at open is the supervisor's to try again.
        if (!(error instanceof EdgeError) || error.kind !== 'io' || attempt === MAX_OPENS) throw error
        this.#kill()
        this.#process = new Process()
      }
    }
  }

  async #openOnce(): Promise<void> {
    const mounted = this.disk.mount({ later: (kind, task) => this.#process.later(kind, task) })
    this.#kill = mounted.kill
    const process = this.#process
    this.#engine = await this.#finished(
      openEngine({
        fileSystem: mounted.fileSystem,
        clock: { wallUs: () => BigInt(this.#nowUs), monotonicUs: () => this.#nowUs },
        scheduler: {
          nextTurn: (task) => void process.turns.push(task),
          after: (milliseconds, task) => {
            const timer = { atUs: this.#nowUs + milliseconds * 1000, task }
            process.timers.push(timer)
            return () => {
              const at = process.timers.indexOf(timer)
              if (at >= 0) process.timers.splice(at, 1)
            }
          },
        },
        report: ({ text }) => this.#note(`report: ${text}`),
        settings: SETTINGS,
        flashBudgetPerDayBytes: 0,
        storeIdBytes: new Uint8Array(16).fill(7),
        bootId: `boot-${this.#bootId}`,
        descriptors: this.#catalog,
        hints: this.#hintStore(),
        producerStore: noProducers,
        randomU64: () => (BigInt(this.random.below(2 ** 32)) << 32n) | BigInt(this.random.below(2 ** 32)),
        codec: plainCodec,
        rules: this.#rules,
      }),
    )
  }

  #hintStore(): HintStore {
    return {
      hint: (key) => this.#hints.get(key),
      setHints: (hints) => {
        for (const [key, hint] of hints) this.#hints.set(key, hint)
      },
    }
  }

  /** Lets the world turn until a promise has settled. */
  async #finished<T>(promise: Promise<T>): Promise<T> {
    let outcome: { value: T } | { error: unknown } | undefined
    promise.then(
      (value) => {
        outcome = { value }
      },
      (error: unknown) => {
        outcome = { error }
      },
    )
    for (let round = 0; round < PATIENCE; round++) {
      await drained()
      if (outcome !== undefined) break
      if (this.#process.events.length > 0) this.#event()
      else if (this.#process.turns.length > 0) this.#turn()
      else this.#timer()
    }
    if (outcome === undefined) throw new Error('J14: something waits for ever')
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

  /** Everything quiet and healthy: all that waits must get through, and the journal must come free again. */
  async #settle(): Promise<void> {
    this.#isClosing = true
    this.disk.syncFailureRate = 0
    this.disk.shortWriteRate = 0
    this.disk.capacity = 100_000_000
    for (let round = 0; round < 400; round++) {
      this.#turn()
      while (this.#process.events.length > 0) {
        this.#event()
        await drained()
      }
      if (round % 8 === 0) this.#timer()
      await drained()
    }
    check(!this.#live.journal.hasUnsynced, 'J14', 'something was not synced')
    check(this.#live.files.repackable().length === 0, 'J14', 'a full journal file was not repacked')
    for (const key of this.#known.keys()) await this.#look(key)
    await this.#finished(this.#live.close())
  }

  #partition(key: number): LogPartition {
    const partition = this.#live.partitions.get(key)
    if (partition === undefined) throw new Error(`J12: partition ${key} is missing`)
    return partition
  }

  #knownOf(key: number): Known {
    const known = this.#known.get(key)
    if (known === undefined) throw new Error(`unknown key ${key}`)
    return known
  }
}
