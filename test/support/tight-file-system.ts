/** A file system over another one that runs out of room, or turns read-only, when a test says so. */
import { EdgeError } from '../../src/errors.ts'
import type { FileSystem, LogFile } from '../../src/log/io/file-system.ts'

export class TightFileSystem implements FileSystem {
  /** Bytes left on the volume; others may take them at any time. */
  freeBytes: number
  /** As the kernel leaves a file system that it has found damaged: reads go on, everything else is refused. */
  isReadOnly = false
  readonly #inner: FileSystem
  readonly #totalBytes: number

  constructor(inner: FileSystem, freeBytes: number) {
    this.#inner = inner
    this.freeBytes = freeBytes
    this.#totalBytes = 4 * freeBytes
  }

  list(path: string): ReturnType<FileSystem['list']> {
    return this.#inner.list(path)
  }

  open(path: string, mode: Parameters<FileSystem['open']>[1]): LogFile {
    if (mode === 'create') this.#refuseReadOnly(path)
    return this.#wrapped(path, this.#inner.open(path, mode))
  }

  makeDirectory(path: string): void {
    this.#refuseReadOnly(path)
    this.#inner.makeDirectory(path)
  }

  rename(from: string, to: string): void {
    this.#refuseReadOnly(from)
    const replacedBytes = this.#inner.sizeOf(to)
    this.#inner.rename(from, to)
    this.freeBytes += replacedBytes
  }

  unlink(path: string): void {
    this.#refuseReadOnly(path)
    const sizeBytes = this.#inner.sizeOf(path)
    this.#inner.unlink(path)
    this.freeBytes += sizeBytes
  }

  removeDirectory(path: string): void {
    this.#refuseReadOnly(path)
    this.#inner.removeDirectory(path)
  }

  async syncDirectory(path: string): Promise<void> {
    this.#refuseReadOnly(path)
    await this.#inner.syncDirectory(path)
  }

  space(): ReturnType<FileSystem['space']> {
    return { freeBytes: this.freeBytes, totalBytes: this.#totalBytes }
  }

  sizeOf(path: string): number {
    return this.#inner.sizeOf(path)
  }

  identity(path: string): string | undefined {
    return this.#inner.identity(path)
  }

  lock(path: string): ReturnType<FileSystem['lock']> {
    if (this.freeBytes === 0 && this.#inner.sizeOf(path) === 0)
      throw new EdgeError('EDGE_DISK_FULL', `ENOSPC on ${path}`)
    return this.#inner.lock(path)
  }

  #wrapped(path: string, file: LogFile): LogFile {
    return {
      size: () => file.size(),
      read: (target, position) => file.read(target, position),
      readAtHand: () => false,
      readLater: (target, position) => file.readLater(target, position),
      write: (bytesView, position) => {
        this.#refuseReadOnly(path)
        const growth = Math.max(0, position + bytesView.length - file.size())
        if (growth > this.freeBytes) throw new EdgeError('EDGE_DISK_FULL', `ENOSPC on ${path}`)
        this.freeBytes -= growth
        file.write(bytesView, position)
      },
      datasync: (done) => {
        if (!this.isReadOnly) file.datasync(done)
        else setImmediate(() => done(readOnly(path)))
      },
      truncate: (size) => {
        this.#refuseReadOnly(path)
        this.freeBytes += Math.max(0, file.size() - size)
        file.truncate(size)
      },
      close: () => file.close(),
    }
  }

  #refuseReadOnly(path: string): void {
    if (this.isReadOnly) throw readOnly(path)
  }
}

function readOnly(path: string): EdgeError {
  return new EdgeError('EDGE_IO', `EROFS on ${path}`, { details: { code: 'EROFS', path } })
}
