/**
 * The log's engine on a simulated disk beside the simplest possible model of a log: what was given, promised, seen. Random
 * operations, crashes and faults from a seed; after every look and every open the named invariants are checked.
 *
 *   J1 what was promised is there          J5 an offset names one message for ever, the next is above every one seen
 *   J2 no hole without damage              J9 purged stays purged, nothing else is
 *   J3 what was cut or replaced never comes back   J12 a deleted partition's key never serves again
 *   J4 offsets rise, append times never fall   J14 with a healthy disk everything waiting gets through
 *   J15 a producer's number is known when its reading is there   J16 receipts of a partition come in order
 *   J17 memory does not grow with what is stored   J18 a folder that takes no files refuses and holds up nobody
 *   J19 the count of messages is that of what is there
 */
import { EdgeError } from '../../src/errors.ts'
import type { Appended, Receipt } from '../../src/log/api.ts'
import { type LogEngine, openEngine } from '../../src/log/engine.ts'
import { plainCodec } from '../../src/log/io/block-codec.ts'
import { isDone, isShortage } from '../../src/log/io/file-system.ts'
import type { LogPartition } from '../../src/log/partition.ts'
import { type DamageParts, rot, rotMore, turnFolder } from './log-world-damage.ts'
import { checkEnd, compare, goOnFrom, see } from './log-world-looks.ts'
import type { WorldCounts, WorldOptions } from './log-world-options.ts'
import { Outages } from './log-world-outage.ts'
import {
  check,
  drained,
  FakeCatalog,
  FakeHints,
  type Given,
  ignore,
  isTaken,
  JOURNAL_FILE_SIZE,
  Known,
  SETTINGS,
} from './log-world-parts.ts'
import { ProducerModel } from './log-world-producers.ts'
import { WorldTime } from './log-world-time.ts'
import { recordsOf } from './records.ts'
import { SeededRandom } from './seeded-random.ts'
import { SimDisk } from './sim-disk.ts'

const MAX_PARTITIONS = 4
const MAX_OPENS = 20
const TRACE_LENGTH = 400
/** More than the journal takes. */
const LARGE_PAYLOAD = 5000
/** In which a batch is written and synced, or refused. */
const SOME_ROUNDS = 20

export class LogWorld {
  readonly random: SeededRandom
  readonly disk: SimDisk
  readonly counts: WorldCounts = { steps: 0, kills: 0, cuts: 0, acks: 0, rots: 0, refusals: 0, failures: 0, outages: 0 }
  /** What happened last, for the one who looks into a failure. */
  readonly trace: string[] = []
  readonly #options: WorldOptions
  readonly #producers: ProducerModel
  readonly #catalog: FakeCatalog
  readonly #known = new Map<number, Known>()
  readonly #time: WorldTime
  readonly #outages: Outages
  #kill: () => void = () => {}
  #engine: LogEngine | undefined
  #bootId = 1
  #isClosing = false
  /** Who waits for a folder that takes no files. */
  #heldUp: string | undefined
  /** The last open said that messages are missing. */
  #isLossTold = false
  #nextId = 1
  readonly #hints = new FakeHints()
  readonly #rottenHeaders = new Set<string>()
  /** What comes next, before chance has its say again. */
  readonly #plan: (() => void | Promise<void>)[] = []
  readonly #isShortOfIndexes: boolean

  constructor(seed: number, options: WorldOptions = {}) {
    this.#isShortOfIndexes = seed % 2 === 0
    this.random = new SeededRandom(seed)
    this.#time = new WorldTime(this.random)
    this.#options = options
    this.#producers = new ProducerModel(this.random)
    const isSmall = this.random.chance(0.3)
    this.disk = new SimDisk(this.random, isSmall ? 8 * JOURNAL_FILE_SIZE : 4_000_000)
    if (this.random.chance(0.4)) this.disk.syncFailureRate = 0.04
    this.disk.syncFailureRate = options.syncFailureRate ?? this.disk.syncFailureRate
    if (this.random.chance(0.2)) this.disk.shortWriteRate = 0.005
    this.disk.areFilesRefusing = options.areFilesRefusing === true
    const note = (text: string): void => this.#note(text)
    this.#outages = new Outages(
      { random: this.random, disk: this.disk, time: this.#time, note },
      options.outageRate ?? 0,
    )
    this.#catalog = new FakeCatalog(() => this.#time.process, this.random)
  }

