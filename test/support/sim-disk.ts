/**
 * A disk for simulations, down to sectors of 512 bytes: page cache over stable storage, names in folders, room.
 *
 * A power cut gives each sector that was not synced any value written since its last sync, or the old one, independently
 * of all others: lost, torn, reordered. In a quarter of the cuts pages with a dirty sector turn to garbage as well, as
 * cards do. Changes of names survive per folder as a prefix, and what lies in a folder whose name is lost goes with it. A
 * failed sync persists some sectors, drops the rest, and leaves the cache as it was (but clean) or reverted: kernels differ;
 * that of a folder leaves its names as they were. A kill keeps the cache. A folder may refuse that names are given or taken
 * in it, as one does that was made immutable; the files in it go on.
 */
import { EdgeError } from '../../src/errors.ts'
import type { FileLock } from '../../src/file-lock.ts'
import type { DirectoryEntry, DiskSpace, FileSystem, LogFile } from '../../src/log/io/file-system.ts'
import type { SeededRandom } from './seeded-random.ts'

export const SECTOR = 512
export const PAGE = 4096

interface Dirty {
  readonly sector: number
  readonly bytes: Uint8Array
  readonly version: number
}

/** Bytes that grow in place. */
class Content {
  #bytes = new Uint8Array(0)
  length = 0

  get view(): Uint8Array {
    return this.#bytes.subarray(0, this.length)
  }

  set(bytes: Uint8Array, position: number): void {
    if (position + bytes.length > this.length) this.resize(position + bytes.length)
    this.#bytes.set(bytes, position)
  }

  /** What comes in is zeros. */
  resize(length: number): void {
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length))
      larger.set(this.view)
      this.#bytes = larger
    }
    if (length < this.length) this.#bytes.fill(0, length, this.length)
    this.length = length
  }

  become(other: Content): void {
    this.resize(other.length)
    this.#bytes.set(other.view)
  }
}

class SimInode {
  readonly cache = new Content()
  readonly durable = new Content()
  dirty: Dirty[] = []
  /** Truncated since the last sync: what grew again behind it holds zeros, and nothing of what was there. */
  cut: { readonly size: number; readonly version: number } | undefined

  get isDirty(): boolean {
    return this.dirty.length > 0 || this.durable.length > this.cache.length
  }
}

interface NameChange {
  readonly folders: readonly string[]
  readonly apply: (names: Map<string, SimInode | 'folder'>) => void
}

/** Runs what a disk or a timer would do later. Dropped as a whole when the process dies. */
export interface EventSink {
  later(kind: 'sync' | 'read', task: () => void): void
}

export class SimDisk {
  readonly random: SeededRandom
  capacity: number
  syncFailureRate = 0
  shortWriteRate = 0
  /** Folders in which no name is given or taken. */
  readonly refusing = new Set<string>()
  /** Nor is anything written there. */
  areFilesRefusing = false
  /** Nothing is given that is asked for. */
  isRefusingReads = false
  /** Writes and syncs that failed so far. */
  failureCount = 0
  #names = new Map<string, SimInode | 'folder'>()
  #durableNames = new Map<string, SimInode | 'folder'>()
  #changes: NameChange[] = []
  #version = 0
  #isLocked = false

  constructor(random: SeededRandom, capacity: number) {
    this.random = random
    this.capacity = capacity
  }

