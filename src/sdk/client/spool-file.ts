/**
 * Unsent messages of a producer in one file, so that they survive a restart. Little-endian:
 *
 *   head    "iggyspl1"
 *   entry   [body length:4][crc32 of the body:4][body]
 *   body    [1] id 16, origin time u64 µs, headers length u32, headers, payload
 *           [2] count u32: so many of the oldest messages are done with
 *           [3] count u32: the message behind so many of the oldest was given up
 *
 * A torn tail is cut off; a last entry that is all there with a wrong sum is damage. Once everything is done with, the file is cut to its head; one that always holds something unsent is
 * written anew, without what is done with, each time it has doubled. One program at a time has it open: two would send and cut
 * each other's messages. The lock is a file beside it.
 */
import { copyFile, type FileHandle, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EdgeError, messageOf } from '../../errors.ts'
import { type FileLock, takeFileLock } from '../../file-lock.ts'
import type { Spool, SpooledMessage } from './producer.ts'
import { entryOfMessage, entryOfNote, MAGIC, readEntries, startsWithMagic } from './spool-format.ts'
import { type Note, NoteLedger } from './spool-notes.ts'

/** A smaller file is left as it is. */
const REWRITE_ABOVE_BYTES = 16 * 1024 * 1024

/**
 * @throws {EdgeError} EDGE_STORE_IN_USE while another has it open, EDGE_STORE_NEWER for a file that is no spool of this form,
 *   EDGE_IO.
 */
export async function openSpoolFile(path: string): Promise<Spool> {
  let lock: FileLock | undefined
  try {
    lock = takeFileLock(`${path}.lock`, 'spool file')
    return await openLocked(path, lock)
  } catch (cause) {
    lock?.release()
    if (cause instanceof EdgeError) throw cause
    throw new EdgeError('EDGE_IO', `spool file ${path}: ${messageOf(cause)}`, { cause })
  }
}

async function openLocked(path: string, lock: FileLock): Promise<Spool> {
  const file = await open(path, 'a+')
  try {
    const bytes = new Uint8Array(await file.readFile())
    if (!startsWithMagic(bytes)) {
      throw new EdgeError('EDGE_STORE_NEWER', `${path}: expected a spool file that begins with "iggyspl1"`)
    }
    // New, or its very first write was cut short.
    if (bytes.length < MAGIC.length) await file.appendFile(MAGIC.subarray(bytes.length))
    const { pending, endAt, damagedBytes } = readEntries(bytes)
    // As it was, for whoever wants to look for more in it.
    if (damagedBytes > 0) await copyFile(path, `${path}.damaged`)
    const keptBytes = pending.length === 0 ? MAGIC.length : endAt
    await file.truncate(keptBytes)
    const spool = new SpoolFile({ path, lock, file, pending, endAt: keptBytes, damagedBytes })
    // What follows counts messages from the oldest on: none that cannot be read may be among them.
    if (damagedBytes > 0) await spool.writeAnew()
    return spool
  } catch (error) {
    await file.close()
    throw error
  }
}

interface OpenedSpool {
  readonly path: string
  readonly lock: FileLock
  readonly file: FileHandle
  readonly pending: SpooledMessage[]
  readonly endAt: number
  readonly damagedBytes: number
}

class SpoolFile implements Spool {
  readonly damagedBytes: number
  readonly #pending: SpooledMessage[]
  readonly #path: string
  readonly #lock: FileLock
  #file: FileHandle
  #pendingCount: number
  /** What is written as one: it is open until all that was to be done before is done. */
  #group: (Uint8Array | Note)[] = []
  /** Notes that the disk did not take: they go before whatever it takes next, as it counts from the oldest on. */
  readonly #owed = new NoteLedger()
  #groupWritten: Promise<void> = Promise.resolve()
  /** The end of all that is to be done to the file, one after the other. */
  #tail: Promise<void> = Promise.resolve()
  #endAt: number
  /** Whether more than whole entries may lie behind `#endAt`; they would hide what follows. */
  #isTorn = false
  #rewriteAboveBytes = REWRITE_ABOVE_BYTES
  #isClosed = false

  constructor({ path, lock, file, pending, endAt, damagedBytes }: OpenedSpool) {
    this.damagedBytes = damagedBytes
    this.#path = path
    this.#lock = lock
    this.#file = file
    this.#pending = pending
    this.#pendingCount = pending.length
    this.#endAt = endAt
  }

