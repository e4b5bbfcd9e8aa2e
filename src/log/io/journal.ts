/**
 * The journal at work: takes batches of all partitions, writes them in groups, syncs, keeps promises, goes on after failures.
 *
 * Promises rest on these rules (docs/formats/journal.md has the whole list):
 * - a batch is durable when the sync that *started after* its write has returned without error, and so have those of all
 *   groups before it; one sync runs at a time;
 * - after a failed sync the kernel may have dropped the pages and report success next time: that file is never synced again.
 *   All that was not synced goes, as one group, into the next file; who waits keeps waiting;
 * - a file is left only when all its groups are synced, so un-synced groups never spread over two files;
 * - after a sync has started the next group begins on a new page: a device that garbles the page it writes cannot reach back.
 */
import { assert } from '../../assert.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { ProducerTag } from '../api.ts'
import { alignUp, type ByteArea } from '../core/byte-area.ts'
import { SYNC_COST_BYTES } from '../core/flash-budget.ts'
import { GroupCommit, LEAST_TIMER_US } from '../core/group-commit.ts'
import { GROUP_ALIGNMENT, GROUP_FLAG, PAGE_SIZE } from '../core/journal-format.ts'
import type { PendingBatch } from '../core/pending-batch.ts'
import { TAG_SIZE } from '../core/sealed-body.ts'
import { GroupBuffers, type GroupBuilder, mergedGroup as merged } from './group-buffer.ts'
import { type JournalFile, syncFile } from './journal-file.ts'
import type { JournalFiles } from './journal-files.ts'
import type { JournalCounters, JournalOptions, JournalRules } from './journal-options.ts'
import { JournalSession, type SealedGroup } from './journal-session.ts'
import { FlushWaiters, RoomWaiters } from './journal-waiters.ts'

/** Failed syncs or writes in a row after which the log refuses appends until a retry succeeds. */
const MAX_FAILURES_IN_ROW = 3

interface WrittenGroup extends SealedGroup {
  readonly file: JournalFile
  readonly builder: GroupBuilder
}

export class Journal {
  readonly #options: JournalOptions
  readonly #files: JournalFiles
  readonly #commit: GroupCommit
  readonly #buffers: GroupBuffers
  readonly #rules: JournalRules
  /** What a group takes more in a file than in the buffer. */
  readonly #sealSize: number
  readonly counters: JournalCounters = { writtenBytes: 0, syncCount: 0, syncFailedCount: 0 }
  #open: GroupBuilder
  /** To be written before all else, as one group: its header ends the older file, so nothing may be left behind there. */
  #again: GroupBuilder[]
  #unsynced: WrittenGroup[] = []
  readonly #session: JournalSession
  readonly #room: RoomWaiters
  readonly #flushes = new FlushWaiters()
  #durableFile: JournalFile | undefined
  /** Names the running sync; one whose number is no longer this belongs to a file that was given up. */
  #syncNumber = 0
  #failuresInRow = 0
  #refusal: EdgeError | undefined
  #isClosed = false
  #isTurnDue = false
  #isFileWanted = false
  #cancelTimer: (() => void) | undefined
  #cancelRetry: (() => void) | undefined
  /** When it ends, on the monotonic clock. */
  #timerUs = Number.POSITIVE_INFINITY
  #appendedCount = 0
  #syncedCount = 0

  constructor(options: JournalOptions) {
    const { start } = options
    this.#options = options
    this.#files = options.files
    this.#rules = options.rules ?? {}
    this.#sealSize = options.isSealing ? TAG_SIZE : 0
    this.#commit = new GroupCommit(options.commit, options.budget)
    this.#buffers = new GroupBuffers(options.bufferSize)
    this.#open = this.#buffers.first(start.boot)
    this.#session = new JournalSession(options)
    this.#room = new RoomWaiters(options.scheduler)
    this.#again = [...start.again]
    if (start.again.length === 0) return
    this.#appendedCount = batchCountOf(start.again)
    this.#commit.restarted(this.#appendedCount, sizeOf(start.again), this.#nowUs())
    this.#soon()
  }

