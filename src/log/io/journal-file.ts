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
import { headerCopyAt } from './journal-header.ts'
import type { FileCipher, StoreKeys } from './store-keys.ts'

/**
 * `free`: nothing in it is needed, its header must be written anew. `spare`: prepared, empty. `active`: takes groups.
 * `sealed`: full or failed, waits to be repacked.
 */
export type JournalFileState = 'free' | 'spare' | 'active' | 'sealed'

export interface JournalFileHeader extends Pick<JournalHeader, 'generation' | 'salt'> {
  readonly size: number
  /** 0 when left out. */
  readonly encryptionKeyId?: number
  readonly cipher?: FileCipher | undefined
}

const ZEROS_SIZE = 1024 * 1024

export class JournalFile {
  readonly number: number
  readonly handle: LogFile
  readonly size: number
  state: JournalFileState = 'free'
  generation: number
  salt: bigint
  /** Key that its groups are sealed with; 0: they are plain, and there is no cipher. */
  encryptionKeyId: number
  cipher: FileCipher | undefined
  /** Where the next group may begin. */
  position = FIRST_GROUP_AT
  /** Not to be recycled: groups in it are to be written again elsewhere, and were not synced there yet. */
  isHeld = false
  /** Takes no more groups, though there may be room. */
  isLeft = false
  /** A sync or write on it failed, or may have: it is made anew instead of being recycled. */
  hasFailed = false
  /** Monotonic µs of its first group, to repack it when it grows old. */
  firstGroupUs: number | undefined
  /** Of the first group that counts. */
  firstSequence: number | undefined
  /** Bytes before the first group that could be read when it was found, replaced ones included. */
  unreadSize = 0
  readonly #sessions: { readonly from: number; readonly seed: number; readonly boot: number }[] = []
  /** Where groups begin, ascending; of a sealed file only, whose groups are opened whole. */
  readonly #groups: number[] = []

  constructor(number: number, handle: LogFile, header: JournalFileHeader) {
    this.number = number
    this.handle = handle
    this.size = header.size
    this.generation = header.generation
    this.salt = header.salt
    this.encryptionKeyId = header.encryptionKeyId ?? 0
    this.cipher = header.cipher
  }

  /** Names it as long as it holds what it holds now. */
  get life(): string {
    return `${journalPath(this.number)} ${this.generation}`
  }

  /** Groups end before its last page. Older versions, which kept no copy of the header there, wrote on to the end. */
  get groupsEnd(): number {
    return headerCopyAt(this.size)
  }

  get isEmpty(): boolean {
    return this.#sessions.length === 0
  }

  /** A group of that session was written at `position`, or found there. */
  noteGroup(position: number, sessionSalt: bigint, boot: number): void {
    const seed = seedOf(sessionSalt)
    const last = this.#sessions.at(-1)
    if (last?.seed !== seed || last.boot !== boot) this.#sessions.push({ from: position, seed, boot })
    if (this.cipher === undefined) return
    // Groups that the cache alone held are written over after a power cut.
    while ((this.#groups.at(-1) ?? -1) >= position) this.#groups.pop()
    this.#groups.push(position)
  }

  /** Groups of a sealed file, in order: where each begins, and at the latest ends. */
  *groups(): Generator<{ readonly position: number; readonly end: number }> {
    for (const [index, position] of this.#groups.entries()) {
      // Behind its end may lie what only the cache was known to hold, without batches.
      if (position < this.position) yield { position, end: this.#endOf(index) }
    }
  }

  /** The group of a sealed file that `position` lies in. */
  groupAt(position: number): { readonly position: number; readonly end: number } | undefined {
    let low = 0
    let high = this.#groups.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#groups[middle] ?? 0) <= position) low = middle + 1
      else high = middle
    }
    const start = this.#groups[low - 1]
    return start === undefined ? undefined : { position: start, end: this.#endOf(low - 1) }
  }

  #endOf(index: number): number {
    return this.#groups[index + 1] ?? Math.min(this.position, this.size)
  }

  /** Machine start at which the batches around `position` were given their offsets. */
  bootAt(position: number): number {
    return this.#sessions.findLast((session) => session.from <= position)?.boot ?? 0
  }

  /** CRC seed of the batch headers around `position`. */
  seedAt(position: number): number {
    return this.#sessions.findLast((session) => session.from <= position)?.seed ?? 0
  }

  /**
   * Writes a header of its own, twice, and syncs both: only then is the file a spare. Nothing in it may be needed any more.
   *
   * A power cut may leave any mixture. The first page counts where it can be read: the new header begins an empty file, the
   * old one is a file that was not prepared yet. Where it is garbage the copy says which of the two it is; the old one is
   * still right, since files are prepared oldest first, and none behind a failure: no younger file has lost its groups.
   */
  async prepare(
    header: Pick<JournalHeader, 'storeIdBytes' | 'generation' | 'salt' | 'keyFloor' | 'firstSequence'>,
    keys: StoreKeys,
  ): Promise<void> {
    this.generation = header.generation
    this.salt = header.salt
    this.position = FIRST_GROUP_AT
    this.isLeft = false
    this.firstGroupUs = undefined
    this.firstSequence = undefined
    this.#sessions.length = 0
    this.#groups.length = 0
    this.encryptionKeyId = keys.currentId
    const { size: fileSize, encryptionKeyId } = this
    const area = createArea(JOURNAL_HEADER_SIZE)
    encodeJournalHeader(area, { ...header, version: JOURNAL_VERSION, fileSize, encryptionKeyId })
    this.cipher = keys.cipherFor(area.bytes, encryptionKeyId)
    this.handle.write(area.bytes, 0)
    this.handle.write(area.bytes, this.groupsEnd)
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
