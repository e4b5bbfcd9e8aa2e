import type Database from 'better-sqlite3'
import { toStoreError } from './database.ts'
import type { WalMeter } from './wal-meter.ts'

/** Largest value of a SQLite integer: times and offsets beyond it (an expiry given as "for ever") are stored as it. */
const INTEGER_MAX = 2n ** 63n - 1n

/**
 * The one connection, shared by the tables below. Every change goes through `durably` or `softly`: the two promises that
 * metadata can give.
 */
export class Connection {
  readonly #database: Database.Database
  readonly #checkPlace: () => void
  readonly #meter: WalMeter | null
  #isClosed = false

  /**
   * @param checkPlace before each change. @throws EDGE_IO the file is not where it was opened: the change would go with it.
   * @param meter told of each change; closed with this.
   */
  constructor(database: Database.Database, checkPlace: () => void = () => {}, meter: WalMeter | null = null) {
    this.#database = database
    this.#checkPlace = checkPlace
    this.#meter = meter
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** A statement whose integers come back as `number`: ids, counts, keys. */
  statement<Parameters extends unknown[], Row = unknown>(sql: string): Database.Statement<Parameters, Row> {
    return this.#database.prepare<Parameters, Row>(sql)
  }

  /** A statement whose integers come back as `bigint`: offsets and times. */
  bigStatement<Parameters extends unknown[], Row = unknown>(sql: string): Database.Statement<Parameters, Row> {
    return this.#database.prepare<Parameters, Row>(sql).safeIntegers()
  }

  /** All or nothing, on stable storage when it returns (the write-ahead log is synced). @throws EDGE_DISK_FULL, EDGE_IO. */
  durably(work: () => void): void {
    this.#checkPlace()
    try {
      this.#database.pragma('synchronous = FULL')
      this.#database.transaction(work)()
    } catch (error) {
      throw toStoreError(error)
    } finally {
      if (this.#database.open) this.#database.pragma('synchronous = NORMAL')
    }
    this.#meter?.committed(true)
  }

  /** All or nothing; a power cut may take it back, a crash of the process not. @throws EDGE_DISK_FULL, EDGE_IO. */
  softly(work: () => void): void {
    this.#checkPlace()
    try {
      this.#database.transaction(work)()
    } catch (error) {
      throw toStoreError(error)
    }
    this.#meter?.committed(false)
  }

  /** Copies the write-ahead log back and closes. Idempotent. @throws EDGE_DISK_FULL, EDGE_IO; it is closed all the same. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#meter?.close()
    try {
      this.#database.pragma('wal_checkpoint(TRUNCATE)')
    } catch (error) {
      throw toStoreError(error)
    } finally {
      this.#database.close()
    }
  }
}

/** An offset or time as SQLite can hold it. */
export function toInteger(value: bigint): bigint {
  return value > INTEGER_MAX ? INTEGER_MAX : value
}
