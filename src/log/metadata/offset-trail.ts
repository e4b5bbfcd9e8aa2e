/**
 * Consumer offsets of the last second, in a small file beside the database: what SQLite gets once a second survives an end of
 * the process in between. It is written into the system's page cache and never synced, so it costs no flash while the edge
 * runs: a power cut may take it, and with it the last second.
 *
 * Without it an acknowledged offset would be forgotten whenever the process is killed. Iggy's own consumers leave out what
 * they have seen already; one whose server begins a whole batch behind it leaves out everything, stores nothing, and waits
 * for ever.
 *
 * Its rows are drawn in `trail-rows.ts`. No failure here ends anything: the promise of the table stands without it.
 */
import { closeSync, constants, existsSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { assert } from '../../assert.ts'
import { refuseOtherThanFile } from '../../file-kind.ts'
import { decodeTrail, encodeTrailRow, type FoundTrail, NO_TRAIL, TRAIL_ROW_BYTES } from './trail-rows.ts'

/** Rows beyond this wait for the database alone: 4 MiB of page cache. */
const ROWS_MAX = 131_072
/** Bytes that the file keeps: on a disk that is full by now, rows of that many consumers can still be noted. */
export const TRAIL_KEPT_BYTES = 2048 * TRAIL_ROW_BYTES
const FILE_MODE = 0o600

export class OffsetTrail {
  readonly #file: number
  readonly #rowBytes = Buffer.alloc(TRAIL_ROW_BYTES)
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
    refuseOtherThanFile(path)
    return new OffsetTrail(openSync(path, constants.O_RDWR | constants.O_CREAT, FILE_MODE))
  }

  /** What the last process left. @throws the system's error when the file cannot be read. */
  read(): FoundTrail {
    return decodeTrail(readWhole(this.#file))
  }

  /**
   * Forgets all rows: the database has them, with this generation. Those that stay until others take their places are of an
   * older one, and count for nothing.
   *
   * @param isEmptied nothing stays: what is no row would be told again.
   */
  begin(generation: number, isEmptied = false): void {
    this.#generation = generation >>> 0
    this.#places.clear()
    this.#rowCount = 0
    try {
      if (isEmptied) ftruncateSync(this.#file, 0)
      const { size } = fstatSync(this.#file)
      if (size > TRAIL_KEPT_BYTES) ftruncateSync(this.#file, TRAIL_KEPT_BYTES)
      // A hole in the file would be no place on the disk.
      else if (size < TRAIL_KEPT_BYTES) writeSync(this.#file, Buffer.alloc(TRAIL_KEPT_BYTES - size), 0, null, size)
    } catch {
      // A full disk, or a broken one: what is there is all there is.
    }
  }

  /** Goes on with what was found: the database does not have it yet. Each row keeps its place, so that none is ever missing. */
  goOn(generation: number, { rows }: FoundTrail): void {
    this.#generation = generation >>> 0
    for (const { place, partitionKey, column } of rows.filter((row) => row.generation === this.#generation)) {
      this.#columnsOf(partitionKey).set(column, place)
      this.#rowCount = Math.max(this.#rowCount, place + 1)
    }
  }

  /** Notes a change before it is acknowledged. What cannot be noted (a full disk) waits for the database. */
  put(partitionKey: number, column: number, offset: bigint | undefined): void {
    if (this.#isClosed) return
    const place = this.#placeOf(partitionKey, column)
    if (place === undefined) return
    encodeTrailRow(this.#rowBytes, { partitionKey, column, offset }, this.#generation)
    try {
      writeSync(this.#file, this.#rowBytes, 0, TRAIL_ROW_BYTES, place * TRAIL_ROW_BYTES)
    } catch {
      // Behind the log by a second at most.
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    closeSync(this.#file)
  }

  #placeOf(partitionKey: number, column: number): number | undefined {
    const columns = this.#columnsOf(partitionKey)
    let place = columns.get(column)
    if (place === undefined) {
      if (this.#rowCount >= ROWS_MAX) return undefined
      place = this.#rowCount++
      columns.set(column, place)
    }
    assert(place < ROWS_MAX, `place ${place} of a row is bounded`)
    return place
  }

  #columnsOf(partitionKey: number): Map<number, number> {
    const columns = this.#places.get(partitionKey) ?? new Map<number, number>()
    this.#places.set(partitionKey, columns)
    return columns
  }
}

/** Looks at a trail that nobody writes, without changing it. @throws the system's error when it cannot be read. */
export function readTrail(path: string): FoundTrail {
  if (!existsSync(path)) return NO_TRAIL
  refuseOtherThanFile(path)
  const file = openSync(path, 'r')
  try {
    return decodeTrail(readWhole(file))
  } finally {
    closeSync(file)
  }
}

/** No more than this release ever writes. */
function readWhole(file: number): Buffer {
  const bytes = Buffer.alloc(Math.min(fstatSync(file).size, ROWS_MAX * TRAIL_ROW_BYTES))
  let size = 0
  while (size < bytes.length) {
    const count = readSync(file, bytes, size, bytes.length - size, size)
    if (count === 0) break
    size += count
  }
  return bytes.subarray(0, size)
}
