/**
 * Word to the next process of this machine start that a sync has failed: the cache may show bytes that are gone, and
 * offsets that were seen may be missing. It need not be durable: after a power cut the start is another one anyhow.
 */
import type { FileSystem } from './file-system.ts'

const FILE = 'sync-failed'

export const isFailureMarked = (fileSystem: FileSystem): boolean =>
  fileSystem.list('').some(({ name }) => name === FILE)

/** As good as can be: the disk has just refused something. */
export function markFailure(fileSystem: FileSystem): void {
  try {
    fileSystem.open(FILE, 'create').close()
  } catch {
    // It is there already, or nothing can be written at all.
  }
}

/** A group with the new start's number is synced: the mark has done its work. */
export function clearFailureMark(fileSystem: FileSystem): void {
  try {
    fileSystem.unlink(FILE)
  } catch {
    // It only costs a jump at the next open.
  }
}
