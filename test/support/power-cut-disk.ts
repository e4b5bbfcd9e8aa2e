/**
 * A disk in memory that forgets like a real one: `powerCut` takes back what was not synced.
 *
 * Names: each making, renaming and removing is atomic and durable once a folder it touches was synced; every other one
 * survives a cut or not, by chance, each for itself. Bytes: what was written after the last `datasync` of a file is there,
 * missing, zeros or garbage, by chance.
 */
import { EdgeError } from '../../src/errors.ts'
import type { FileSystem, LogFile } from '../../src/log/io/file-system.ts'

export class PowerLost extends Error {
  override readonly name = 'PowerLost'
}

class MemoryFile {
  bytes = new Uint8Array(0)
  syncedBytes = new Uint8Array(0)
}

type Tree = Map<string, MemoryFile | 'folder'>

interface NameChange {
  readonly folders: readonly string[]
  readonly apply: (tree: Tree) => void
}

export class PowerCutDisk implements FileSystem {
  /** Changing calls until the power goes; then every call throws `PowerLost` until `powerCut`. */
  callsLeft = Number.POSITIVE_INFINITY
  readonly #random: () => number
  #tree: Tree = new Map()
  #durable: Tree = new Map()
  #pending: NameChange[] = []

  /** @param random 0 up to 1, seeded. */
  constructor(random: () => number) {
    this.#random = random
  }

  powerCut(): void {
    this.callsLeft = Number.POSITIVE_INFINITY
    for (const change of this.#pending) {
      if (this.#random() < 0.5) change.apply(this.#durable)
    }
    this.#pending = []
    this.#tree = new Map(this.#durable)
    for (const file of this.#tree.values()) {
      if (file === 'folder') continue
      if (file.bytes !== file.syncedBytes) file.bytes = this.#survivingBytes(file)
      file.syncedBytes = file.bytes
    }
  }

  list(path: string) {
    const prefix = path === '' ? '' : `${path}/`
    return [...this.#tree]
      .filter(([name]) => name.startsWith(prefix) && !name.slice(prefix.length).includes('/'))
      .map(([name, node]) => ({ name: name.slice(prefix.length), isDirectory: node === 'folder' }))
  }

  open(path: string, mode: 'existing' | 'create'): LogFile {
    const found = this.#tree.get(path)
    if (mode === 'existing') {
      if (!(found instanceof MemoryFile)) throw failed('ENOENT', path)
      return this.#handle(found)
    }
    if (found !== undefined) throw failed('EEXIST', path)
    const file = new MemoryFile()
    this.#change([parentOf(path)], (tree) => {
      if (tree.get(parentOf(path)) === 'folder' || parentOf(path) === '') tree.set(path, file)
    })
    return this.#handle(file)
  }

  makeDirectory(path: string): void {
    const parts = path.split('/')
    for (let depth = 1; depth <= parts.length; depth++) {
      const folder = parts.slice(0, depth).join('/')
      if (this.#tree.get(folder) === 'folder') continue
      this.#change([parentOf(folder)], (tree) => {
        if (parentOf(folder) === '' || tree.get(parentOf(folder)) === 'folder') tree.set(folder, 'folder')
      })
    }
  }

  rename(from: string, to: string): void {
    if (!this.#tree.has(from)) throw failed('ENOENT', from)
    if (this.#tree.get(to) === 'folder' && this.list(to).length > 0) throw failed('ENOTEMPTY', to)
    this.#change([parentOf(from), parentOf(to)], (tree) => {
      const moved = [...tree].filter(([name]) => name === from || name.startsWith(`${from}/`))
      if (moved.length === 0 || (parentOf(to) !== '' && tree.get(parentOf(to)) !== 'folder')) return
      for (const [name] of moved) tree.delete(name)
      for (const [name, node] of moved) tree.set(to + name.slice(from.length), node)
    })
  }

  unlink(path: string): void {
    if (!this.#tree.has(path)) return
    this.#change([parentOf(path)], (tree) => tree.delete(path))
  }

  removeDirectory(path: string): void {
    if (this.list(path).length > 0) throw failed('ENOTEMPTY', path)
    this.#change([parentOf(path)], (tree) => {
      for (const name of [...tree.keys()]) if (name === path || name.startsWith(`${path}/`)) tree.delete(name)
    })
  }

  async syncDirectory(path: string): Promise<void> {
    this.#step()
    // In order: a later change may build upon an earlier one of another folder, which the file system then keeps as well.
    const last = this.#pending.findLastIndex(({ folders }) => folders.includes(path))
    for (const change of this.#pending.splice(0, last + 1)) change.apply(this.#durable)
  }

  space() {
    return { freeBytes: 1e9, totalBytes: 1e9 }
  }

  sizeOf(path: string): number {
    const found = this.#tree.get(path)
    return found instanceof MemoryFile ? found.bytes.length : 0
  }

  identity(path: string): string | undefined {
    return this.#tree.has(path) ? path : undefined
  }

  lock() {
    return { isHeld: () => true, release() {}, remove() {} }
  }

  #handle(file: MemoryFile): LogFile {
    const disk = this
    return {
      size: () => file.bytes.length,
      read(target, position) {
        const part = file.bytes.subarray(position, position + target.length)
        target.set(part)
        return part.length
      },
      readAtHand: () => false,
      async readLater(target, position) {
        return this.read(target, position)
      },
      write(bytes, position) {
        disk.#step()
        const next = new Uint8Array(Math.max(file.bytes.length, position + bytes.length))
        next.set(file.bytes)
        next.set(bytes, position)
        file.bytes = next
      },
      datasync(done) {
        disk.#step()
        file.syncedBytes = file.bytes
        queueMicrotask(() => done(null))
      },
      truncate(size) {
        disk.#step()
        file.bytes = file.bytes.slice(0, size)
      },
      close() {},
    }
  }

  #survivingBytes(file: MemoryFile): Uint8Array<ArrayBuffer> {
    const chance = this.#random()
    if (chance < 0.3) return file.syncedBytes
    if (chance < 0.5) return file.bytes
    if (chance < 0.7) return file.bytes.slice(0, Math.floor(this.#random() * file.bytes.length))
    return chance < 0.85 ? new Uint8Array(file.bytes.length) : file.bytes.map(() => Math.floor(this.#random() * 256))
  }

  #change(folders: readonly string[], apply: (tree: Tree) => void): void {
    this.#step()
    apply(this.#tree)
    this.#pending.push({ folders, apply })
  }

  #step(): void {
    if (this.callsLeft-- <= 0) throw new PowerLost('the power is gone')
  }
}

function failed(code: string, path: string): EdgeError {
  return new EdgeError('EDGE_IO', `${code} on ${path}`, { details: { code, path } })
}

function parentOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : ''
}
