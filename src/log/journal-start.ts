/** Where the journal goes on after its files were read: states of the files, and the group that the next one follows. */
import { alignUp } from './core/byte-area.ts'
import { FIRST_GROUP_AT, PAGE_SIZE } from './core/journal-format.ts'
import type { GroupIdentity } from './io/journal-options.ts'
import type { FoundJournal } from './io/journal-recovery.ts'

/**
 * Files with groups that count are sealed; the last one goes on where everything in it is known to be on the disk: behind
 * its last group, or over groups without batches that only the cache may hold.
 */
export function setFileStates(found: FoundJournal, isAllOnDisk: boolean): void {
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
  if (tail.position < tail.size - FIRST_GROUP_AT) tail.state = 'active'
}

/** The last group that is known to be synced. */
export function lastGroup({ scan }: FoundJournal, isAllOnDisk: boolean): GroupIdentity {
  const { chain, proof } = scan
  const last = isAllOnDisk ? chain.at(-1) : chain.findLast((link) => link.header.sequence <= proof)
  if (last === undefined) return { sequence: proof, crc: 0, ordinal: 0 }
  const { sequence, crc, ordinal } = last.header
  return { sequence, crc, ordinal }
}
