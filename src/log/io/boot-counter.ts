/**
 * Counts machine starts as the store sees them: whenever what was written but not synced may have gone. A new start of the
 * machine is one; so is a process that saw a sync fail, since the kernel may have dropped what it wrote.
 */
import type { DescriptorFiles } from '../catalog/descriptor-files.ts'
import type { FileSystem } from './file-system.ts'

const BOOT_FILE = 'boot.json'
const SYNC_FAILED_FILE = 'sync-failed'

export interface Boot {
  readonly number: number
  /** The machine was started since the log was last open: what is read now lies on the disk, not only in its cache. */
  readonly isAllOnDisk: boolean
}

/**
 * Finds the number of this start and makes it durable.
 *
 * @param bootId of the kernel; empty where it is not known, which counts as a start of its own each time.
 * @param highestBoot the highest number that the journal names, for when the file is lost.
 */
export async function openBoot(
  fileSystem: FileSystem,
  files: DescriptorFiles,
  bootId: string,
  highestBoot: number,
): Promise<Boot> {
  const known = read(files)
  const isSame = known !== undefined && bootId !== '' && known.bootId === bootId
  const hadFailure = fileSystem.list('').some(({ name }) => name === SYNC_FAILED_FILE)
  const number = isSame && !hadFailure ? known.number : Math.max(known?.number ?? 0, highestBoot) + 1
  if (!isSame || number !== known.number) await files.write(BOOT_FILE, JSON.stringify({ number, bootId }))
  if (hadFailure) {
    fileSystem.unlink(SYNC_FAILED_FILE)
    await fileSystem.syncDirectory('')
  }
  return { number, isAllOnDisk: known !== undefined && bootId !== '' && !isSame }
}

/** Leaves word for the next process of this start. The best that can be done: the disk has just refused. */
export function markSyncFailed(fileSystem: FileSystem): void {
  try {
    fileSystem.open(SYNC_FAILED_FILE, 'create').close()
  } catch {
    // It is there already, or nothing can be written at all.
  }
}

function read(files: DescriptorFiles): { number: number; bootId: string } | undefined {
  const found = files.read(BOOT_FILE)
  if (found.kind !== 'sound') return undefined
  const { number, bootId }: { number?: unknown; bootId?: unknown } = JSON.parse(found.body)
  return typeof number === 'number' && typeof bootId === 'string' ? { number, bootId } : undefined
}
