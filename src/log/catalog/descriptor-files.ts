import { EdgeError, systemCodeOf } from '../../errors.ts'
import type { Written } from '../core/flash-budget.ts'
import type { FileSystem, LogFile } from '../io/file-system.ts'
import { DESCRIPTOR_MAX_BYTES, decodeDescriptor, encodeDescriptor } from './descriptor-codec.ts'

const TEMPORARY = '.tmp'
/** The file and its folder. */
const SYNCS_OF_WRITE = 2

/** A descriptor file as it was found. */
export type Found =
  | { readonly kind: 'sound'; readonly body: string }
  | { readonly kind: 'damaged' }
  | { readonly kind: 'missing' }

/**
 * Reads and replaces descriptor files. A replacement is the whole file or not there at all: written beside the old one,
 * synced, renamed over it, and the folder synced, so that a power cut at any point leaves the old or the new text.
 */
export class DescriptorFiles {
  readonly #fileSystem: FileSystem
  readonly #written: Written

  /** @param written nobody is told when left out: for who only reads. */
  constructor(fileSystem: FileSystem, written: Written = () => {}) {
    this.#fileSystem = fileSystem
    this.#written = written
  }

  read(path: string): Found {
    let file: LogFile
    try {
      file = this.#fileSystem.open(path, 'existing')
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return { kind: 'missing' }
      // A folder of that name, an I/O error: the copy in SQLite may stand in.
      if (error instanceof EdgeError && error.code === 'EDGE_IO') return { kind: 'damaged' }
      throw error
    }
    try {
      const size = file.size()
      if (size > DESCRIPTOR_MAX_BYTES) return { kind: 'damaged' }
      const bytes = new Uint8Array(size)
      const body = file.read(bytes, 0) === size ? decodeDescriptor(bytes) : null
      return body === null ? { kind: 'damaged' } : { kind: 'sound', body }
    } catch (error) {
      if (error instanceof EdgeError && error.code === 'EDGE_IO') return { kind: 'damaged' }
      throw error
    } finally {
      file.close()
    }
  }

  /** Durable when it resolves. @throws EDGE_DISK_FULL, EDGE_IO: the old text is still there, or the new one. */
  async write(path: string, body: string): Promise<void> {
    const temporary = path + TEMPORARY
    this.#fileSystem.unlink(temporary)
    const file = this.#fileSystem.open(temporary, 'create')
    try {
      const bytes = encodeDescriptor(body)
      file.write(bytes, 0)
      this.#written(bytes.length, SYNCS_OF_WRITE)
      await synced(file)
    } catch (error) {
      file.close()
      this.#unlinkQuietly(temporary)
      throw error
    }
    file.close()
    this.#fileSystem.rename(temporary, path)
    await this.#fileSystem.syncDirectory(folderOf(path))
  }

  /** After a failure the file is only in the way; the next write removes it first. */
  #unlinkQuietly(path: string): void {
    try {
      this.#fileSystem.unlink(path)
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
    }
  }
}

export function isTemporary(name: string): boolean {
  return name.endsWith(TEMPORARY)
}

function folderOf(path: string): string {
  const end = path.lastIndexOf('/')
  return end < 0 ? '' : path.slice(0, end)
}

function synced(file: LogFile): Promise<void> {
  return new Promise((resolve, reject) => {
    file.datasync((error) => (error === null ? resolve() : reject(toIoError(error))))
  })
}

function toIoError(error: Error): EdgeError {
  if (error instanceof EdgeError) return error
  return new EdgeError('EDGE_IO', `descriptor could not be synced: ${error.message}`, { cause: error })
}
