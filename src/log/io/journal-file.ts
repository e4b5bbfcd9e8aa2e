/**
 * One journal file: zeroed once, then recycled for ever under a new generation and salt. Its name says nothing, its
 * header everything: no directory changes when it is recycled, and a header is one sector.
 */
import { createArea } from '../core/byte-area.ts'
import {
  encodeJournalHeader,
  FIRST_GROUP_AT,
  JOURNAL_HEADER_SIZE,
  JOURNAL_VERSION,
  type JournalHeader,
  seedOf,
} from '../core/journal-format.ts'
import type { FileSystem, LogFile } from './file-system.ts'

/**
 * `free`: nothing in it is needed, its header must be written anew. `spare`: prepared, empty. `active`: takes groups.
 * `sealed`: full or failed, waits to be repacked.
 */
export type JournalFileState = 'free' | 'spare' | 'active' | 'sealed'

const ZEROS_SIZE = 1024 * 1024

export class JournalFile {
  readonly number: number
  readonly handle: LogFile
  readonly size: number
  state: JournalFileState = 'free'
  generation: number
  salt: bigint
  /** Where the next group may begin. */
  position = FIRST_GROUP_AT
  /** Not to be recycled: groups in it are to be written again elsewhere, and were not synced there yet. */
  isHeld = false
  /** A sync or write on it failed: it is made anew instead of being recycled. */
  hasFailed = false
  /** Monotonic µs of its first group, to repack it when it grows old. */
  firstGroupUs: number | undefined
  readonly #sessions: { readonly from: number; readonly seed: number; readonly boot: number }[] = []

  constructor(number: number, handle: LogFile, header: { size: number; generation: number; salt: bigint }) {
    this.number = number
    this.handle = handle
    this.size = header.size
    this.generation = header.generation
    this.salt = header.salt
  }

  get isEmpty(): boolean {
    return this.#sessions.length === 0
  }

  /** A group of that session was written at `position`, or found there. */
  noteGroup(position: number, sessionSalt: bigint, boot: number): void {
    const seed = seedOf(sessionSalt)
    const last = this.#sessions.at(-1)
    if (last?.seed !== seed || last.boot !== boot) this.#sessions.push({ from: position, seed, boot })
  }

  /** Machine start at which the batches around `position` were given their offsets. */
  bootAt(position: number): number {
    return this.#sessions.findLast((session) => session.from <= position)?.boot ?? 0
  }

  /** CRC seed of the batch headers around `position`. */
  seedAt(position: number): number {
    return this.#sessions.findLast((session) => session.from <= position)?.seed ?? 0
  }

  /** Writes a header of its own and syncs it: only then is the file a spare. Nothing in it may be needed any more. */
  async prepare(header: Pick<JournalHeader, 'storeIdBytes' | 'generation' | 'salt' | 'keyFloor'>): Promise<void> {
    this.generation = header.generation
    this.salt = header.salt
    this.position = FIRST_GROUP_AT
    this.firstGroupUs = undefined
    this.#sessions.length = 0
    const area = createArea(JOURNAL_HEADER_SIZE)
    encodeJournalHeader(area, { ...header, version: JOURNAL_VERSION, fileSize: this.size, encryptionKeyId: 0 })
    this.handle.write(area.bytes, 0)
    await syncFile(this.handle)
    this.state = 'spare'
  }
}

export const journalPath = (number: number): string => `journal/${number}`

/** Makes a file of zeros, synced but for its name: overwriting allocated blocks costs one flush, growing costs two. */
export async function createZeroed(fileSystem: FileSystem, path: string, size: number): Promise<LogFile> {
  const handle = fileSystem.open(path, 'create')
  try {
    const zeros = new Uint8Array(Math.min(size, ZEROS_SIZE))
    for (let position = 0; position < size; position += zeros.length) {
      handle.write(zeros.subarray(0, Math.min(zeros.length, size - position)), position)
    }
    await syncFile(handle)
    return handle
  } catch (error) {
    handle.close()
    fileSystem.unlink(path)
    throw error
  }
}

export function syncFile(handle: LogFile): Promise<void> {
  return new Promise((resolve, reject) => {
    handle.datasync((error) => (error === null ? resolve() : reject(error)))
  })
}
