/** The log's file system for looking only: nothing can be changed through it, and a disk mounted read-only will do. */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { EdgeError, systemCodeOf } from '../../errors.ts'
import { refuseOtherThanFile } from '../../file-kind.ts'
import type { FileSystem, LogFile } from '../io/file-system.ts'
import { listFolder, sizeOfFile } from '../io/node-file-system.ts'

export function createReadOnlyFileSystem(root: string): FileSystem {
  const at = (path: string): string => join(root, path)
  const refused = (path: string): never => {
    throw new EdgeError('EDGE_IO', `EROFS on ${at(path)}: opened for looking only`, { details: { code: 'EROFS' } })
  }
  return {
    list: (path) => listFolder(at(path)),
    open: (path, mode) => (mode === 'create' ? refused(path) : new ReadOnlyFile(at(path))),
    makeDirectory: refused,
    rename: refused,
    unlink: refused,
    removeDirectory: refused,
    syncDirectory: async (path) => refused(path),
    space: () => ({ freeBytes: 0, totalBytes: 0 }),
    sizeOf: (path) => sizeOfFile(at(path)),
    identity: (path) => (fs.existsSync(at(path)) ? path : undefined),
    lock: refused,
  }
}

class ReadOnlyFile implements LogFile {
  readonly #path: string
  readonly #descriptor: number
  #isClosed = false

  constructor(path: string) {
    this.#path = path
    this.#descriptor = this.#checked(() => {
      refuseOtherThanFile(path)
      return fs.openSync(path, 'r')
    })
  }

  size(): number {
    return this.#checked(() => fs.fstatSync(this.#descriptor).size)
  }

  read(targetView: Uint8Array, position: number): number {
    let done = 0
    while (done < targetView.length) {
      const left = targetView.length - done
      const count = this.#checked(() => fs.readSync(this.#descriptor, targetView, done, left, position + done))
      if (count === 0) break
      done += count
    }
    return done
  }

  readAtHand(): boolean {
    return false
  }

  async readLater(target: Uint8Array, position: number): Promise<number> {
    return this.read(target, position)
  }

  write(): void {
    this.#refuse()
  }

  datasync(done: (error: Error | null) => void): void {
    done(null)
  }

  truncate(): void {
    this.#refuse()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    fs.closeSync(this.#descriptor)
  }

  #refuse(): never {
    throw new EdgeError('EDGE_IO', `EROFS on ${this.#path}: opened for looking only`, { details: { code: 'EROFS' } })
  }

  #checked<T>(call: () => T): T {
    try {
      return call()
    } catch (error) {
      throw translated(this.#path, error)
    }
  }
}

function translated(path: string, error: unknown): EdgeError {
  if (error instanceof EdgeError) return error
  const code = systemCodeOf(error)
  return new EdgeError('EDGE_IO', `${code || 'I/O error'} on ${path}`, { details: { code, path }, cause: error })
}
