/**
 * The header of a segment file: from its beginning, or from the copy that stands before the first block behind the first page.
 * Without it nothing of a file can be read, and the key of a sealed file comes from its bytes.
 */
import { areaOf, type ByteArea } from '../core/byte-area.ts'
import type { Decoded } from '../core/header-sum.ts'
import { PAGE_SIZE } from '../core/journal-format.ts'
import {
  decodeSegmentHeader,
  SEGMENT_HEADER_SIZE,
  SEGMENT_VERSION,
  type SegmentHeader,
  type SegmentName,
} from '../core/segment-format.ts'
import type { LogFile } from './file-system.ts'
import { pagesRefused, readGiven } from './given-pages.ts'
import { newerStore } from './journal-header.ts'
import { nextBlock, searched } from './segment-scan.ts'

export interface ReadSegmentHeader extends Decoded<SegmentHeader> {
  /** As it was written: what the file's key comes from. */
  readonly bytes: Uint8Array
  /** The file begins with something else now: blocks that begin in its first page may be gone as well. */
  readonly isCopy: boolean
}

export interface NamedSegment extends Pick<SegmentName, 'baseOffset' | 'runNumber'> {
  readonly path: string
}

/**
 * @param key of the partition whose folder it lies in.
 * @returns undefined when there is none of that partition.
 * @throws EDGE_STORE_NEWER; EDGE_IO when the disk does not give the first page, and there is no copy.
 */
export function readSegmentHeader(handle: LogFile, file: NamedSegment, key: number): ReadSegmentHeader | undefined {
  const bytes = new Uint8Array(SEGMENT_HEADER_SIZE)
  const { size, refused } = readGiven(handle, bytes, 0)
  const found = headerAt(areaOf(bytes.subarray(0, size)), 0, false) ?? copiedHeader(handle, file, key)
  // Not for good, as far as anybody knows.
  if (found === undefined && refused.length > 0) throw pagesRefused(file.path)
  if (found !== undefined && found.version > SEGMENT_VERSION)
    throw newerStore(file.path, found.version, SEGMENT_VERSION)
  return found?.key === key ? found : undefined
}

/** What a client sent may look like a header: it counts only where blocks behind it go by its seed. */
function copiedHeader(handle: LogFile, file: NamedSegment, key: number): ReadSegmentHeader | undefined {
  const size = handle.size()
  return searched(handle, { from: PAGE_SIZE, end: size, length: SEGMENT_HEADER_SIZE }, (area, at, position) => {
    const header = headerAt(area, at, true)
    const { baseOffset, runNumber } = file
    if (header?.baseOffset !== baseOffset || header.runNumber !== runNumber || header.key !== key) return undefined
    return nextBlock(handle, header.seed, position + SEGMENT_HEADER_SIZE, size) === undefined ? undefined : header
  })
}

function headerAt(area: ByteArea, at: number, isCopy: boolean): ReadSegmentHeader | undefined {
  const header = decodeSegmentHeader(area, at)
  return header && { ...header, bytes: area.bytes.slice(at, at + SEGMENT_HEADER_SIZE), isCopy }
}
