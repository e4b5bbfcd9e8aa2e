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
 * @returns undefined when there is none; `isBlank`: nothing was ever written there.
 * @throws EDGE_STORE_NEWER; EDGE_IO when the disk does not give the first page, and there is no copy.
 */
export function readJournalHeader(
  handle: LogFile,
  path: string,
  storeIdBytes: Uint8Array | undefined,
): { readonly header: ReadJournalHeader | undefined; readonly isBlank: boolean } {
  let isBlank = false
  let header: ReadJournalHeader | undefined
  let failure: unknown
  try {
    const bytes = bytesAt(handle, 0)
    isBlank = bytes.every((byte) => byte === 0)
    header = headerIn(bytes, path, storeIdBytes, false)
  } catch (error) {
    if (error instanceof EdgeError && error.code === 'EDGE_STORE_NEWER') throw error
    failure = error
  }
  const copyAt = headerCopyAt(handle.size())
  if (header === undefined && copyAt > 0) header = headerIn(bytesAt(handle, copyAt), path, storeIdBytes, true)
  if (header === undefined && failure !== undefined) throw failure
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

function bytesAt(handle: LogFile, position: number): Uint8Array {
  const bytes = new Uint8Array(JOURNAL_HEADER_SIZE)
  return bytes.subarray(0, handle.read(bytes, position))
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