  /** @throws Error that begins with the name of the invariant. */
  async run(steps: number): Promise<void> {
    await this.#open()
    for (let step = 0; step < steps; step++) {
      this.counts.steps++
      await this.#step()
      check(this.#heldUp === undefined, 'J18', this.#heldUp ?? '')
    }
    await this.#settle()
    check(this.#heldUp === undefined, 'J18', this.#heldUp ?? '')
    this.counts.failures = this.disk.failureCount
    this.counts.outages = this.#outages.count
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
    const planned = this.#plan.shift()
    if (planned !== undefined) {
      await planned()
      return drained()
    }
    const { rotRate = 0, refusalRate = 0, purgeRate = 0 } = this.#options
    this.#outages.step(this.#live)
    if (refusalRate > 0 && this.random.chance(refusalRate)) turnFolder(this.#damageParts)
    if (rotRate > 0 && this.random.chance(rotRate)) this.#rot(rotMore)
    const roll = this.random.below(1000)
    const keys = [...this.#known.keys()]
    const key = keys[this.random.below(keys.length)]
    if (roll < 10 || key === undefined) this.#create()
    else if (purgeRate > 0 && this.random.chance(purgeRate)) await this.#purge(key)
    else if (roll < 380) this.#append(key)
    else if (roll < 650) this.#time.turn()
    else if (roll < 870) this.#time.event()
    else if (roll < 915) this.#time.timer()
    else if (roll < 950) await this.#look(key)
    else if (roll < 956) await this.#purge(key)
    else if (roll < 970) await this.#dropSegment(key)
    else if (roll < 973) this.#delete(key)
    else if (roll < 980) this.#rot(rot)
    else if (roll < 987) await this.#crash('kill')
    else if (roll < 991) await this.#crash('cut')
    else if (roll < 992) await this.#crash('stop')
    else if (roll < 994) this.#setClock()
    else if (roll < 997) this.#skipNumbers()
    await drained()
  }

  #create(): void {
    if (this.#known.size >= MAX_PARTITIONS) return
    const isBuffered = this.random.chance(0.5)
    const spec = this.#catalog.create(isBuffered)
    this.disk.makeDurable(spec.directory.slice(0, spec.directory.lastIndexOf('/')))
    this.#known.set(spec.key, new Known(isBuffered))
    this.#live.addPartition(spec)
  }

  #append(key: number, payloadSize = this.#payloadSize): void {
    const partition = this.#partition(key)
    const known = this.#knownOf(key)
    const count = 1 + this.random.below(3)
    const ids = Array.from({ length: count }, () => this.#nextId++)
    const recordsView = recordsOf(ids, payloadSize())
    if (!this.#live.hasRoom(recordsView.length)) return
    const given: { value?: Given } = {}
    const number = known.appendCount++
    const numbered = this.random.chance(0.3) ? this.#producers.tagFor(this.#live.producers, count) : undefined
    let tell: ReturnType<ProducerModel['sent']> | undefined
    const receipt: Receipt = {
      settled: (error) => {
        check(number === known.settledCount, 'J16', `key ${key}: receipt ${number} after ${known.settledCount}`)
        known.settledCount = number + 1
        tell?.(error === null, !known.isBuffered)
        if (error !== null) this.#note(`refused key ${key}: ${error.message}`)
        check(!error?.message.includes('EPERM'), 'J18', `key ${key}: ${error?.message}`)
        if (error !== null || given.value === undefined) return
        this.#acked(key, known, given.value)
        // A client that sends on as soon as it is answered.
        if (this.random.chance(0.2) && this.#known.get(key) === known && !this.#isClosing) this.#append(key)
      },
    }
    const batch = { count, baseOriginUs: 1n, recordsView }
    const appended: { value?: Appended } = {}
    const hadRoom = isTaken(() => {
      appended.value = partition.append(batch, receipt, numbered?.tag)
    })
    if (!hadRoom || appended.value === undefined) {
      known.appendCount--
      return
    }
    const { baseOffset } = appended.value
    given.value = { baseOffset, ids }
    if (numbered !== undefined) tell = this.#producers.sent(numbered.lane, count, { known, given: given.value })
    // A large batch that could not be stored gave its offsets back, and those behind it.
    known.given = known.given.filter((each) => each.baseOffset + BigInt(each.ids.length) <= baseOffset)
    known.given.push(given.value)
    this.#note(
      `append key ${key} offset ${baseOffset} x${count}${known.isBuffered ? ' buffered' : ''}${numbered === undefined ? '' : ` ${numbered.lane.device}/${numbered.lane.lane} ${numbered.tag.firstSequence}`}`,
    )
  }

  /** Mostly small; now and then more than the journal takes. */
  readonly #payloadSize = (): number => {
    const { largeRate = 0 } = this.#options
    if (largeRate > 0 && this.random.chance(largeRate)) return LARGE_PAYLOAD
    if (this.random.chance(0.03)) return 2000 + this.random.below(3000)
    return this.random.chance(0.3) ? this.random.below(1200) : 8
  }

  #acked(key: number, known: Known, given: Given): void {
    this.counts.acks++
    this.#note(`ack key ${key} offset ${given.baseOffset}`)
    const end = given.baseOffset + BigInt(given.ids.length)
    if (end > known.writtenAck) known.writtenAck = end
    if (!known.isBuffered && end > known.durableAck) known.durableAck = end
    see(key, known, given, 'ack')
  }

  /** A producer's numbers without readings. */
  #skipNumbers(): void {
    const numbered = this.#producers.tagFor(this.#live.producers, 1)
    if (numbered === undefined || !this.#live.hasRoom(0)) return
    const tell = { value: (_isKept: boolean, _isDurable: boolean): void => {} }
    const receipt: Receipt = { settled: (error) => tell.value(error === null, true) }
    if (!isTaken(() => this.#live.producerTable.record(numbered.tag, receipt))) return
    tell.value = this.#producers.sent(numbered.lane, 1)
  }

  #setClock(): void {
    this.#time.wallStepUs = this.random.below(20_000_000)
    this.#note(`clock set by ${this.#time.wallStepUs - 10_000_000} µs`)
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
    const files = partition.segments.filter(({ isClosed }, at) => isClosed || at < partition.segments.length - 1)
    const [first] = [...files, ...this.#live.closedInJournal(partition)]
    if (first === undefined) return
    const known = this.#knownOf(key)
    if (first.endOffset > known.droppableTo) known.droppableTo = first.endOffset
    this.#note(`drop first ${files.length > 0 ? '' : 'journal '}segment of key ${key} to ${first.endOffset}`)
    void partition.deleteSegments(1, first.endOffset - 1n).catch(ignore)
  }

  #delete(key: number): void {
    this.#note(`delete key ${key}`)
    this.#catalog.remove(key)
    this.#live.removePartition(key)
    this.#knownOf(key).isDeleted = true
    this.#known.delete(key)
  }

  // ---- looking ------------------------------------------------------------------------------------------------------

  /** A poll from the start: all given below the visible end and above the floor, in order, nothing else. */
  async #look(key: number, how = 'poll'): Promise<void> {
    const partition = this.#partition(key)
    try {
      await this.#compare(partition, partition.visibleEnd, how)
    } catch (error) {
      if (!this.disk.isRefusingReads || !isShortage(error)) throw error
    }
    const segments = [...this.#live.partitions.values()].flatMap((each) => each.segments)
    const held = segments.filter(({ index }) => index !== undefined).length
    check(held < 2 || !this.#isShortOfIndexes, 'J17', `${held} segments keep their index in memory`)
  }

  async #compare(partition: LogPartition, end: bigint, how: string): Promise<void> {
    const { key, messageCount } = partition
    const known = this.#knownOf(key)
    const isWhole = end >= partition.watermark.writtenEnd
    const read = (fromOffset: bigint) => {
      const request = { fromOffset, maxCount: 1000, maxBytes: 1 << 20 }
      return this.#time.finished(Promise.resolve(this.#live.read(partition, request, end)))
    }
    const count = await compare({ partition, known, end, read, how })
    if (!isWhole || how === 'poll' || this.counts.rots > 0) return
    check(count === messageCount, 'J19', `key ${key} has ${count} messages, and says ${messageCount} (${how})`)
  }

  #rot(rotOf: (parts: DamageParts) => boolean): void {
    if (this.#options.isRotting === false || this.disk.syncFailureRate > 0 || this.disk.shortWriteRate > 0) return
    if (rotOf(this.#damageParts)) this.counts.rots++
  }

  get #damageParts(): DamageParts {
    return {
      random: this.random,
      disk: this.disk,
      engine: this.#live,
      known: this.#known,
      note: (text) => this.#note(text),
      rottenHeaders: this.#rottenHeaders,
      producers: this.#producers,
    }
  }

  // ---- crashes ------------------------------------------------------------------------------------------------------

  async #crash(how: 'kill' | 'cut' | 'stop'): Promise<void> {
    const before = this.#live
    this.#outages.end()
    this.#note(how)
    this.#isClosing = true
    if (how === 'stop') await this.#time.finished(before.close())
    const hadFailure = this.disk.failureCount > this.counts.failures
    this.counts.failures = this.disk.failureCount
    this.#kill()
    if (how === 'cut') {
      this.disk.powerCut()
      this.#bootId++
      if (this.random.chance(0.3)) this.#hints.lose()
      this.counts.cuts++
    } else this.counts.kills++
    this.#time.die()
    this.#catalog.crash()
    // What lies in the cache is still there after a kill, if no sync has failed.
    if (how === 'kill' && !hadFailure && this.random.chance(0.15)) this.#loseDescriptor(before)
    this.#isLossTold = false
    await this.#open()
    this.#isClosing = false
    const isUnsafe = how === 'cut' || hadFailure
    for (const [key, known] of this.#known) {
      await this.#checkOpened(before.partitions.get(key), known, key, isUnsafe)
    }
    this.#producers.checkOpened(this.#live.producers, isUnsafe)
    const { refusedLargeRate = 0 } = this.#options
    if (refusedLargeRate > 0 && how === 'cut' && this.random.chance(refusedLargeRate)) return this.#planRefusal()
    // What comes first after an open is what rules about sessions are for: now and then the power goes again at once, most
    // of all when the open did not wait any longer for a disk that takes its time.
    if (!this.random.chance(this.#live.journal.hasUnsynced ? 0.6 : 0.1)) return
    for (const key of [...this.#known.keys()]) this.#plan.push(() => this.#appendIfThere(key))
    this.#plan.push(
      () => this.#time.turn(),
      () => this.#crash('cut'),
    )
  }

  /** Of a partition whose messages lie in the journal alone, the one its descriptor is found by again. */
  #loseDescriptor(before: LogEngine): void {
    const newest = before.partitions.get(this.#catalog.nextKey - 1)
    if (newest === undefined || newest.spec.floorOffset > 0n || newest.segments.length > 0) return
    if (newest.index.count === 0) return
    this.#note(`lost the descriptor of key ${newest.key}`)
    this.#catalog.loseNewest()
  }

  /** Behind the jump that a power cut leaves, a large batch comes first, and the disk is full; then a small one, and a kill. */
  #planRefusal(): void {
    const key = [...this.#known].find(([, { isBuffered }]) => isBuffered)?.[0]
    if (key === undefined) return
    const { capacity } = this.disk
    this.#plan.push(
      async () => {
        this.disk.capacity = 0
        this.#appendIfThere(key, () => LARGE_PAYLOAD)
        await this.#time.passed(SOME_ROUNDS)
        this.disk.capacity = capacity
      },
      async () => {
        this.#appendIfThere(key, () => 8)
        await this.#time.passed(SOME_ROUNDS)
      },
      () => this.#crash('kill'),
    )
  }

  #appendIfThere(key: number, payloadSize = this.#payloadSize): void {
    if (this.#known.has(key)) this.#append(key, payloadSize)
  }

  async #checkOpened(before: LogPartition | undefined, known: Known, key: number, isUnsafe: boolean): Promise<void> {
    const partition = this.#partition(key)
    this.#note(
      `opened key ${key}: ${partition.logStartOffset} ${partition.segmentEnd} ${partition.durableEnd} ${partition.watermark.writtenEnd} next ${partition.nextOffset} holes ${partition.holes.map((h) => `${h.from}-${h.end} ${h.reason}`)}`,
    )
    const end = checkEnd({ partition, before, known, isUnsafe, isLossTold: this.#isLossTold })
    await this.#compare(partition, end, 'open')
    goOnFrom(partition, known, end)
  }

  async #open(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#openOnce()
      } catch (error) {
        // A disk that refuses at open is the supervisor's to try again.
        if (!(error instanceof EdgeError) || error.kind !== 'io' || attempt === MAX_OPENS) throw error
        this.#kill()
        this.#time.die()
      }
    }
  }

  async #openOnce(): Promise<void> {
    this.#time.stallRate = this.random.chance(0.15) ? 0.6 : 0.02
    const mounted = this.disk.mount({ later: (kind, task) => this.#time.process.later(kind, task) })
    this.#kill = mounted.kill
    this.#engine = await this.#time.finished(
      openEngine({
        fileSystem: mounted.fileSystem,
        clock: this.#time.clock,
        scheduler: this.#time.scheduler(),
        report: ({ event, level, text }) => {
          this.#note(`report: ${text}`)
          if (event === 'log.repack.failed' && text.includes('EPERM')) this.#heldUp ??= text
          if (event === 'log.folder.refused') this.counts.refusals++
          check(event !== 'log.journal.file_missing' || level === 'warn', 'J2', `no file was taken away: ${text}`)
          const isOfDamage = event === 'log.journal.damaged'
          const isOfSegment = event === 'log.segment.damaged'
          if (isOfDamage || isOfSegment || event === 'log.hole.found') this.#isLossTold = true
          check(!isOfSegment || this.counts.rots > 0, 'J2', `nothing was damaged: ${text}`)
          const isAnyRotten = this.counts.rots > 0 || this.#producers.isJournalDamaged
          check(event !== 'log.hole.found' || isAnyRotten, 'J2', `nothing was damaged: ${text}`)
          check(!isOfDamage || this.#producers.isJournalDamaged, 'J2', `nothing was damaged: ${text}`)
        },
        settings: SETTINGS,
        flash: this.#time.flash(),
        storeIdBytes: new Uint8Array(16).fill(7),
        bootId: `boot-${this.#bootId}`,
        descriptors: this.#catalog,
        hints: this.#hints.opened(),
        producerStore: this.#producers.store,
        randomU64: () => (BigInt(this.random.below(2 ** 32)) << 32n) | BigInt(this.random.below(2 ** 32)),
        codec: plainCodec,
        // Several a file.
        repackWindowSize: JOURNAL_FILE_SIZE / 8,
        // In half of the worlds no index but the one used last stays.
        ...(this.#isShortOfIndexes ? { maxIndexBytes: 1 } : {}),
        ...(this.#options.rules === undefined ? {} : { rules: this.#options.rules }),
        ...(this.#options.keys === undefined ? {} : { keys: this.#options.keys() }),
      }),
    )
    // As the log does; it may fail.
    for (const path of this.#live.damagedPaths)
      if (this.random.chance(0.7)) isDone(() => mounted.fileSystem.unlink(path))
  }

  /** Everything quiet and healthy: all that waits must get through, and the journal must come free again. */
  async #settle(): Promise<void> {
    this.#isClosing = true
    this.#outages.end()
    this.disk.syncFailureRate = 0
    this.disk.shortWriteRate = 0
    this.disk.capacity = this.disk.usedBytes + 6_000_000
    for (let round = 0; round < 400; round++) {
      this.#time.turn()
      while (this.#time.hasEvents) {
        this.#time.event()
        await drained()
      }
      if (round < 300) this.#time.timer()
      await drained()
    }
    check(!this.#live.journal.hasUnsynced, 'J14', 'something was not synced')
    check(this.#live.files.repackable().length === 0, 'J14', 'a full journal file was not repacked')
    const { all, spareCount } = this.#live.files
    const isMore = all.length > SETTINGS.journal_files
    check(!isMore || spareCount < 2, 'J14', `${all.length} journal files were kept, ${spareCount} of them spare`)
    for (const key of this.#known.keys()) await this.#look(key, 'end')
    await this.#time.finished(this.#live.close())
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
