/** The machine's file system behind the log's port: plain calls of `node:fs`, errors translated where they enter. */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { EdgeError, systemCodeOf } from '../../errors.ts'
import { identityOf } from '../../file-identity.ts'
import { notAFolder, refuseOtherThanFile } from '../../file-kind.ts'
import { takeFileLock } from '../../file-lock.ts'
import { createReadAtHand } from './at-hand.ts'
import type { DirectoryEntry, DiskSpace, FileSystem, LogFile } from './file-system.ts'

const FULL_CODES = new Set(['ENOSPC', 'EDQUOT'])
/** There is none of that name, or a file stands in its place. */
const NO_FOLDER_CODES: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR'])

const ENTRIES_AT_ONCE = 256

const readAtHand = createReadAtHand()

/** @param root the data folder; made here when its parent exists. */
export function createNodeFileSystem(root: string): FileSystem {
  const at = (path: string): string => join(root, path)
  return {
    list: (path) => listFolder(at(path)),
    open: (path, mode) => openFile(at(path), mode),
    makeDirectory: (path) =>
      checked(at(path), () => {
        // Never the data folder itself: where it was deleted, what would be made is no store.
        fs.statSync(root)
        fs.mkdirSync(at(path), { recursive: true })
      }),
    rename: (from, to) => checked(at(from), () => fs.renameSync(at(from), at(to))),
    unlink: (path) => checked(at(path), () => unlinkIfThere(at(path))),
    removeDirectory: (path) => removeDirectory(at(path)),
    syncDirectory: (path) => syncDirectory(at(path)),
    space: () => checked(root, () => spaceOf(root)),
    sizeOf: (path) => sizeOfFile(at(path)),
    identity: (path) => identityOf(at(path)),
    lock: (path) => checked(at(path), () => takeFileLock(at(path), 'data folder')),
  }
}

/** The kernel's number of this machine start; empty where there is none, which counts as a new start each time. */
export function machineBootId(): string {
  try {
    return fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}

export const sizeOfFile = (path: string): number =>
  checked(path, () => fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0)

export function listFolder(path: string): readonly DirectoryEntry[] {
  try {
    return entriesOf(path)
  } catch (error) {
    if (NO_FOLDER_CODES.has(systemCodeOf(error))) return []
    throw translated(path, error)
  }
}

/** One after the other: there may be a hundred thousand segments, and Node's own entry of each is large. */
function entriesOf(path: string): readonly DirectoryEntry[] {
  const entries: DirectoryEntry[] = []
  const folder = fs.opendirSync(path, { bufferSize: ENTRIES_AT_ONCE })
  try {
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync())
      entries.push({ name: entry.name, isDirectory: entry.isDirectory() })
  } finally {
    folder.closeSync()
  }
  // As `readdir` gives them: whatever the disk's own order is, a start goes the same way and tells the same.
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1))
}

const OPEN_FLAGS = { existing: 'r+', reading: 'r', create: 'wx+' } as const

function openFile(path: string, mode: keyof typeof OPEN_FLAGS): LogFile {
  return new NodeFile(
    path,
    checked(path, () => {
      if (mode !== 'create') refuseOtherThanFile(path)
      return fs.openSync(path, OPEN_FLAGS[mode])
    }),
  )
}

function removeDirectory(path: string): void {
  try {
    fs.rmdirSync(path)
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw translated(path, error)
  }
}

async function syncDirectory(path: string): Promise<void> {
  try {
    const handle = await fs.promises.open(path, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw translated(path, error)
  }
}

function spaceOf(root: string): DiskSpace {
  const { bavail, blocks, bsize } = fs.statfsSync(root)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

/** Not by `rmSync`: of a file system that is read-only its errors have no code. */
function unlinkIfThere(path: string): void {
  try {
    fs.unlinkSync(path)
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error
  }
}

class NodeFile implements LogFile {
  readonly #path: string
  readonly #descriptor: number
  /** Calls that run on the pool: the descriptor must not be closed, and so reused, under them. */
  #running = 0
  #isClosing = false

  constructor(path: string, descriptor: number) {
    this.#path = path
    this.#descriptor = descriptor
  }

  size(): number {
    return checked(this.#path, () => fs.fstatSync(this.#descriptor).size)
  }

  read(targetView: Uint8Array, position: number): number {
    let done = 0
    while (done < targetView.length) {
      const left = targetView.length - done
      const count = checked(this.#path, () => fs.readSync(this.#descriptor, targetView, done, left, position + done))
      if (count === 0) break
      done += count
    }
    return done
  }

  readAtHand(targetView: Uint8Array, position: number): boolean {
    // Its descriptor may be another file's by now.
    return !this.#isClosing && readAtHand(this.#descriptor, targetView, position)
  }

  readLater(target: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      let done = 0
      this.#running++
      const ended = (error: NodeJS.ErrnoException | null, count: number): void => {
        done += count
        if (error === null && count > 0 && done < target.length) {
          next()
          return
        }
        this.#ended()
        if (error === null) resolve(done)
        else reject(translated(this.#path, error))
      }
      const next = (): void => fs.read(this.#descriptor, target, done, target.length - done, position + done, ended)
      next()
    })
  }

  write(bytesView: Uint8Array, position: number): void {
    let done = 0
    while (done < bytesView.length) {
      const left = bytesView.length - done
      // After a short write the next call tells the cause.
      done += checked(this.#path, () => fs.writeSync(this.#descriptor, bytesView, done, left, position + done))
    }
  }

  datasync(done: (error: Error | null) => void): void {
    this.#running++
    fs.fdatasync(this.#descriptor, (error) => {
      this.#ended()
      done(error === null ? null : translated(this.#path, error))
    })
  }

  truncate(size: number): void {
    checked(this.#path, () => fs.ftruncateSync(this.#descriptor, size))
  }

  close(): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#running++
    this.#ended()
  }

  #ended(): void {
    this.#running--
    if (this.#isClosing && this.#running === 0) fs.closeSync(this.#descriptor)
  }
}

function checked<T>(path: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw translated(path, error)
  }
}

function translated(path: string, error: unknown): EdgeError {
  if (error instanceof EdgeError) return error
  const code = systemCodeOf(error)
  if (code === 'ENOTDIR')
    return new EdgeError('EDGE_IO', `${path}: ${notAFolder(path) ?? code}`, { details: { code, path }, cause: error })
  const kind = FULL_CODES.has(code) ? 'EDGE_DISK_FULL' : 'EDGE_IO'
  const words = code === 'EROFS' ? 'EROFS (the file system is read-only)' : code || 'I/O error'
  return new EdgeError(kind, `${words} on ${path}`, { details: { code, path }, cause: error })
}
