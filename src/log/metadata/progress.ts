/**
 * Consumer offsets and sync cursors: changed in memory by every poll and confirmation, written to SQLite at most once a
 * second in one bounded transaction. They are always behind the log, so losing the last second in a power cut repeats
 * messages and never skips one. When only the process ends, the offsets of that second are in the trail beside the database.
 */
import { assert } from '../../assert.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { ConsumerKind, CursorRow } from '../api.ts'
import { OFFSETS_FILE } from '../catalog/layout.ts'
import type { ReportFinding } from '../ports.ts'
import type { Scheduler } from '../scheduler.ts'
import { type Connection, toInteger } from './connection.ts'
import { columnFrom, columnOf, consumerOf, splitColumn } from './consumer-column.ts'
import type { OffsetTrail } from './offset-trail.ts'
import { PendingTable } from './pending-table.ts'
import { GENERATION_SETTING } from './schema.ts'
import { type FoundTrail, NO_TRAIL, takeTrail } from './trail-rows.ts'

/** One transaction a second at most: what flash and I/O budget can bear for ever. */
const WRITE_INTERVAL_MS = 1000
/** After a failed write (full disk) the next try waits longer; memory holds the rows meanwhile. */
const RETRY_INTERVAL_MS = 5000
/** Rows of one transaction: about 10 ms on a small gateway. What is left goes with the next one. */
const WRITE_ROWS_MAX = 4096
/**
 * Offsets of all partitions together, 54 bytes each: 7 MB. As many for each partition as may be configured would be more than
 * there is memory.
 */
export const TOTAL_OFFSETS_MAX = 131_072
/**
 * Whoever reads a cursor makes a prefix for each incarnation up to its own. It rises by one when the upstream is found ahead
 * of a log that lost its end, or to be another topic of that name: no edge lives through so many, and a row with more is
 * damaged.
 */
const INCARNATION_MAX = 4096
/** Rows that were removed and wait to be removed from the database, too: one that takes no writes keeps them waiting. */
export const REMOVED_ROWS_MAX = 65_536

export interface ProgressOptions {
  readonly connection: Connection
  readonly scheduler: Scheduler
  readonly report: ReportFinding
  /** Offsets kept per partition. */
  readonly maxConsumerOffsets: number
  /** What survives the process between two writes; null for a database in memory. Closed with this. */
  readonly trail: OffsetTrail | null
}

export class Progress {
  readonly #options: ProgressOptions
  readonly #offsets = new PendingTable<number, bigint>()
  readonly #cursors = new PendingTable<string, CursorRow>()
  readonly #statements
  #cancelTimer: (() => void) | null = null
  #isFailing = false
  /** What a timer wrote, or an earlier process, is not synced until a later transaction is. */
  #isSyncOwed = true
  #generation = 0
  /** Of whatever rows lie in the trail. */
  #newestFound = 0

