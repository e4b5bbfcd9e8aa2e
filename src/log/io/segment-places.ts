/**
 * Where the files of one repack run lie: in the partition's folder, or in its refuge (`refuge.ts`) what that does not take.
 * Knows afterwards which folders must be synced, and what could not be removed again.
 */
import type { EdgeError } from '../../errors.ts'
import type { FileSystem } from './file-system.ts'
import { copyFile, createInFolder, isOfPlace } from './refuge.ts'
import type { Segment } from './segment.ts'
import type { SegmentFiles } from './segment-files.ts'

export interface SegmentPlacesOptions {
  readonly fileSystem: FileSystem
  readonly files: SegmentFiles
  readonly directory: string
  /** Where the files go that `directory` does not take. */
  readonly refuge: string
  /** Why the folder is not asked at all. */
  readonly folderRefusal?: EdgeError | undefined
  /** Files of this run and of earlier ones that should be gone and could not be removed. */
  readonly leftovers: Set<string>
}

export class SegmentPlaces {
  readonly #options: SegmentPlacesOptions
  /** Folders in which names were given or taken. */
  readonly #touched = new Set<string>()
  /** Why the partition's folder did not take a file of this run: it is not asked again. */
  refusal: EdgeError | undefined
  /** The folder was missing. */
  isFolderMade = false

  constructor(options: SegmentPlacesOptions) {
    this.#options = options
    this.refusal = options.folderRefusal
  }

  isHome({ directory }: Segment): boolean {
    return directory === this.#options.directory
  }

  touches(directory: string): boolean {
    return this.#touched.has(directory)
  }

  touch(directory: string): void {
    this.#touched.add(directory)
  }

  /** Whether another file may take what that one refused. */
  isOther(error: unknown): error is EdgeError {
    return isOfPlace(error, this.#options.fileSystem)
  }

  /** @returns undefined when the partition's folder takes no file in this run. @throws EDGE_DISK_FULL; EDGE_IO in a shortage. */
  begunAtHome<T>(begin: (directory: string) => T): T | undefined {
    if (this.refusal !== undefined) return undefined
    try {
      return begin(this.#options.directory)
    } catch (error) {
      if (!this.isOther(error)) throw error
      this.refusal = error
      return undefined
    }
  }

  create({ path, directory }: Segment): void {
    createInFolder(this.#options.fileSystem, path, () => {
      this.isFolderMade = true
    }).close()
    this.touch(directory)
  }

  /** Its file is to be gone. */
  discard({ path }: Segment): void {
    const { files, fileSystem, leftovers } = this.#options
    files.forget(path)
    try {
      fileSystem.unlink(path)
    } catch {
      leftovers.add(path)
    }
  }

  /** A large batch's file whose folder does not let it be renamed. @returns its copy, durable but for its name. */
  async copied(segment: Segment, refusal: EdgeError): Promise<Segment> {
    const { fileSystem, refuge, leftovers } = this.#options
    const copy = segment.movedTo(refuge)
    this.refusal ??= refusal
    this.touch(refuge)
    leftovers.add(copy.path)
    await copyFile(fileSystem, segment.path, copy.path)
    leftovers.delete(copy.path)
    return copy
  }
}
