/** Where the journal goes on after its files were read: sizes, states of the files, the group that the next one follows. */
import { alignUp } from './core/byte-area.ts'
import type { GroupCommitOptions } from './core/group-commit.ts'
import { FIRST_GROUP_AT, PAGE_SIZE } from './core/journal-format.ts'
import { TAG_SIZE } from './core/sealed-body.ts'
import { bodyChecksum } from './io/checksum.ts'
import type { FileSystem } from './io/file-system.ts'
import type { GroupBuilder } from './io/group-buffer.ts'
import type { GroupIdentity } from './io/journal-options.ts'
import { type FoundJournal, readJournal } from './io/journal-recovery.ts'
import type { LogSettings } from './settings.ts'

/** Buffers take turns and may both be written again as one group: four of them fit a file. */
const BUFFERS_PER_FILE = 4
const MAX_BUFFER_SIZE = 2 * 1024 * 1024
/** A sealed group is opened whole, whatever is wanted of it: on a board without AES in hardware a tenth of a second a MiB. */
const MAX_SEALED_BUFFER_SIZE = 1024 * 1024

/** Bytes of one group buffer, and with it of the largest group. */
export function journalBufferSize(fileSize: number, isSealing = false): number {
  const limit = isSealing ? MAX_SEALED_BUFFER_SIZE : MAX_BUFFER_SIZE
  return Math.min(limit, alignUp(fileSize / BUFFERS_PER_FILE, PAGE_SIZE))
}

export interface JournalSizes {
  /** Of files that are made now. */
  readonly fileSize: number
  /** Of the largest file that is there, or will be. */
  readonly largestSize: number
}

/**
 * Files that were found may be larger than they are configured now: what they hold is read as it is, and what must be
 * written again, as one group, fits a file.
 */
export function journalSizes(
  configuredSize: number,
  { files }: Pick<FoundJournal, 'files'>,
  again: readonly GroupBuilder[],
): JournalSizes {
  const longest = again.reduce((most, { length }) => Math.max(most, length), 0)
  const fileSize = Math.max(configuredSize, alignUp(FIRST_GROUP_AT + longest + TAG_SIZE, PAGE_SIZE) + PAGE_SIZE)
  return { fileSize, largestSize: files.reduce((largest, { size }) => Math.max(largest, size), fileSize) }
}

export const groupCommitOptions = (settings: LogSettings, bufferSize: number): GroupCommitOptions => ({
  lingerMinUs: settings.linger_min_us,
  lingerShare: settings.linger_share_percent / 100,
  flushIntervalUs: settings.flush_interval * 1000,
  flushSizeBytes: settings.flush_size,
  urgentBytes: bufferSize / 2,
})

/** What journal headers say before anything else is opened: for a store whose descriptor is lost. */
export function journalWitness(fileSystem: FileSystem): { storeId: Uint8Array; nextKey: number } | undefined {
  const found = readJournal({ fileSystem, storeIdBytes: undefined, checksum: bodyChecksum })
  for (const file of found.files) file.handle.close()
  return found.witness
}

/**
 * Files with groups that count are sealed; the last one goes on where everything in it is known to be on the disk: behind
 * its last group, or over groups without batches that only the cache may hold.
 */
export function setFileStates(found: FoundJournal, isAllOnDisk: boolean, currentKeyId: number): void {
  const { chain, proof, unprovenFileIds } = found.scan
  const living = new Set(chain.map((link) => link.fileId))
  for (const file of found.files) {
    file.isHeld = !isAllOnDisk && unprovenFileIds.has(file.number)
    file.state = living.has(file.number) || file.isHeld ? 'sealed' : 'free'
  }
  const tail = found.files.find((file) => file.number === chain.at(-1)?.fileId)
  if (tail === undefined || (!isAllOnDisk && unprovenFileIds.size > 0)) return
  const kept = isAllOnDisk ? chain : chain.filter((link) => link.header.sequence <= proof)
  const last = kept.findLast((link) => link.fileId === tail.number)?.header
  tail.position = last === undefined ? FIRST_GROUP_AT : alignUp(last.position + last.length, PAGE_SIZE)
  // A file holds groups of one key alone, or plain ones alone.
  const isOfThisKey = tail.encryptionKeyId === currentKeyId
  // One that was cut short, or whose first page went bad, is repacked and replaced, or it would be told of at each start.
  const isCut = found.cutShort.some(({ name }) => name === String(tail.number))
  const isWorn = isCut || tail.hasFailed
  if (isOfThisKey && !isWorn && tail.position < tail.groupsEnd) tail.state = 'active'
}

/** The last group that is known to be synced. */
export function lastGroup({ scan }: FoundJournal, isAllOnDisk: boolean): GroupIdentity {
  const { chain, proof } = scan
  const last = isAllOnDisk ? chain.at(-1) : chain.findLast((link) => link.header.sequence <= proof)
  if (last === undefined) return { sequence: proof, crc: 0, ordinal: 0 }
  const { sequence, crc, ordinal } = last.header
  return { sequence, crc, ordinal }
}
