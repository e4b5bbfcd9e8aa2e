/**
 * The header of a journal file: from its first page, or from the copy in its last one. Without it a file counts as empty, since
 * its groups are known by its salt and generation alone; and the key of a sealed file comes from its bytes.
 */
import { EdgeError } from '../../errors.ts'
import { areaOf } from '../core/byte-area.ts'
import type { Decoded } from '../core/header-sum.ts'
import {
  decodeJournalHeader,
  JOURNAL_HEADER_SIZE,
  JOURNAL_VERSION,
  type JournalHeader,
  PAGE_SIZE,
} from '../core/journal-format.ts'
import type { LogFile } from './file-system.ts'
import { readGiven } from './given-pages.ts'

export interface ReadJournalHeader extends Decoded<JournalHeader> {
  /** As it was written: what the file's key comes from. */
  readonly bytes: Uint8Array
  /**
   * The first page holds something else. The copy may be that of the life before, where a power cut came while the file was
   * prepared: what it tells of counts only as far as no younger file was prepared since.
   */
  readonly isCopy: boolean
}

/** Where the copy stands in a file of that size. */
export const headerCopyAt = (fileSize: number): number => fileSize - PAGE_SIZE

/**
 * @param storeIdBytes undefined: any store's.
 * @returns undefined when there is none, or the disk does not give it; `isBlank`: nothing was ever written there.
 * @throws EDGE_STORE_NEWER; EDGE_IO where the machine is short of something.
 */
export function readJournalHeader(
  handle: LogFile,
  path: string,
  storeIdBytes: Uint8Array | undefined,
): { readonly header: ReadJournalHeader | undefined; readonly isBlank: boolean } {
  const { bytes, isGiven } = bytesAt(handle, 0)
  const isBlank = isGiven && bytes.every((byte) => byte === 0)
  let header = headerIn(bytes, path, storeIdBytes, false)
  const copyAt = headerCopyAt(handle.size())
  if (header === undefined && copyAt > 0) header = headerIn(bytesAt(handle, copyAt).bytes, path, storeIdBytes, true)
  return { header, isBlank: isBlank && header === undefined }
}

export function newerStore(path: string, version: number, supported: number): EdgeError {
  return new EdgeError(
    'EDGE_STORE_NEWER',
    `${path} has format version ${version}, this version reads up to ${supported}`,
    {
      details: { path, version, supported },
    },
  )
}

function bytesAt(handle: LogFile, position: number): { readonly bytes: Uint8Array; readonly isGiven: boolean } {
  const bytes = new Uint8Array(JOURNAL_HEADER_SIZE)
  const { size, refused } = readGiven(handle, bytes, position)
  return { bytes: bytes.subarray(0, size), isGiven: refused.length === 0 }
}

function headerIn(
  bytes: Uint8Array,
  path: string,
  storeIdBytes: Uint8Array | undefined,
  isCopy: boolean,
): ReadJournalHeader | undefined {
  const header = decodeJournalHeader(areaOf(bytes))
  if (header !== undefined && header.version > JOURNAL_VERSION) throw newerStore(path, header.version, JOURNAL_VERSION)
  const isOurs = header !== undefined && isSame(header.storeIdBytes, storeIdBytes ?? header.storeIdBytes)
  return isOurs ? { ...header, bytes, isCopy } : undefined
}

const isSame = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index])