  get usedBytes(): number {
    let sum = 0
    for (const inode of this.#names.values()) if (inode !== 'folder') sum += inode.cache.length
    return sum
  }

  /** A process's view of the disk; `kill` ends it. */
  mount(events: EventSink): { fileSystem: FileSystem; kill: () => void } {
    const life = { isOver: false }
    const alive = (): void => {
      if (life.isOver) throw new Error('a dead process touched the disk')
    }
    const fileSystem: FileSystem = {
      list: (path) => this.#list(path),
      open: (path, mode) => {
        alive()
        return new SimHandle(this, this.#open(path, mode), events, life)
      },
      makeDirectory: (path) => {
        alive()
        this.#makeDirectory(path)
      },
      rename: (from, to) => {
        alive()
        this.#rename(from, to)
      },
      unlink: (path) => {
        alive()
        this.#unlink(path)
      },
      removeDirectory: (path) => {
        alive()
        this.#unlink(path)
      },
      syncDirectory: (path) =>
        new Promise((resolve, reject) => {
          alive()
          events.later('sync', () => {
            if (this.#syncFolder(path)) resolve()
            else reject(new EdgeError('EDGE_IO', `EIO on the sync of ${path}`, { details: { code: 'EIO' } }))
          })
        }),
      space: (): DiskSpace => ({ freeBytes: this.capacity - this.usedBytes, totalBytes: this.capacity }),
      sizeOf: (path) => {
        const inode = this.#names.get(path)
        return inode === undefined || inode === 'folder' ? 0 : inode.cache.length
      },
      identity: (path) => (this.#names.has(path) ? path : undefined),
      lock: (): FileLock => {
        if (this.#isLocked) throw new EdgeError('EDGE_STORE_IN_USE', 'locked')
        this.#isLocked = true
        return { isHeld: () => true, release: () => this.#release(), remove: () => this.#release() }
      },
    }
    return {
      fileSystem,
      kill: () => {
        life.isOver = true
        this.#release()
      },
    }
  }

  /** A folder that somebody else made, durable with its name. */
  makeDurable(path: string): void {
    this.#makeDirectory(path)
    for (let folder = path; folder !== ''; folder = folderOf(folder)) this.#keepNamesOf(folderOf(folder))
  }

  /** The machine loses power: the cache is gone, what was not synced survives by chance. */
  powerCut(): void {
    const mode = this.random.below(4)
    const share = mode === 0 ? 0 : mode === 1 ? 1 : 0.5
    this.#keepSomeNames(mode)
    for (const inode of new Set(this.#names.values())) if (inode !== 'folder') this.#cutFile(inode, share, mode === 3)
  }

  /** Bit rot: one byte of a file reads differently from now on. */
  rot(path: string, position: number): void {
    const inode = this.#file(path)
    const bit = 1 << this.random.below(8)
    for (const { view } of [inode.cache, inode.durable]) {
      const byte = view[position]
      if (byte !== undefined) view[position] = byte ^ bit
    }
  }

  /** The same of a whole page: it reads as garbage from now on. */
  garblePage(path: string, page: number): void {
    const inode = this.#file(path)
    const garbage = Uint8Array.from({ length: PAGE }, () => this.random.below(256))
    for (const { view } of [inode.cache, inode.durable]) {
      view.set(garbage.subarray(0, Math.max(0, Math.min(PAGE, view.length - page * PAGE))), page * PAGE)
    }
  }

  isFileDirty(path: string): boolean {
    return this.#file(path).isDirty
  }

  // ---- files, for SimHandle -------------------------------------------------------------------------------------------

  write(inode: SimInode, bytesView: Uint8Array, position: number): void {
    this.#version++
    const isShort = this.random.chance(this.shortWriteRate)
    const wanted = isShort ? this.random.below(bytesView.length) : bytesView.length
    const growth = Math.max(0, position + wanted - inode.cache.length)
    const room = Math.max(0, this.capacity - this.usedBytes)
    const taken = growth > room ? Math.max(0, wanted - (growth - room)) : wanted
    if (taken > 0) this.#put(inode, bytesView.subarray(0, taken), position)
    if (taken === bytesView.length) return
    this.failureCount++
    const isFull = taken < wanted
    throw new EdgeError(isFull ? 'EDGE_DISK_FULL' : 'EDGE_IO', isFull ? 'ENOSPC' : 'EIO: short write')
  }

  truncate(inode: SimInode, size: number): void {
    inode.cache.resize(size)
    inode.dirty = inode.dirty.filter(({ sector }) => sector * SECTOR < size)
    inode.cut = { size: Math.min(size, inode.cut?.size ?? size), version: this.#version }
  }

  startSync(): number {
    return this.#version
  }

  /** @returns whether the sync that began at `version` succeeded. */
  endSync(inode: SimInode, version: number): boolean {
    const isFailed = inode.isDirty && this.random.chance(this.syncFailureRate)
    const lost: Dirty[] = []
    const { cut } = inode
    if (cut !== undefined && cut.version <= version) {
      if (!isFailed && cut.size < inode.durable.length) inode.durable.resize(cut.size)
      inode.cut = undefined
    }
    for (const write of inode.dirty) {
      if (write.version > version) continue
      if (!isFailed || this.random.chance(0.5)) persist(inode, write)
      else lost.push(write)
    }
    inode.dirty = inode.dirty.filter((write) => write.version > version)
    if (isFailed) {
      this.failureCount++
      if (this.random.chance(0.5)) for (const { sector } of lost) revert(inode, sector)
      return false
    }
    if (inode.durable.length > inode.cache.length) inode.durable.resize(inode.cache.length)
    return true
  }

  #put(inode: SimInode, bytes: Uint8Array, position: number): void {
    const first = Math.floor(position / SECTOR)
    const end = Math.ceil((position + bytes.length) / SECTOR)
    inode.cache.set(bytes, position)
    const copy = inode.cache.view.slice(first * SECTOR, end * SECTOR)
    for (let sector = first; sector < end; sector++) {
      const from = (sector - first) * SECTOR
      inode.dirty.push({ sector, bytes: copy.subarray(from, from + SECTOR), version: this.#version })
    }
  }

  #cutFile(inode: SimInode, share: number, hasGarbage: boolean): void {
    const pages = new Set(inode.dirty.map(({ sector }) => Math.floor((sector * SECTOR) / PAGE)))
    for (const write of inode.dirty) if (this.random.chance(share)) persist(inode, write)
    if (inode.durable.length > inode.cache.length && this.random.chance(0.5)) {
      inode.durable.resize(inode.cache.length)
    }
    for (const page of hasGarbage ? pages : []) {
      if (!this.random.chance(0.3)) continue
      const end = Math.min((page + 1) * PAGE, inode.durable.length)
      for (let at = page * PAGE; at < end; at++) inode.durable.view[at] = this.random.below(256)
    }
    inode.dirty = []
    inode.cut = undefined
    inode.cache.become(inode.durable)
  }

  // ---- names ----------------------------------------------------------------------------------------------------------

  #list(path: string): DirectoryEntry[] {
    const prefix = path === '' ? '' : `${path}/`
    const entries: DirectoryEntry[] = []
    for (const [name, inode] of this.#names) {
      const rest = name.startsWith(prefix) ? name.slice(prefix.length) : ''
      if (rest !== '' && !rest.includes('/')) entries.push({ name: rest, isDirectory: inode === 'folder' })
    }
    return entries
  }

  #file(path: string): SimInode {
    const inode = this.#names.get(path)
    if (inode === undefined || inode === 'folder') {
      throw new EdgeError('EDGE_IO', `ENOENT on ${path}`, { details: { code: 'ENOENT' } })
    }
    return inode
  }

  #open(path: string, mode: Parameters<FileSystem['open']>[1]): SimInode {
    if (mode === 'existing' && this.areFilesRefusing) this.#refuse(path)
    if (mode !== 'create') return this.#file(path)
    if (this.#names.has(path)) throw new EdgeError('EDGE_IO', `EEXIST on ${path}`, { details: { code: 'EEXIST' } })
    if (folderOf(path) !== '' && this.#names.get(folderOf(path)) !== 'folder') {
      throw new EdgeError('EDGE_IO', `ENOENT on ${path}`, { details: { code: 'ENOENT' } })
    }
    this.#refuse(path)
    const inode = new SimInode()
    this.#change([folderOf(path)], (names) => names.set(path, inode))
    return inode
  }

  #makeDirectory(path: string): void {
    const parts = path.split('/')
    for (let depth = 1; depth <= parts.length; depth++) {
      const folder = parts.slice(0, depth).join('/')
      if (this.#names.has(folder)) continue
      this.#refuse(folder)
      this.#change([folderOf(folder)], (names) => names.set(folder, 'folder'))
    }
  }

  #rename(from: string, to: string): void {
    const inode = this.#names.get(from)
    if (inode === undefined) throw new EdgeError('EDGE_IO', `ENOENT on ${from}`, { details: { code: 'ENOENT' } })
    this.#refuse(from)
    this.#refuse(to)
    this.#change([folderOf(from), folderOf(to)], (names) => {
      for (const [path, each] of [...names]) {
        if (path !== from && !path.startsWith(`${from}/`)) continue
        names.delete(path)
        names.set(to + path.slice(from.length), each)
      }
    })
  }

  #unlink(path: string): void {
    if (this.#names.has(path)) this.#refuse(path)
    this.#change([folderOf(path)], (names) => names.delete(path))
  }

  #refuse(path: string): void {
    if (!this.refusing.has(folderOf(path))) return
    throw new EdgeError('EDGE_IO', `EPERM on ${path}`, { details: { code: 'EPERM', path } })
  }

  #change(folders: readonly string[], apply: NameChange['apply']): void {
    apply(this.#names)
    this.#changes.push({ folders, apply })
  }

  /** @returns whether it succeeded. */
  #syncFolder(folder: string): boolean {
    const hasChanged = this.#changes.some((change) => change.folders.includes(folder))
    if (hasChanged && this.random.chance(this.syncFailureRate)) {
      this.failureCount++
      return false
    }
    this.#keepNamesOf(folder)
    return true
  }

  #keepNamesOf(folder: string): void {
    for (const change of this.#changes) if (change.folders.includes(folder)) change.apply(this.#durableNames)
    this.#changes = this.#changes.filter((change) => !change.folders.includes(folder))
  }

  /** Each folder keeps a prefix of its changes. */
  #keepSomeNames(mode: number): void {
    const left = new Map<string, number>()
    for (const change of this.#changes) {
      const folder = change.folders[0] ?? ''
      const count = this.#changes.filter((each) => each.folders[0] === folder).length
      if (!left.has(folder)) left.set(folder, mode === 0 ? 0 : mode === 1 ? count : this.random.below(count + 1))
      const kept = left.get(folder) ?? 0
      if (kept > 0) change.apply(this.#durableNames)
      left.set(folder, kept - 1)
    }
    this.#changes = []
    for (const path of [...this.#durableNames.keys()]) if (!this.#isReached(path)) this.#durableNames.delete(path)
    this.#names = new Map(this.#durableNames)
  }

  #isReached(path: string): boolean {
    const folder = folderOf(path)
    return folder === '' || (this.#durableNames.get(folder) === 'folder' && this.#isReached(folder))
  }

  #release(): void {
    this.#isLocked = false
  }
}

class SimHandle implements LogFile {
  readonly #disk: SimDisk
  readonly #inode: SimInode
  readonly #events: EventSink
  readonly #life: { readonly isOver: boolean }

  constructor(disk: SimDisk, inode: SimInode, events: EventSink, life: { readonly isOver: boolean }) {
    this.#disk = disk
    this.#inode = inode
    this.#events = events
    this.#life = life
  }

  size(): number {
    return this.#inode.cache.length
  }

  read(targetView: Uint8Array, position: number): number {
    if (this.#disk.isRefusingReads) throw new EdgeError('EDGE_IO', 'EIO on a read', { details: { code: 'EIO' } })
    const found = this.#inode.cache.view.subarray(position, position + targetView.length)
    targetView.set(found)
    return found.length
  }

  /** Whatever the page cache has put out meanwhile is not. */
  readAtHand(targetView: Uint8Array, position: number): boolean {
    if (this.#disk.isRefusingReads) return false
    return this.#disk.random.chance(0.5) && this.read(targetView, position) === targetView.length
  }

  readLater(target: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#events.later('read', () => {
        try {
          resolve(this.read(target, position))
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  write(bytesView: Uint8Array, position: number): void {
    if (this.#life.isOver) throw new Error('a dead process wrote')
    this.#disk.write(this.#inode, bytesView, position)
  }

  datasync(done: (error: Error | null) => void): void {
    const version = this.#disk.startSync()
    this.#events.later('sync', () => {
      const isDone = this.#disk.endSync(this.#inode, version)
      done(isDone ? null : new EdgeError('EDGE_IO', 'EIO on sync', { details: { code: 'EIO' } }))
    })
  }

  truncate(size: number): void {
    if (this.#life.isOver) throw new Error('a dead process truncated')
    this.#disk.truncate(this.#inode, size)
  }

  close(): void {}
}

const folderOf = (path: string): string => (path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '')

function persist(inode: SimInode, { sector, bytes }: Dirty): void {
  inode.durable.set(bytes, sector * SECTOR)
}

function revert(inode: SimInode, sector: number): void {
  const start = sector * SECTOR
  const end = Math.min(start + SECTOR, inode.cache.length)
  inode.cache.view.fill(0, start, end)
  inode.cache.set(inode.durable.view.subarray(start, Math.min(end, inode.durable.length)), start)
}
