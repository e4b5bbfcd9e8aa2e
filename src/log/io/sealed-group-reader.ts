/**
 * Opened groups of sealed journal files, for hot reads: a group is opened whole, and who polls on wants its next batch soon.
 * The least recently used go first. What cannot be opened is remembered as well, so that nobody tries again and again; what
 * the device refuses is not, as it may be given a moment later.
 */
import { EdgeError, toEdgeError } from '../../errors.ts'
import { areaOf, type ByteArea, createArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import { decodeGroupHeader, GROUP_HEADER_SIZE } from '../core/journal-format.ts'
import { isRefused } from './file-system.ts'
import { pagesRefused, readGiven, readGivenArea } from './given-pages.ts'
import { type JournalFile, journalPath } from './journal-file.ts'
import { openGroup } from './sealed-groups.ts'

const MAX_GROUPS = 16
/** Beside the newest, however large it is. */
const MAX_SIZE = 1024 * 1024

interface Opened {
  readonly file: JournalFile
  readonly generation: number
  readonly position: number
  readonly outcome: Uint8Array | EdgeError
}

export class SealedGroupReader {
  readonly #checksum: Checksum
  /** The least recently used first. */
  #groups: Opened[] = []
  #stored: ByteArea = createArea(0)

  constructor(checksum: Checksum) {
    this.#checksum = checksum
  }

  /**
   * @returns `size` bytes from `position` on, as they would stand in a plain file, or why there are none: damage, or a group
   *   that its key does not open. A view of what stays as it is.
   */
  read(file: JournalFile, position: number, size: number): Uint8Array | EdgeError {
    const place = file.groupAt(position)
    if (place === undefined) return damaged(file, position)
    const { outcome } = this.#find(file, place.position) ?? this.#open(file, place)
    if (outcome instanceof EdgeError) return outcome
    const at = position - place.position - GROUP_HEADER_SIZE
    return at < 0 || at + size > outcome.length ? damaged(file, position) : outcome.subarray(at, at + size)
  }

  /** The same of any file, in an area of its own; zeros, in which no batch is found, where a group cannot be opened. */
  areaAt(file: JournalFile, position: number, size: number): ByteArea {
    if (file.cipher !== undefined) {
      const plain = this.read(file, position, size)
      return areaOf(plain instanceof EdgeError ? new Uint8Array(size) : plain)
    }
    return readGivenArea(file.handle, position, size)
  }

  #find(file: JournalFile, position: number): Opened | undefined {
    const at = this.#groups.findLastIndex(
      (each) => each.position === position && each.file === file && each.generation === file.generation,
    )
    const found = this.#groups[at]
    if (found !== undefined && at < this.#groups.length - 1) {
      this.#groups.splice(at, 1)
      this.#groups.push(found)
    }
    return found
  }

  #open(file: JournalFile, place: { position: number; end: number }): Opened {
    const { position } = place
    const opened = { file, generation: file.generation, position, outcome: this.#outcome(file, place) }
    if (isRefused(opened.outcome)) return opened
    this.#groups.push(opened)
    let sizeBytes = this.#groups.reduce((sum, each) => sum + sizeOf(each), 0)
    while (this.#groups.length > 1 && (this.#groups.length > MAX_GROUPS || sizeBytes > MAX_SIZE)) {
      const oldest = this.#groups.shift()
      if (oldest !== undefined) sizeBytes -= sizeOf(oldest)
    }
    return opened
  }

  #outcome(file: JournalFile, { position, end }: { position: number; end: number }): Uint8Array | EdgeError {
    const size = end - position
    if (this.#stored.bytes.length < size) this.#stored = createArea(size)
    const stored = this.#stored
    const { cipher } = file
    const { size: count, refused } = readGiven(file.handle, stored.bytes.subarray(0, size), position)
    if (refused.length > 0) return pagesRefused(journalPath(file.number))
    const header =
      count < GROUP_HEADER_SIZE ? undefined : decodeGroupHeader(stored, 0, file, position, position + count)
    if (header === undefined || cipher === undefined) return damaged(file, position)
    try {
      return openGroup(cipher, stored, 0, header)
    } catch (error) {
      // Only now the checksum: it tells damage from what was sealed with another key.
      const isWhole = this.#checksum(stored.bytes, GROUP_HEADER_SIZE, header.length, 0) === header.bodyCrc
      return isWhole ? toEdgeError(error) : damaged(file, position)
    }
  }
}

const sizeOf = ({ outcome }: Opened): number => (outcome instanceof EdgeError ? 0 : outcome.length)

const damaged = (file: JournalFile, position: number): EdgeError =>
  new EdgeError('EDGE_BATCH_CORRUPT', `the group at ${position} of journal/${file.number} is damaged`)