  /** Undefined while appends are taken; else why not. */
  get refusal(): EdgeError | undefined {
    return this.#refusal
  }

  /** Nothing is taken any more. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Number of this machine start. */
  get boot(): number {
    return this.#options.start.boot
  }

  /** Of the next group that is written. */
  get nextSequence(): number {
    return this.#session.nextSequence
  }

  get lastSyncUs(): number {
    return this.#commit.lastSyncUs
  }

  get hasUnsynced(): boolean {
    return this.#unsynced.length > 0 || this.#again.length > 0 || !this.#open.isEmpty
  }

  /** Whether a group in that file is synced: it proves all groups before it. */
  isProvenBy(file: JournalFile): boolean {
    return this.#durableFile === file
  }

  /** Where batches lie that a failure took from their file, until they are written again. */
  get memory(): ByteArea | undefined {
    return this.#again[0]?.area
  }

  /**
   * Begins the session with a group of its own, synced: from then on the clean stop before it counts no more, so that a
   * crash is told from a stop. Nothing was appended yet.
   */
  startSession(): Promise<void> {
    return this.#writeMark(0)
  }

  /** Largest body of one batch. */
  get maxBodySize(): number {
    return this.#buffers.size / 2
  }

  hasRoom(bodySize: number): boolean {
    return this.#refusal === undefined && !this.#isClosed && this.#open.hasRoom(bodySize)
  }

