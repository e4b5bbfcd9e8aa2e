/**
 * Consumer offsets of the last second, in a small file beside the database: what SQLite gets once a second survives an end of
 * the process in between. It is written into the system's page cache and never synced, so it costs no flash while the edge
 * runs: a power cut may take it, and with it the last second.
 *
 * Without it an acknowledged offset would be forgotten whenever the process is killed. Iggy's own consumers leave out what
 * they have seen already; one whose server begins a whole batch behind it leaves out everything, stores nothing, and waits
 * for ever.
 *
 * A row has one place, which is written again as often as it changes, until the database has it:
 *
 *     crc32 u32 | generation u32 | partition key u64 | column u64 | offset i64, -1: deleted        all little-endian
 *
 * The generation counts the writes to the database. Rows of another one are older than the database and count for nothing.
 */
import { closeSync, constants, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { assert } from '../../assert.ts'

const ROW_BYTES = 32
/** Rows beyond this wait for the database alone: 4 MiB of page cache. */
const ROWS_MAX = 131_072
const DELETED = -1n
const FILE_MODE = 0o600

export interface TrailRow {
  readonly partitionKey: number
  readonly column: number
  /** undefined: the row was deleted. */
  readonly offset: bigint | undefined
}

export class OffsetTrail {
  readonly #file: number
  readonly #rowBytes = Buffer.alloc(ROW_BYTES)
  readonly #places = new Map<number, Map<number, number>>()
  #rowCount = 0
  #generation = 0
  #isClosed = false

  private constructor(file: number) {
    this.#file = file
  }

  /**
   * @param path of the trail, made when missing.
   * @throws the system's error when it cannot be opened.
   */
  static open(path: string): OffsetTrail {
    return new OffsetTrail(openSync(path, constants.O_RDWR | constants.O_CREAT, FILE_MODE))
  }

  /** @returns the rows of that generation, in no particular order; a torn or damaged one is left out. */
  read(generation: number): TrailRow[] {
    const rows: TrailRow[] = []
    for (let place = 0; place < ROWS_MAX; place++) {
      const count = readSync(this.#file, this.#rowBytes, 0, ROW_BYTES, place * ROW_BYTES)
      if (count < ROW_BYTES) break
      const row = this.#rowBytes
      if (row.readUInt32LE(0) !== crc32(row.subarray(4)) || row.readUInt32LE(4) !== generation) continue
      const offset = row.readBigInt64LE(24)
      rows.push({
        partitionKey: Number(row.readBigUInt64LE(8)),
        column: Number(row.readBigUInt64LE(16)),
        offset: offset === DELETED ? undefined : offset,
      })
    }
    return rows
  }

  /** Forgets all rows: the database has them, with this generation. */
  begin(generation: number): void {
    this.#generation = generation >>> 0
    this.#places.clear()
    this.#rowCount = 0
    ftruncateSync(this.#file, 0)
  }

  /** Notes a change before it is acknowledged. What cannot be noted (a full disk) waits for the database. */
  put(partitionKey: number, column: number, offset: bigint | undefined): void {
    if (this.#isClosed) return
    const place = this.#placeOf(partitionKey, column)
    if (place === undefined) return
    const row = this.#rowBytes
    row.writeUInt32LE(this.#generation, 4)
    row.writeBigUInt64LE(BigInt(partitionKey), 8)
    row.writeBigUInt64LE(BigInt(column), 16)
    row.writeBigInt64LE(offset ?? DELETED, 24)
    row.writeUInt32LE(crc32(row.subarray(4)), 0)
    try {
      writeSync(this.#file, row, 0, ROW_BYTES, place * ROW_BYTES)
    } catch {
      // The promise of the table stands without it: behind the log by a second at most.
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    closeSync(this.#file)
  }

  #placeOf(partitionKey: number, column: number): number | undefined {
    let columns = this.#places.get(partitionKey)
    if (columns === undefined) {
      columns = new Map()
      this.#places.set(partitionKey, columns)
    }
    let place = columns.get(column)
    if (place === undefined) {
      if (this.#rowCount >= ROWS_MAX) return undefined
      place = this.#rowCount++
      columns.set(column, place)
    }
    assert(place < ROWS_MAX, `place ${place} of a row is bounded`)
    return place
  }
}