  get pending(): readonly SpooledMessage[] {
    return this.#pending
  }

  async append(message: SpooledMessage): Promise<void> {
    const entry = entryOfMessage(message)
    this.#pendingCount += 1
    try {
      await this.#write(entry)
    } catch (error) {
      this.#pendingCount -= 1
      throw error
    }
  }

  async acknowledged(count: number): Promise<void> {
    this.#pendingCount -= count
    this.#pending.splice(0, count)
    await this.#note({ kind: 'done', count })
  }

  async gaveUp(aheadCount: number): Promise<void> {
    this.#pendingCount -= 1
    this.#pending.splice(aheadCount, 1)
    await this.#note({ kind: 'given-up', count: aheadCount })
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#tail
    await this.#file.close()
    this.#lock.release()
  }

  /** With what is pending now: before anything was appended. */
  writeAnew(): Promise<void> {
    return this.#inTurn(() => this.#replaceBy(this.#pending))
  }

  async #note(note: Note): Promise<void> {
    await this.#write(note)
    await this.#inTurn(() => this.#shrink())
  }

  async #write(entry: Uint8Array | Note): Promise<void> {
    if (this.#isClosed) throw new EdgeError('EDGE_IO', 'the spool file was closed')
    this.#group.push(entry)
    if (this.#group.length === 1) this.#groupWritten = this.#inTurn(() => this.#writeGroup())
    await this.#groupWritten
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#tail.then(work)
    this.#tail = done.catch(() => {}) // told to who asked for it
    return done
  }

  async #writeGroup(): Promise<void> {
    const group = this.#group
    this.#group = []
    try {
      if (this.#isTorn) await this.#file.truncate(this.#endAt)
      this.#isTorn = true
      const owed = this.#owed.notes().map(entryOfNote)
      const entries = group.map((entry) => (entry instanceof Uint8Array ? entry : entryOfNote(entry)))
      this.#endAt += await writeAll(this.#file, [...owed, ...entries])
      this.#isTorn = false
      this.#owed.clear()
    } catch (cause) {
      for (const entry of group) if (!(entry instanceof Uint8Array)) this.#owed.add(entry)
      throw new EdgeError('EDGE_IO', 'the spool file cannot be written', { cause })
    }
  }

  async #shrink(): Promise<void> {
    if (this.#isClosed) return
    if (this.#pendingCount === 0) {
      await this.#file.truncate(MAGIC.length)
      this.#endAt = MAGIC.length
    } else if (this.#endAt > this.#rewriteAboveBytes) {
      // Also when it fails, so that a full disk does not make each acknowledgement try.
      this.#rewriteAboveBytes = this.#endAt * 2
      await this.#rewrite()
      this.#rewriteAboveBytes = Math.max(REWRITE_ABOVE_BYTES, this.#endAt * 2)
    }
  }

  async #rewrite(): Promise<void> {
    // What a failed write left behind the end was refused, or is owed.
    const { pending, damagedBytes } = readEntries(new Uint8Array(await readFile(this.#path)).subarray(0, this.#endAt))
    // What is counted here has places that would no longer be there: the next one that opens the file mends it.
    if (damagedBytes > 0)
      throw new EdgeError('EDGE_BATCH_CORRUPT', `spool file ${this.#path}: ${damagedBytes} bytes are damaged`)
    await this.#replaceBy(pending)
  }

  async #replaceBy(pending: readonly SpooledMessage[]): Promise<void> {
    const newPath = `${this.#path}.new`
    await rm(newPath, { force: true })
    const file = await open(newPath, 'ax+')
    try {
      const sizeBytes = await writeAll(file, [MAGIC, ...pending.map(entryOfMessage)])
      await rename(newPath, this.#path)
      this.#endAt = sizeBytes
    } catch (error) {
      await file.close()
      throw error
    }
    await this.#file.close()
    this.#file = file
    await syncFolder(dirname(this.#path))
  }
}

/** @returns how many bytes are on disk now. */
async function writeAll(file: FileHandle, chunks: readonly Uint8Array[]): Promise<number> {
  const sizeBytes = chunks.reduce((sum, { length }) => sum + length, 0)
  const { bytesWritten } = await file.writev(chunks)
  // A disk that fills up meanwhile takes a part, without an error.
  if (bytesWritten !== sizeBytes) throw new Error(`only ${bytesWritten} of ${sizeBytes} bytes were written`)
  await file.datasync()
  return sizeBytes
}

/** Until then the file of before could come back under this name. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