  constructor(options: ProgressOptions) {
    this.#options = options
    const { connection } = options
    this.#statements = {
      putOffset: connection.statement(
        'INSERT OR REPLACE INTO consumer_offsets (partition_key, kind, consumer_id, offset) VALUES (?, ?, ?, ?)',
      ),
      deleteOffset: connection.statement(
        'DELETE FROM consumer_offsets WHERE partition_key = ? AND kind = ? AND consumer_id = ?',
      ),
      putCursor: connection.statement(
        'INSERT OR REPLACE INTO cursors (partition_key, route, confirmed_offset, upstream_offset, incarnation) VALUES (?, ?, ?, ?, ?)',
      ),
      deleteCursor: connection.statement('DELETE FROM cursors WHERE partition_key = ? AND route = ?'),
      putGeneration: connection.statement('INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)'),
    }
    this.#takeTrail(this.#load())
  }

  offset(partitionKey: number, kind: ConsumerKind, consumerId: number): bigint | undefined {
    return this.#offsets.get(partitionKey, columnOf(kind, consumerId))
  }

  setOffset(partitionKey: number, kind: ConsumerKind, consumerId: number, offset: bigint): void {
    assert(offset >= 0n, `a stored offset is not negative: ${offset}`)
    const column = columnOf(kind, consumerId)
    const isNew = this.#offsets.get(partitionKey, column) === undefined
    if (isNew && this.#offsets.countOf(partitionKey) >= this.#options.maxConsumerOffsets) {
      throw new EdgeError(
        'EDGE_TOO_MANY_OFFSETS',
        `partition key ${partitionKey} keeps the offsets of ${this.#options.maxConsumerOffsets} consumers already: delete some`,
        { details: { partitionKey, limit: this.#options.maxConsumerOffsets } },
      )
    }
    if (isNew && this.#offsets.rowCount >= TOTAL_OFFSETS_MAX) {
      throw new EdgeError(
        'EDGE_TOO_MANY_OFFSETS',
        `all partitions together keep ${TOTAL_OFFSETS_MAX} offsets of consumers already: delete some`,
        { details: { partitionKey, limit: TOTAL_OFFSETS_MAX } },
      )
    }
    if (isNew && this.#offsets.removedCount >= REMOVED_ROWS_MAX) {
      throw new EdgeError(
        'EDGE_TOO_MANY_OFFSETS',
        `${REMOVED_ROWS_MAX} offsets that were deleted wait for the database to forget them: store this one again later`,
        { details: { partitionKey, limit: REMOVED_ROWS_MAX } },
      )
    }
    this.#putOffset(partitionKey, column, toInteger(offset))
    this.#wake(WRITE_INTERVAL_MS)
  }

  deleteOffset(partitionKey: number, kind: ConsumerKind, consumerId: number): boolean {
    const wasThere = this.#dropOffset(partitionKey, columnOf(kind, consumerId))
    if (wasThere) this.#wake(WRITE_INTERVAL_MS)
    return wasThere
  }

  deleteOffsetsOf(partitionKey: number): number {
    const columns = [...this.#offsets.of(partitionKey).keys()]
    for (const column of columns) this.#dropOffset(partitionKey, column)
    if (columns.length > 0) this.#wake(WRITE_INTERVAL_MS)
    return columns.length
  }

  *offsetsOf(partitionKey: number): Generator<{ kind: ConsumerKind; consumerId: number; offset: bigint }> {
    for (const [column, offset] of this.#offsets.of(partitionKey)) {
      yield { ...consumerOf(column), offset }
    }
  }

  cursor(route: string, partitionKey: number): CursorRow | undefined {
    return this.#cursors.get(partitionKey, route)
  }

  setCursor(route: string, partitionKey: number, row: CursorRow): void {
    assert(row.confirmedOffset >= -1n, `a cursor is -1 (nothing confirmed) or an offset: ${row.confirmedOffset}`)
    const upstreamOffset = row.upstreamOffset === null ? null : toInteger(row.upstreamOffset)
    this.#cursors.set(partitionKey, route, {
      confirmedOffset: toInteger(row.confirmedOffset),
      upstreamOffset,
      incarnation: row.incarnation ?? 0,
    })
    this.#wake(WRITE_INTERVAL_MS)
  }

  *cursorsOf(partitionKey: number): Generator<{ route: string; row: CursorRow }> {
    for (const [route, row] of this.#cursors.of(partitionKey)) yield { route, row }
  }

  deleteCursors(route: string): void {
    for (const partitionKey of [...this.#cursors.partitionKeys()]) this.#cursors.delete(partitionKey, route)
    this.#wake(WRITE_INTERVAL_MS)
  }

  deletePartition(partitionKey: number): void {
    this.deleteOffsetsOf(partitionKey)
    this.#cursors.deletePartition(partitionKey)
    this.#wake(WRITE_INTERVAL_MS)
  }

  /** Keys of partitions that have an offset or a cursor. */
  partitionKeys(): Set<number> {
    return new Set([...this.#offsets.partitionKeys(), ...this.#cursors.partitionKeys()])
  }

  /**
   * Lowers what lies above the end of a log that lost its tail or was restored from an older copy: a consumer that believes
   * it has read offset 900 of a log that ends at 500 would otherwise skip the next 400 messages.
   *
   * @returns how many rows were lowered.
   */
  clamp(partitionKey: number, nextOffset: bigint): number {
    let count = 0
    for (const [column, offset] of [...this.#offsets.of(partitionKey)]) {
      if (offset < nextOffset) continue
      if (nextOffset === 0n) this.#dropOffset(partitionKey, column)
      else this.#putOffset(partitionKey, column, nextOffset - 1n)
      count++
    }
    for (const [route, row] of [...this.#cursors.of(partitionKey)]) {
      if (row.confirmedOffset < nextOffset) continue
      // Where the record lay upstream is no longer known to be true.
      this.#cursors.set(partitionKey, route, { ...row, confirmedOffset: nextOffset - 1n, upstreamOffset: null })
      count++
    }
    if (count > 0) this.#wake(WRITE_INTERVAL_MS)
    return count
  }

  /** Writes everything that is pending now, with the promise of `Connection`'s method of that name. @throws EDGE_DISK_FULL, EDGE_IO. */
  flush(promise: 'softly' | 'durably' = 'softly'): void {
    while (this.#hasPending()) this.#write(promise)
    if (promise === 'softly' || !this.#isSyncOwed) return
    // A transaction that changes nothing syncs nothing: the number it has already.
    this.#options.connection.durably(() => this.#putGeneration(this.#generation))
    this.#isSyncOwed = false
  }

  close(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = null
  }

  /** After the last write. */
  closeTrail(): void {
    this.#options.trail?.close()
  }

  #putOffset(partitionKey: number, column: number, offset: bigint): void {
    this.#offsets.set(partitionKey, column, offset)
    this.#options.trail?.put(partitionKey, column, offset)
  }

  #dropOffset(partitionKey: number, column: number): boolean {
    const wasThere = this.#offsets.delete(partitionKey, column)
    if (wasThere) this.#options.trail?.put(partitionKey, column, undefined)
    return wasThere
  }

  /** Takes over what the last process had acknowledged and not yet written. */
  #takeTrail(storedGeneration: number | undefined): void {
    this.#generation = storedGeneration ?? 0
    const { trail } = this.#options
    if (trail === null) return
    const found = this.#readTrail(trail)
    const taken = takeTrail(found, storedGeneration, (key, column) => this.#offsets.get(key, column))
    this.#generation = taken.generation
    this.#newestFound = taken.newest
    for (const { partitionKey, column, offset } of taken.changes) {
      if (offset === undefined) this.#offsets.delete(partitionKey, column)
      else this.#offsets.set(partitionKey, column, offset)
    }
    // In the database first: an end in the middle leaves the trail as it was.
    try {
      this.flush()
      trail.begin(this.#generation, found.damagedCount > 0)
    } catch (error) {
      // A full disk: what makes room on it is started later. Until then the trail has what the database has not.
      if (toEdgeError(error).code !== 'EDGE_DISK_FULL') throw error
      this.#reportOnce(error)
      trail.goOn(this.#generation, found)
      this.#wake(RETRY_INTERVAL_MS)
    }
  }

  #readTrail(trail: OffsetTrail): FoundTrail {
    let found = NO_TRAIL
    let reason = ''
    try {
      found = trail.read()
      if (found.damagedCount > 0) reason = `${found.damagedCount} rows are torn or damaged and left out`
    } catch (error) {
      // What lies there nobody knows, so it must go: a later write may have the number of rows in it.
      found = { ...NO_TRAIL, damagedCount: 1 }
      reason = `it cannot be read (${String(error)})`
    }
    if (reason !== '') this.#options.report(trailDamaged(reason))
    return found
  }

  #hasPending(): boolean {
    return this.#offsets.pendingCount + this.#cursors.pendingCount > 0
  }

  #wake(delayMs: number): void {
    if (this.#cancelTimer !== null || !this.#hasPending() || this.#options.connection.isClosed) return
    this.#cancelTimer = this.#options.scheduler.after(delayMs, () => this.#onTimer())
  }

  #onTimer(): void {
    this.#cancelTimer = null
    try {
      this.#write()
      this.#isFailing = false
    } catch (error) {
      this.#reportOnce(error)
    }
    this.#wake(this.#isFailing ? RETRY_INTERVAL_MS : WRITE_INTERVAL_MS)
  }

  #reportOnce(error: unknown): void {
    if (!this.#isFailing) {
      this.#options.report({
        event: 'log.metadata.write_failed',
        level: 'warn',
        text: `consumer offsets and cursors cannot be written, tried again every ${RETRY_INTERVAL_MS} ms: ${String(error)}`,
        fields: { pending_rows: this.#offsets.pendingCount + this.#cursors.pendingCount },
      })
    }
    this.#isFailing = true
  }

  #write(promise: 'softly' | 'durably' = 'softly'): void {
    const offsets = this.#offsets.pending(WRITE_ROWS_MAX)
    const cursors = this.#cursors.pending(WRITE_ROWS_MAX - offsets.length)
    const { putOffset, deleteOffset, putCursor, deleteCursor } = this.#statements
    const isAll = offsets.length > 0 && offsets.length === this.#offsets.pendingCount
    const generation = (Math.max(this.#generation, this.#newestFound) + 1) >>> 0
    this.#options.connection[promise](() => {
      if (isAll) this.#putGeneration(generation)
      for (const { partitionKey, column, value } of offsets) {
        const { kindNumber, consumerId } = splitColumn(column)
        if (value === undefined) deleteOffset.run(partitionKey, kindNumber, consumerId)
        else putOffset.run(partitionKey, kindNumber, consumerId, value)
      }
      for (const { partitionKey, column, value } of cursors) {
        if (value === undefined) deleteCursor.run(partitionKey, column)
        else putCursor.run(partitionKey, column, value.confirmedOffset, value.upstreamOffset, value.incarnation ?? 0)
      }
    })
    this.#isSyncOwed = promise === 'softly'
    this.#offsets.written(offsets)
    this.#cursors.written(cursors)
    // As long as some rows wait for the next transaction, the trail keeps all of them.
    if (!isAll) return
    this.#generation = generation
    this.#options.trail?.begin(generation)
  }

  #putGeneration(generation: number): void {
    this.#statements.putGeneration.run(GENERATION_SETTING, String(generation))
  }

  /** @returns the database's generation, if it names one. */
  #load(): number | undefined {
    const { connection } = this.#options
    const generation = connection
      .statement<[string], { value: string }>('SELECT value FROM settings WHERE name = ?')
      .get(GENERATION_SETTING)
    const offsets = connection.bigStatement<
      [],
      { partition_key: bigint; kind: bigint; consumer_id: bigint; offset: bigint }
    >('SELECT * FROM consumer_offsets')
    for (const row of offsets.iterate()) {
      const column = columnFrom(Number(row.kind), Number(row.consumer_id))
      if (column !== undefined) this.#offsets.load(Number(row.partition_key), column, row.offset)
    }
    const cursors = connection.bigStatement<
      [],
      {
        partition_key: bigint
        route: string
        confirmed_offset: bigint
        upstream_offset: bigint | null
        incarnation: bigint
      }
    >('SELECT * FROM cursors')
    for (const row of cursors.iterate()) {
      if (row.incarnation < 0n || row.incarnation > INCARNATION_MAX || row.confirmed_offset < -1n) continue
      const value = {
        confirmedOffset: row.confirmed_offset,
        upstreamOffset: row.upstream_offset,
        incarnation: Number(row.incarnation),
      }
      this.#cursors.load(Number(row.partition_key), row.route, value)
    }
    return generation === undefined ? undefined : Number(generation.value)
  }
}

const trailDamaged = (reason: string): Parameters<ReportFinding>[0] => ({
  event: 'log.offsets.trail_damaged',
  level: 'warn',
  text: `${OFFSETS_FILE}: ${reason}; consumer offsets acknowledged in the last second before the stop may be older now`,
  fields: { path: OFFSETS_FILE },
})
