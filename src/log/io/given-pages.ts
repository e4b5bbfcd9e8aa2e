/**
 * Reads what a device gives of a range when it refuses a part of it, as flash does that wears out: a page that went bad takes
 * what lies in it, and nothing else. Pages that are not given become zeros, in which no checksum fits.
 */
import { EdgeError } from '../../errors.ts'
import { alignUp, areaOf, type ByteArea } from '../core/byte-area.ts'
import { PAGE_SIZE } from '../core/journal-format.ts'
import type { ByteRange } from '../core/journal-scan.ts'
import { isShortage, type LogFile } from './file-system.ts'

/** Read at once where the whole is refused: most of it is given in a few calls. */
const PIECE_SIZE = 64 * 1024
/** A device may take seconds for each page that it refuses in the end: behind so many only whole pieces are tried. */
const MAX_REFUSED_PAGES = 64

/** What a file is read by. */
export type Readable = Pick<LogFile, 'size' | 'read'>

export interface Given {
  /** Bytes up to the end of the file, or of the target. */
  readonly size: number
  /** Of the file, in order: what was not given. */
  readonly refused: readonly ByteRange[]
}

/** @throws EDGE_IO where the machine is short of something: that tells nothing of a page. */
export function readGiven(handle: Readable, targetView: Uint8Array, position: number): Given {
  try {
    return { size: handle.read(targetView, position), refused: [] }
  } catch (error) {
    if (isShortage(error)) throw error
    const size = Math.max(0, Math.min(targetView.length, handle.size() - position))
    const refused = readInPieces(handle, targetView.subarray(0, size), position)
    return { size, refused }
  }
}

/** The same off the event loop, as long as nothing is refused. @returns what was not given. */
export async function readGivenLater(
  handle: LogFile,
  target: Uint8Array,
  position: number,
): Promise<readonly ByteRange[]> {
  try {
    await handle.readLater(target, position)
    return []
  } catch (error) {
    if (isShortage(error)) throw error
    return readGiven(handle, target, position).refused
  }
}

/** Remembers whether anything was refused to those who make do with what is given. */
export class NotingFile implements Readable {
  readonly #handle: Readable
  isRefused = false

  constructor(handle: Readable) {
    this.#handle = handle
  }

  size(): number {
    return this.#handle.size()
  }

  read(targetView: Uint8Array, position: number): number {
    try {
      return this.#handle.read(targetView, position)
    } catch (error) {
      this.isRefused = true
      throw error
    }
  }
}

/** Why something is missing that lay in such a page. */
export const pagesRefused = (path: string): EdgeError =>
  new EdgeError('EDGE_IO', `the device does not give all pages of ${path}`, { details: { code: 'EIO', path } })

/** The same in an area of its own. */
export function readGivenArea(handle: Readable, position: number, size: number): ByteArea {
  const bytes = new Uint8Array(size)
  return areaOf(bytes.subarray(0, readGiven(handle, bytes, position).size))
}

function readInPieces(handle: Readable, targetView: Uint8Array, position: number): ByteRange[] {
  const refused: ByteRange[] = []
  let refusedPages = 0
  const isRead = ({ from, end }: ByteRange): boolean => {
    try {
      handle.read(targetView.subarray(from - position, end - position), from)
      return true
    } catch (error) {
      if (isShortage(error)) throw error
      return false
    }
  }
  const refuse = ({ from, end }: ByteRange): void => {
    targetView.fill(0, from - position, end - position)
    const last = refused.at(-1)
    if (last?.end === from) refused.splice(-1, 1, { from: last.from, end })
    else refused.push({ from, end })
  }
  const whole = { from: position, end: position + targetView.length }
  for (const piece of cut(whole, PIECE_SIZE)) {
    if (isRead(piece)) continue
    for (const page of cut(piece, PAGE_SIZE)) {
      if (refusedPages < MAX_REFUSED_PAGES && isRead(page)) continue
      refusedPages++
      refuse(page)
    }
  }
  return refused
}

function* cut({ from, end }: ByteRange, step: number): Generator<ByteRange> {
  for (let at = from; at < end; ) {
    const next = Math.min(alignUp(at + 1, step), end)
    yield { from: at, end: next }
    at = next
  }
}
