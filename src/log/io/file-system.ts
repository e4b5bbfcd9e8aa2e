/**
 * The file system as the log needs it: port of `node-file-system.ts` and of the simulated disk of the tests.
 *
 * Paths are relative to the data folder, with `/`. Errors are `EdgeError`: EDGE_DISK_FULL (ENOSPC, EDQUOT), EDGE_IO (all
 * others) with the system's code in `details.code`. Short calls are synchronous: they end in the page cache within
 * microseconds. Whatever waits for the device (`datasync`, cold reads, directory syncs) is not.
 */
import { EdgeError, systemCodeOf } from '../../errors.ts'
import type { FileLock } from '../../file-lock.ts'

export interface FileSystem {
  /** @returns names in a folder; empty when it does not exist. */
  list(path: string): readonly DirectoryEntry[]
  /**
   * Opens for reading and writing, or with `reading` for that alone. `create`: the file must not exist yet.
   *
   * @throws EDGE_IO with code ENOENT or EEXIST.
   */
  open(path: string, mode: 'existing' | 'reading' | 'create'): LogFile
  /** Makes a folder and its parents; no error when it is there. */
  makeDirectory(path: string): void
  rename(from: string, to: string): void
  /** No error when it is not there. */
  unlink(path: string): void
  /** Removes an empty folder; no error when it is not there. */
  removeDirectory(path: string): void
  /** Makes names given or taken in this folder durable. */
  syncDirectory(path: string): Promise<void>
  space(): DiskSpace
  /** Bytes of a file, found without opening it: closing a file of SQLite's would give its locks away. 0 without one. */
  sizeOf(path: string): number
  /** Names what lies there, and nothing else as long as somebody has it open; undefined when nothing does. */
  identity(path: string): string | undefined
  /** Takes the data folder for this process until `release`. @throws EDGE_STORE_IN_USE. */
  lock(path: string): FileLock
}

/** What the machine is short of at the moment, by the system's codes: descriptors, memory. */
const SHORTAGE_CODES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'])

/**
 * Whether a call failed for want of something that others hold, or of a device that may be back soon (`Refusals`): it says
 * nothing of the file, and may work a moment later.
 */
export function isShortage(error: unknown): boolean {
  return error instanceof EdgeError && (SHORTAGE_CODES.has(error.details.code) || error.details.mayPass === true)
}

/** Whether that one file or folder is refused, by the device or by whoever may forbid it: others may be given. */
export const isRefused = (error: unknown): error is EdgeError =>
  error instanceof EdgeError && error.code === 'EDGE_IO' && !isShortage(error)

/**
 * What lies in a folder; undefined where it cannot be listed, which `tell` hears of: who must know of what else may lie there
 * cannot go on as if it were empty.
 *
 * @throws EDGE_IO in a shortage.
 */
export function listGiven(
  fileSystem: Pick<FileSystem, 'list'>,
  path: string,
  tell: (error: EdgeError) => void = () => {},
): readonly DirectoryEntry[] | undefined {
  try {
    return fileSystem.list(path)
  } catch (error) {
    if (!isRefused(error)) throw error
    tell(error)
    return undefined
  }
}

/** Whether there is no such file or folder. */
export const isMissing = (error: unknown): boolean => systemCodeOf(error) === 'ENOENT'

/** Writing is forbidden, reading may not be: an immutable file, a disk that was made read-only. */
const READ_ONLY_CODES: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS'])

/** An existing file, for reading at least: who writes to it may be refused. */
export function openToRead(fileSystem: Pick<FileSystem, 'open'>, path: string): LogFile {
  try {
    return fileSystem.open(path, 'existing')
  } catch (error) {
    if (!READ_ONLY_CODES.has(systemCodeOf(error))) throw error
    return fileSystem.open(path, 'reading')
  }
}

/** Whether the disk did it; for what can as well be left undone. */
export function isDone(call: () => void): boolean {
  try {
    call()
    return true
  } catch (error) {
    if (!(error instanceof EdgeError)) throw error
    return false
  }
}

export interface DirectoryEntry {
  readonly name: string
  readonly isDirectory: boolean
}

export interface DiskSpace {
  readonly freeBytes: number
  readonly totalBytes: number
}

export interface LogFile {
  /** Bytes in the file now. */
  size(): number
  /** Fills `targetView` from `position` on. @returns bytes read: fewer only at the end of the file. */
  read(targetView: Uint8Array, position: number): number
  /**
   * As `read`, of what needs no wait for the device.
   *
   * @returns whether all of it was there; else nothing is known of `targetView`, and `readLater` finds the cause.
   */
  readAtHand(targetView: Uint8Array, position: number): boolean
  /** As `read`, off the event loop. `target` is owned by the call until it resolves. */
  readLater(target: Uint8Array, position: number): Promise<number>
  /** Writes all of `bytesView` into the page cache. @throws also on a short write; a part may be in the file then. */
  write(bytesView: Uint8Array, position: number): void
  /** Calls back once, in a later turn: null when everything written before the call is on stable storage. */
  datasync(done: (error: Error | null) => void): void
  truncate(size: number): void
  /** Idempotent; a running sync or read ends first. */
  close(): void
}