  /** Calls back once, in a later turn, when room may be there again. */
  onceRoom(callback: () => void): void {
    this.#room.add(callback)
    if (this.#isClosed) this.#room.wake()
  }

  /** Room became free elsewhere: those who wait ask again. */
  roomMade(): void {
    this.#room.wake()
  }

  /** Copies the batch into the open group; the caller has asked `hasRoom`. */
  append(batch: PendingBatch, isBuffered: boolean, recordsView: Uint8Array, tag?: ProducerTag): void {
    this.#open.add(batch, recordsView, tag, this.#options.checksum)
    this.#appendedCount++
    if (this.#commit.appended(isBuffered, batch.size, this.#nowUs())) this.#soon()
  }

  /** Resolves when everything appended so far is synced. @throws EDGE_APPEND_FAILED, EDGE_SHUTTING_DOWN. */
  flush(): Promise<void> {
    if (this.#syncedCount === this.#appendedCount) return Promise.resolve()
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    if (this.#isClosed) return Promise.reject(new EdgeError('EDGE_SHUTTING_DOWN', 'the log is closed'))
    this.#commit.force()
    this.#soon()
    return this.#flushes.wait(this.#appendedCount)
  }

  /** A spare file may be there: what waits for one goes on. */
  fileReady(): void {
    this.#isFileWanted = false
    if (this.#files.active === undefined && this.#files.spareCount === 0) return
    if (this.#again.length > 0 || !this.#open.isEmpty) this.#commit.force()
    this.#soon()
  }

  /** The active file is left as soon as everything in it is synced. */
  leaveFile(): void {
    const active = this.#files.active
    if (active === undefined) return
    active.isLeft = true
    this.#leaveIfFull(active)
  }

  /**
   * Marks the end as clean, unless something is not synced or `isClean` is false; takes no more appends. The caller has
   * flushed. Who still waits is told: such a batch may come back at the next open, as after a lost reply.
   */
  async close(isClean: boolean): Promise<void> {
    if (this.#isClosed) return
    // First: a large batch may still be written, and would come in while the mark is synced.
    this.#isClosed = true
    try {
      if (this.hasUnsynced)
        this.#settleAll(new EdgeError('EDGE_SHUTTING_DOWN', 'the log was closed before it could sync'))
      else if (isClean && this.#refusal === undefined) await this.#writeMark(GROUP_FLAG.isCleanStop)
    } catch (error) {
      // What could not be synced was not promised; the next open recovers it as after a crash.
      this.#options.events.failed(toEdgeError(error), undefined)
    }
    this.#cancelTimer?.()
    this.#cancelRetry?.()
    this.#room.wake()
  }

  // ---- when -------------------------------------------------------------------------------------------------------

  #nowUs(): number {
    return this.#options.clock.monotonicUs()
  }

  #soon(): void {
    if (this.#isTurnDue || this.#isClosed) return
    this.#isTurnDue = true
    this.#options.scheduler.nextTurn(this.#turn)
  }

  #turn = (): void => {
    this.#isTurnDue = false
    if (this.#isClosed) return
    const nowUs = this.#nowUs()
    const decision = this.#commit.decide(nowUs)
    if (decision.isWriteDue) this.#writeAll()
    if (decision.isSyncDue) this.#startSync()
    const { againInUs } = decision
    if (againInUs === undefined) return
    // Below that the wait turns the event loop.
    if (againInUs < LEAST_TIMER_US) this.#soon()
    else this.#turnAt(nowUs + againInUs)
  }

  /** A timer that ends earlier stays: it asks again. One per turn would be made and cancelled thousands of times a second. */
  #turnAt(dueUs: number): void {
    if (this.#timerUs <= dueUs) return
    this.#cancelTimer?.()
    this.#timerUs = dueUs
    this.#cancelTimer = this.#options.scheduler.after(Math.ceil((dueUs - this.#nowUs()) / 1000), () => {
      this.#timerUs = Number.POSITIVE_INFINITY
      this.#turn()
    })
  }

  // ---- write ------------------------------------------------------------------------------------------------------

  /** Writes what was collected, as far as a file takes it. */
  #writeAll(): void {
    for (let again = this.#again[0]; again !== undefined; again = this.#again[0]) {
      if (!this.#write(again)) return
      this.#again.shift()
    }
    if (this.#open.isEmpty) return
    const written = this.#open
    if (this.#write(written)) this.#options.events.settled()
  }

  #nextBuilder(current: GroupBuilder): GroupBuilder {
    const kept = this.#unsynced.map((group) => group.builder)
    return this.#buffers.next(current, kept, this.#options.start.boot)
  }

  /** @returns false when no file takes the group now, or the write failed. */
  #write(builder: GroupBuilder, flags = 0): boolean {
    const file = this.#fileFor(builder.length + this.#sealSize)
    if (file === undefined) return false
    const { bytesView, ...sealed } = this.#session.seal(builder, file, flags, this.#options.clock.wallUs())
    const length = bytesView.length
    try {
      file.handle.write(bytesView, file.position)
    } catch (error) {
      this.#fail(file, toEdgeError(error))
      return false
    }
    const position = file.position
    this.#countPages(position, length)
    file.noteGroup(position, this.#session.salt, builder.boot)
    file.firstGroupUs ??= this.#nowUs()
    file.firstSequence ??= sealed.identity.sequence
    file.position = alignUp(position + length, GROUP_ALIGNMENT)
    this.#session.written(sealed)
    this.#unsynced.push({ ...sealed, file, builder })
    // Before anybody is told: who is told may append at once, and must not get into a group that is written already.
    if (builder === this.#open) {
      this.#open = this.#nextBuilder(builder)
      this.#commit.written()
    }
    for (const batch of builder.batches) {
      const isKept = batch.owner.written(batch, file.number, position + batch.at - builder.start)
      if (isKept || this.#rules.isAckedBeforeSync) batch.settle(null)
    }
    return true
  }

  /** @returns the file that takes a group of that length, or undefined while it must wait. */
  #fileFor(length: number): JournalFile | undefined {
    const active = this.#files.active
    if (active !== undefined) {
      if (!active.isLeft && active.position + length <= active.groupsEnd) return active
      if (!this.#leave(active)) return undefined
    }
    const next = this.#files.activate()
    if (next !== undefined) assert(next.position + length <= next.groupsEnd, `group of ${length} bytes fits a file`)
    // Else everything waits for the repack, which calls `fileReady`. Asked once, not with every append.
    if (next === undefined && !this.#isFileWanted) {
      this.#isFileWanted = true
      this.#options.events.fileWanted()
    }
    return next
  }

  /** Un-synced groups never spread over two files. @returns false while a sync must end first. */
  #leave(active: JournalFile): boolean {
    const isUnsynced = this.#unsynced.length > 0 || this.#commit.isSyncing
    if (isUnsynced && !this.#rules.isFileLeftUnsynced) {
      this.#commit.force()
      // Else the sync that runs asks when it ends: asked in every turn until then, nothing else would have one.
      if (!this.#commit.isSyncing) this.#soon()
      return false
    }
    active.state = 'sealed'
    this.#options.events.fileSealed()
    return true
  }

  /** Also without a next group: what lies in a full file may be repacked. */
  #leaveIfFull(active: JournalFile): void {
    if (active.isLeft || active.position >= active.groupsEnd) this.#leave(active)
  }

  #countPages(position: number, length: number): void {
    const pages = Math.ceil((position + length) / PAGE_SIZE) - Math.floor(position / PAGE_SIZE)
    this.#spend(pages * PAGE_SIZE)
  }

  #spend(sizeBytes: number): void {
    this.counters.writtenBytes += sizeBytes
    this.#options.budget.spend(sizeBytes, this.#nowUs())
  }

  // ---- sync -------------------------------------------------------------------------------------------------------

  #startSync(): void {
    const file = this.#files.active
    if (file === undefined || this.#unsynced.length === 0 || this.#commit.isSyncing) return
    const covered = this.#unsynced.length
    const number = ++this.#syncNumber
    this.#commit.syncStarted(this.#open.batches.length, this.#open.isEmpty ? 0 : this.#open.length, this.#nowUs())
    if (!this.#rules.isPageAlignmentSkipped) file.position = alignUp(file.position, PAGE_SIZE)
    file.handle.datasync((error) => {
      if (number === this.#syncNumber) this.#syncEnded(file, covered, error)
    })
  }

  #syncEnded(file: JournalFile, covered: number, result: Error | null): void {
    this.#spend(SYNC_COST_BYTES)
    const error = result ?? this.#files.displaced(file, this.#nowUs())
    if (error !== null && !this.#rules.isFailedSyncRetried) {
      this.counters.syncFailedCount++
      this.#fail(file, toEdgeError(error))
      return
    }
    this.counters.syncCount++
    this.#failuresInRow = 0
    this.#commit.syncEnded(this.#nowUs())
    const groups = this.#unsynced.splice(0, covered)
    for (const group of groups) this.#becomeDurable(group)
    this.#leaveIfFull(file)
    this.#settleWritten()
    this.#reclaimBuffer()
    this.#becomeWritable()
    this.#options.events.settled()
    this.#flushes.resolve(this.#syncedCount)
    if (this.#flushes.count > 0) this.#commit.force()
    this.#room.wake()
    this.#soon()
  }

  #becomeDurable({ file, builder, identity }: WrittenGroup): void {
    this.#session.synced(identity)
    this.#durableFile = file
    const isSessionSafe = this.#again.length === 0 && !this.#unsynced.some((group) => group.isFirst)
    if (isSessionSafe) this.#files.release()
    for (const batch of builder.batches) {
      batch.owner.synced(batch)
      batch.settle(null)
    }
    this.#syncedCount += builder.batches.length
    // What is written again keeps the number of the start that gave its offsets.
    if (builder.boot === this.#options.start.boot) this.#options.events.startRecorded()
  }

  /** A duty to sync first may have ended with this sync: later batches that are only written need wait no longer. */
  #settleWritten(): void {
    for (const { builder } of this.#unsynced) {
      for (const batch of builder.batches) if (!batch.isSettled && batch.owner.writtenBefore(batch)) batch.settle(null)
    }
  }

  /** A group that had to wait for the sync of those before it in the same buffer moves to its front. */
  #reclaimBuffer(): void {
    if (this.#unsynced.some((group) => group.builder.area === this.#open.area) || this.#open.start === 0) return
    this.#open = this.#open.movedToFront()
  }

  // ---- failure ----------------------------------------------------------------------------------------------------

  /** Seals the file at its last durable group and begins a new session with everything that is not synced. */
  #fail(file: JournalFile, error: EdgeError): void {
    this.#syncNumber++
    this.#failuresInRow++
    file.state = 'sealed'
    file.isHeld = true
    file.hasFailed = true
    const lost = [...this.#unsynced.map((group) => group.builder), ...this.#again].filter((group) => !group.isEmpty)
    this.#unsynced = []
    this.#again = this.#rules.isWrittenAgainInParts
      ? lost.map((group) => merged([group]))
      : lost.length > 0
        ? [merged(lost)]
        : []
    for (const { batches } of this.#again) for (const batch of batches) batch.owner.keptInMemory(batch)
    if (this.#open.start > 0) this.#open = this.#open.movedToFront()
    this.#session.restart()
    const waiting = this.#open.isEmpty ? this.#again : [...this.#again, this.#open]
    this.#commit.restarted(batchCountOf(waiting), sizeOf(waiting), this.#nowUs())
    const isDisplaced = error.details.isDisplaced === true
    if (isDisplaced || this.#failuresInRow >= MAX_FAILURES_IN_ROW) this.#refuse(error)
    this.#options.events.failed(error, file)
    // The other files are where this one is: all would be given up, one after the other.
    if (!isDisplaced) this.#options.events.fileSealed()
    if (this.#refusal === undefined) this.#soon()
  }

  /**
   * The disk refuses file after file: who waits is told, appends are refused, and everything not synced is kept to be
   * written again. Those messages may still come through: to the sender they are in doubt, as after a lost reply.
   */
  #refuse(cause: EdgeError): void {
    const isNew = this.#refusal === undefined
    this.#refusal = new EdgeError('EDGE_APPEND_FAILED', `the disk refuses: ${cause.message}`, {
      cause,
      details: { cause: cause.code, ...cause.details },
    })
    this.#settleAll(this.#refusal)
    if (!isNew) return
    this.#room.wake()
    this.#retryLater()
  }

  #settleAll(error: EdgeError): void {
    const unsynced = this.#unsynced.map((group) => group.builder)
    for (const { batches } of [...unsynced, ...this.#again, this.#open])
      for (const batch of batches) batch.settle(error)
    this.#flushes.reject(error)
  }

  #retryLater(): void {
    // One that refuses again within the time has a turn due already.
    this.#cancelRetry?.()
    this.#cancelRetry = this.#options.scheduler.after(this.#options.retryMs, () => {
      if (this.#isClosed || this.#refusal === undefined) return
      this.#commit.force()
      this.#soon()
      this.#retryLater()
    })
  }

  #becomeWritable(): void {
    if (this.#refusal === undefined || this.#again.length > 0) return
    this.#refusal = undefined
    this.#options.events.writableAgain()
  }

  /** A group without batches, synced. Nothing else is un-synced, and nobody appends meanwhile. */
  async #writeMark(flags: number): Promise<void> {
    assert(this.#open.isEmpty && this.#unsynced.length === 0, 'a mark stands alone')
    const file = this.#fileFor(this.#open.length + this.#sealSize)
    if (file === undefined || !this.#write(this.#open, flags)) {
      throw new EdgeError('EDGE_APPEND_FAILED', 'no journal file takes a group now')
    }
    file.position = alignUp(file.position, PAGE_SIZE)
    const covered = this.#unsynced.length
    try {
      await syncFile(file.handle)
    } catch (error) {
      this.#fail(file, toEdgeError(error))
      throw error
    }
    for (const group of this.#unsynced.splice(0, covered)) this.#becomeDurable(group)
  }
}

const batchCountOf = (groups: readonly GroupBuilder[]): number =>
  groups.reduce((sum, group) => sum + group.batches.length, 0)

const sizeOf = (groups: readonly GroupBuilder[]): number => groups.reduce((sum, group) => sum + group.length, 0)
