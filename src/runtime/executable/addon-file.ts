/**
 * Files that hold a native addon while it is loaded. The kernel maps a shared object from a file only, so the bytes that
 * travel inside the executable need one: a content-addressed file in a cache folder, or a file that has no name at all.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { cFunctions } from '../../c-library.ts'

/** One addon as the build packed it. */
export interface PackedAddon {
  /** Its file name, such as `better_sqlite3.node`. */
  readonly name: string
  /** SHA-256 of the bytes, hex. */
  readonly digest: string
  /** Maps the bytes; they are read-only memory of the executable, never to be written to. */
  bytes(): Uint8Array
}

/** Linux: an unnamed file in a folder. Not in `fs.constants`, as it is made of `O_DIRECTORY`, which differs by architecture. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY
/** Folders on memory or a disk that usually may hold an unnamed, executable file, the lightest first. */
const UNNAMED_FILE_FOLDERS = ['/dev/shm', '/run', '/tmp']
/** `memfd_create(2)`: not inherited by children; executable also where the kernel makes them data by default (6.3+). */
const MFD_CLOEXEC = 0x1
const MFD_EXEC = 0x10
/** Read at once to check a file. Whole addons (11 MB) made V8 collect three times at every start, and could stay for long. */
const CHECK_BUFFER_BYTES = 64 * 1024

/** @returns whether the file is there and holds exactly the packed bytes: not torn, not rotten, not of another version. */
export function holdsAddon(path: string, addon: PackedAddon): boolean {
  try {
    return digestOf(path) === addon.digest
  } catch {
    return false
  }
}

function digestOf(path: string): string {
  const hash = createHash('sha256')
  const buffer = new Uint8Array(CHECK_BUFFER_BYTES)
  const file = openSync(path, 'r')
  try {
    for (;;) {
      const length = readSync(file, buffer)
      if (length === 0) return hash.digest('hex')
      hash.update(buffer.subarray(0, length))
    }
  } finally {
    closeSync(file)
  }
}

/**
 * Puts the addon into `directory`, once: later starts find it there and share its clean pages with the page cache. A file
 * that is damaged is written again; those of other versions are removed.
 *
 * @returns the path to load.
 */
export function cacheAddon(directory: string, addon: PackedAddon): string {
  const folder = join(directory, 'addons')
  const fileName = `${addon.digest}-${addon.name}`
  const path = join(folder, fileName)
  if (holdsAddon(path, addon)) return path
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const temporaryPath = join(folder, `${fileName}.${process.pid}.tmp`)
  rmSync(temporaryPath, { force: true })
  const file = openSync(temporaryPath, 'wx', 0o500)
  try {
    writeAll(file, addon.bytes())
    // Without it a power cut may leave the name with no bytes under it.
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  // The umask may have taken the right to execute.
  chmodSync(temporaryPath, 0o500)
  renameSync(temporaryPath, path)
  for (const other of readdirSync(folder)) {
    if (other.includes(`-${addon.name}`) && other !== fileName) rmSync(join(folder, other), { force: true })
  }
  return path
}

/**
 * Opens a file without a name: it goes when it is closed and unmapped. Costs the addon's size in memory that cannot be
 * reclaimed when it lies on a tmpfs, so it is the way for read-only systems only.
 *
 * @returns descriptors to try in turn, each with where it lies; the caller closes what it takes.
 */
export function* unnamedFiles(addon: PackedAddon): Generator<{ readonly file: number; readonly place: string }> {
  const memoryFile = createMemoryFile(addon.name)
  if (memoryFile !== undefined) yield { file: memoryFile, place: 'memfd' }
  for (const folder of UNNAMED_FILE_FOLDERS) {
    try {
      yield { file: openSync(folder, O_TMPFILE | constants.O_RDWR, 0o500), place: folder }
    } catch {
      // Not there, not writable, or a file system without unnamed files: the next one.
    }
  }
}

function createMemoryFile(name: string): number | undefined {
  try {
    const { memfd_create } = cFunctions({ memfd_create: { arguments: ['string', 'u32'], return: 'i32' } })
    let file = memfd_create(name, MFD_CLOEXEC | MFD_EXEC)
    // Kernels before 6.3 refuse the flag they do not know, and need none.
    if (file < 0) file = memfd_create(name, MFD_CLOEXEC)
    return file < 0 ? undefined : file
  } catch {
    return undefined
  }
}

export function writeAll(file: number, bytes: Uint8Array): void {
  for (let position = 0; position < bytes.length; ) position += writeSync(file, bytes, position)
}
