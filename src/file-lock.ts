/**
 * One process a data folder, or a spool file. The kernel's lock (`flock`) decides who of those that start at one moment, and it goes with its
 * process however that ends. The file names the process as well: for people, for who looks without taking it, and for a
 * Node without `node:ffi`, where it is all there is.
 */
import * as fs from 'node:fs'
import { cFunctions } from './c-library.ts'
import { EdgeError } from './errors.ts'
import { identityIn, identityOf, isInPlace } from './file-identity.ts'
import { readFileBytes, refuseOtherThanFile } from './file-kind.ts'

export interface FileLock {
  /** Whether its file still lies where it was made. */
  isHeld(): boolean
  /** The file stays: on a full disk the next start has its place. */
  release(): void
  /** Nothing of it stays, as if it had never been taken. */
  remove(): void
}

const LOCK_EX = 2
const LOCK_NB = 4
/** The file that was opened may be one that its last holder takes along; then the next is tried. */
const MAX_ATTEMPTS = 8

/**
 * @param path of the lock's own file.
 * @param what it stands for, for the error: `data folder`.
 * @throws EDGE_STORE_IN_USE.
 */
export function takeFileLock(path: string, what: string): FileLock {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const lock = tryLock(path, what)
    if (lock !== null) return lock
  }
  throw inUse(path, what, null)
}

/** @returns null when what was locked lies there no more. */
function tryLock(path: string, what: string): FileLock | null {
  refuseOtherThanFile(path)
  const descriptor = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o644)
  try {
    const isFree = lockFile(descriptor)
    const holder = lockHolder(path)
    if (!isFree || holder !== null) throw inUse(path, what, holder)
    const identity = identityOf(path)
    if (!isInPlace(identityIn(fs.fstatSync(descriptor)), identity)) {
      fs.closeSync(descriptor)
      return null
    }
    return holdLock(path, descriptor, identity)
  } catch (error) {
    fs.closeSync(descriptor)
    throw error
  }
}

function holdLock(path: string, descriptor: number, identity: string | undefined): FileLock {
  const name = `${process.pid} ${startTimeOf(process.pid) ?? ''}`
  const isHeld = () => isInPlace(identity, identityOf(path))
  fs.writeSync(descriptor, name, 0)
  fs.ftruncateSync(descriptor, name.length)
  return {
    isHeld,
    release() {
      // Nobody's name, in as many bytes.
      quietly(() => fs.writeSync(descriptor, ' '.repeat(name.length), 0))
      quietly(() => fs.closeSync(descriptor))
    },
    remove() {
      // Before it is let go: what lies there afterwards is another's.
      if (isHeld()) quietly(() => fs.rmSync(path, { force: true }))
      quietly(() => fs.closeSync(descriptor))
    },
  }
}

/** @returns false while another process holds it; true also where there is no such call. */
function lockFile(descriptor: number): boolean {
  let flock: (descriptor: number, operation: number) => number
  try {
    flock = cFunctions({ flock: { arguments: ['i32', 'i32'], return: 'i32' } }).flock
  } catch {
    return true
  }
  return flock(descriptor, LOCK_EX | LOCK_NB) === 0
}

function inUse(path: string, what: string, pid: number | null): EdgeError {
  const who = pid === null ? 'another process' : `process ${pid}`
  return new EdgeError('EDGE_STORE_IN_USE', `${what} is in use by ${who} (${path})`, {
    details: pid === null ? {} : { pid },
  })
}

/** @returns the number of the living process that the lock file `path` names, or null. */
export function lockHolder(path: string): number | null {
  const [pid = '', startTime = ''] = readText(path).split(' ')
  return startTime !== '' && startTimeOf(Number(pid)) === startTime ? Number(pid) : null
}

/** Field 22 of `/proc/<pid>/stat`: clock ticks from boot to the start of the process. */
function startTimeOf(pid: number): string | undefined {
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  const stat = readText(`/proc/${pid}/stat`)
  // The name in brackets may hold blanks: count from behind it.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
}

function readText(path: string): string {
  try {
    return readFileBytes(path).toString('utf8')
  } catch {
    return ''
  }
}

/** What cannot be done is left: the file names a process that is gone, and the kernel knows of no lock. */
function quietly(work: () => void): void {
  try {
    work()
  } catch {
    // Nobody waits for it.
  }
}
