/**
 * What SQLite writes, read off its write-ahead log after each transaction: the frames that came, and the pages that were
 * copied into the database when the log begins anew. SQLite tells neither. It holds no lock on that file, so that opening and
 * closing it here takes none away.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import type { Written } from '../core/flash-budget.ts'

// As https://www.sqlite.org/fileformat2.html#the_write_ahead_log has them; numbers are big-endian.
const HEADER_SIZE = 32
const HEADER_PAGE_SIZE_AT = 8
const HEADER_SALTS_AT = 16
const FRAME_HEADER_SIZE = 24
/** Pages of the database behind it; 0 in all frames of a transaction but the last. */
const FRAME_COMMIT_AT = 4
const FRAME_SALTS_AT = 8
const SALTS_SIZE = 8

/** The log before its pages are copied, and the database behind it. */
const SYNCS_OF_COPY = 2

export class WalMeter {
  readonly #path: string
  readonly #written: Written
  readonly #header = Buffer.alloc(HEADER_SIZE)
  readonly #frame = Buffer.alloc(FRAME_HEADER_SIZE)
  #file: number | undefined
  /** Of this round of the log: other frames behind its last one are of an earlier one. */
  #salts = ''
  #frameCount = 0
  readonly #pages = new Set<number>()

  /** @param path of the database; what its log holds now was counted by nobody, and is not. */
  constructor(path: string, written: Written) {
    this.#path = `${path}-wal`
    this.#written = written
    this.#look()
  }

  /** A transaction is in the log. @param isSynced and the log was synced. */
  committed(isSynced: boolean): void {
    const { sizeBytes, isCopied } = this.#look()
    const syncCount = (isSynced ? 1 : 0) + (isCopied ? SYNCS_OF_COPY : 0)
    if (sizeBytes + syncCount > 0) this.#written(sizeBytes, syncCount)
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }

  /** A log that cannot be read is not counted: nothing else depends on it. */
  #look(): { readonly sizeBytes: number; readonly isCopied: boolean } {
    try {
      this.#file ??= openSync(this.#path, 'r')
      return this.#take(this.#file)
    } catch {
      return { sizeBytes: 0, isCopied: false }
    }
  }

  #take(file: number) {
    let sizeBytes = 0
    let isCopied = false
    if (readSync(file, this.#header, 0, HEADER_SIZE, 0) < HEADER_SIZE) return { sizeBytes, isCopied }
    const pageSize = this.#header.readUInt32BE(HEADER_PAGE_SIZE_AT)
    const salts = saltsAt(this.#header, HEADER_SALTS_AT)
    if (salts !== this.#salts) {
      // It begins anew when all of it lies in the database.
      isCopied = this.#pages.size > 0
      sizeBytes = this.#pages.size * pageSize
      this.#pages.clear()
      this.#frameCount = 0
      this.#salts = salts
    }
    const frameSize = FRAME_HEADER_SIZE + pageSize
    const open: number[] = []
    for (;;) {
      const position = HEADER_SIZE + (this.#frameCount + open.length) * frameSize
      const count = readSync(file, this.#frame, 0, FRAME_HEADER_SIZE, position)
      if (count < FRAME_HEADER_SIZE || saltsAt(this.#frame, FRAME_SALTS_AT) !== salts) break
      open.push(this.#frame.readUInt32BE(0))
      if (this.#frame.readUInt32BE(FRAME_COMMIT_AT) === 0) continue
      // What a transaction left that was taken back has no such frame, and is written over.
      sizeBytes += open.length * frameSize
      this.#frameCount += open.length
      for (const page of open.splice(0)) this.#pages.add(page)
    }
    return { sizeBytes, isCopied }
  }
}

const saltsAt = (bytes: Buffer, at: number): string => bytes.toString('hex', at, at + SALTS_SIZE)
