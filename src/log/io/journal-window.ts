/**
 * What a repack sees of a journal file: one piece after another, from front to back. So a file never lies in memory whole,
 * and a piece is worked on while the processor's caches still hold it. Groups of a sealed file are opened in the piece.
 */
import type { ByteArea } from '../core/byte-area.ts'
import { decodeGroupHeader } from '../core/journal-format.ts'
import { readGivenLater } from './given-pages.ts'
import type { JournalFile } from './journal-file.ts'
import { openGroupInPlace } from './sealed-groups.ts'

/** Also what is worked on before others have their turn: of the smallest batches some thousand. */
const WINDOW_SIZE = 256 * 1024

/** Bytes of the window for that file, whose batches are at most so large: a batch, or a sealed group, lies in it whole. */
export function windowSizeFor(file: JournalFile, largestBatch: number, wantedSize = WINDOW_SIZE): number {
  let size = Math.max(wantedSize, largestBatch)
  if (file.cipher !== undefined) {
    for (const { position, end } of file.groups()) size = Math.max(size, end - position)
  }
  return Math.min(size, file.position)
}

interface GroupRange {
  readonly position: number
  readonly end: number
}

export class JournalWindow {
  readonly area: ByteArea
  /** The device gave all that lies in it. */
  isGiven = true
  readonly #file: JournalFile
  #start = 0
  #end = 0

  constructor(file: JournalFile, area: ByteArea) {
    this.#file = file
    this.area = area
  }

  /** @returns where in the area the bytes of the file lie; undefined: it must be moved there. */
  find(position: number, size: number): number | undefined {
    return position >= this.#start && position + size <= this.#end ? position - this.#start : undefined
  }

  /**
   * Moves on to the batch at `position` and what fits behind it. What lay in the area is gone. What the device does not give
   * is found damaged batch by batch.
   *
   * @throws EDGE_IO where the machine is short of something.
   */
  async moveTo(position: number): Promise<void> {
    const file = this.#file
    const groups = file.cipher === undefined ? [] : this.#groupsFrom(position)
    const start = groups[0]?.position ?? position
    const end = groups.at(-1)?.end ?? Math.min(start + this.area.bytes.length, file.position)
    this.#start = start
    // Nothing is there until it is read.
    this.#end = start
    const refused = await readGivenLater(file.handle, this.area.bytes.subarray(0, end - start), start)
    this.isGiven = refused.length === 0
    this.#end = end
    for (const group of groups) this.#open(group)
  }

  /** The group that `position` lies in, and as many behind it as fit. */
  #groupsFrom(position: number): readonly GroupRange[] {
    const first = this.#file.groupAt(position)
    if (first === undefined) return []
    const groups: GroupRange[] = [first]
    for (let last = first; ; ) {
      const next = this.#file.groupAt(last.end)
      // Behind the end that was found there may be groups without batches: they end before they begin.
      if (next === undefined || next.position < last.end || next.end <= next.position) break
      if (next.end - first.position > this.area.bytes.length) break
      groups.push(next)
      last = next
    }
    return groups
  }

  /** As it would be if the file were plain. What cannot be opened is found damaged batch by batch. */
  #open({ position }: GroupRange): void {
    const { cipher } = this.#file
    const at = position - this.#start
    const header = decodeGroupHeader(this.area, at, this.#file, position, this.#end)
    if (cipher !== undefined && header !== undefined) openGroupInPlace(cipher, this.area, at, header)
  }
}
