/** A file system over another one of which folders, files and pages are bad: for good, until a test says otherwise. */
import { EdgeError } from '../../src/errors.ts'
import type { FileSystem, LogFile } from '../../src/log/io/file-system.ts'

const PAGE = 4096

export class FaultyFileSystem implements FileSystem {
  /** Folders that cannot be listed. */
  readonly unlistable = new Set<string>()
  /** Files that can be read and nothing else, as with `chattr +i`. */
  readonly immutable = new Set<string>()
  /** Pages that the device does not give, by path: their numbers. */
  readonly unreadable = new Map<string, ReadonlySet<number>>()
  /** Files and folders whose inode is bad: they are listed where they lie, and they and all below them refuse everything. */
  readonly broken = new Set<string>()
  /** No journal file gets a header. */
  isRecyclingFailing = false
  readonly #inner: FileSystem

  constructor(inner: FileSystem) {
    this.#inner = inner
  }

  list(path: string): ReturnType<FileSystem['list']> {
    if (this.unlistable.has(path)) throw failure('EIO', path)
    this.#refuseBroken(path)
    return this.#inner.list(path)
  }

  open(path: string, mode: Parameters<FileSystem['open']>[1]): LogFile {
    this.#refuseBroken(path)
    if (mode === 'existing') this.#refuseImmutable(path)
    return this.#wrapped(path, this.#inner.open(path, mode))
  }

  makeDirectory(path: string): void {
    this.#refuseBroken(path)
    this.#inner.makeDirectory(path)
  }

  rename(from: string, to: string): void {
    this.#refuseBroken(from)
    this.#refuseBroken(to)
    this.#refuseImmutable(from)
    this.#inner.rename(from, to)
  }

  unlink(path: string): void {
    this.#refuseBroken(path)
    this.#refuseImmutable(path)
    this.#inner.unlink(path)
  }

  removeDirectory(path: string): void {
    this.#refuseBroken(path)
    this.#inner.removeDirectory(path)
  }

  async syncDirectory(path: string): Promise<void> {
    this.#refuseBroken(path)
    await this.#inner.syncDirectory(path)
  }

  space(): ReturnType<FileSystem['space']> {
    return this.#inner.space()
  }

  sizeOf(path: string): number {
    this.#refuseBroken(path)
    return this.#inner.sizeOf(path)
  }

  identity(path: string): string | undefined {
    return this.#inner.identity(path)
  }

  lock(path: string): ReturnType<FileSystem['lock']> {
    return this.#inner.lock(path)
  }

  #wrapped(path: string, file: LogFile): LogFile {
    const check = (position: number, size: number): void => {
      for (const page of this.unreadable.get(path) ?? [])
        if (position < (page + 1) * PAGE && page * PAGE < position + size) throw failure('EIO', path)
    }
    return {
      size: () => file.size(),
      read(target, position) {
        check(position, Math.min(target.length, file.size() - position))
        return file.read(target, position)
      },
      readAtHand: () => false,
      async readLater(target, position) {
        check(position, Math.min(target.length, file.size() - position))
        return file.readLater(target, position)
      },
      write: (bytesView, position) => {
        if (this.isRecyclingFailing && position === 0 && path.startsWith('journal/')) throw failure('EIO', path)
        file.write(bytesView, position)
      },
      datasync: (done) => file.datasync(done),
      truncate: (size) => file.truncate(size),
      close: () => file.close(),
    }
  }

  #refuseBroken(path: string): void {
    for (const each of this.broken) if (`${path}/`.startsWith(`${each}/`)) throw failure('EIO', path)
  }

  #refuseImmutable(path: string): void {
    if (this.immutable.has(path)) throw failure('EPERM', path)
  }
}

const failure = (code: string, path: string): EdgeError =>
  new EdgeError('EDGE_IO', `${code} on ${path}`, { details: { code, path } })
