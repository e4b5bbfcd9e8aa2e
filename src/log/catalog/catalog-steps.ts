/** The steps that changes of the catalog are made of: each leaves the data folder in a state that the next open takes. */
import { EdgeError, systemCodeOf } from '../../errors.ts'
import type { FileSystem } from '../io/file-system.ts'
import type { DescriptorPlace } from '../metadata/log-tables.ts'
import type { SqliteMetadata } from '../metadata/metadata-store.ts'
import type { ReportFinding } from '../ports.ts'
import type { DescriptorFiles } from './descriptor-files.ts'
import { STAGING } from './layout.ts'
import type { Trash } from './trash.ts'

export interface CatalogStepsParts {
  readonly fileSystem: FileSystem
  readonly files: DescriptorFiles
  readonly metadata: SqliteMetadata
  readonly trash: Trash
  readonly report: ReportFinding
}

export interface NewFolder {
  readonly target: string
  readonly parent: string
  /** A folder in it, or null. */
  readonly inner: string | null
  /** Its descriptor. */
  readonly file: string
  readonly body: string
}

export class CatalogSteps {
  readonly #parts: CatalogStepsParts
  #stagingNumber = 0

  constructor(parts: CatalogStepsParts) {
    this.#parts = parts
  }

  /**
   * Makes the folder of a stream or topic: complete in staging, then moved to its place, where it exists. Durable when it
   * resolves. @throws EDGE_DISK_FULL, EDGE_IO: nothing of it is left.
   */
  async make({ target, parent, inner, file, body }: NewFolder): Promise<void> {
    const { fileSystem, files, trash } = this.#parts
    const staged = `${STAGING}/${this.#stagingNumber++}`
    fileSystem.makeDirectory(inner === null ? staged : `${staged}/${inner}`)
    try {
      await files.write(`${staged}/${file}`, body)
      fileSystem.rename(staged, target)
    } catch (error) {
      // Whoever tries again and again would fill the folder until the next start.
      this.takeLater(staged)
      trash.startRemoval()
      throw error
    }
    try {
      await fileSystem.syncDirectory(parent)
    } catch (error) {
      // In place but perhaps not for good: nobody was told, so it is taken back.
      this.takeLater(target)
      throw error
    }
  }

  /** Replaces a descriptor, then its copy. */
  async rewrite(path: string, place: DescriptorPlace, body: string): Promise<void> {
    await this.#parts.files.write(path, body)
    this.copy(place, body)
  }

  /**
   * The same with less in it. The copy goes first, and durably: where it stands in for a file that was damaged, it must not
   * bring back what is gone.
   *
   * @throws EDGE_DISK_FULL, EDGE_IO: the file may stand as it was; `copy` what it holds.
   */
  async rewriteSmaller(path: string, place: DescriptorPlace, body: string): Promise<void> {
    this.#parts.metadata.copies.putDurably([{ ...place, body }])
    await this.#parts.files.write(path, body)
  }

  /** The file is the truth and durable already: a copy that cannot be written is made at the next open. */
  copy(place: DescriptorPlace, body: string): void {
    this.#orReport('log.metadata.copy_failed', 'a changed descriptor could not be copied to SQLite', () =>
      this.#parts.metadata.copies.put([{ ...place, body }]),
    )
  }

  /**
   * Moves a folder that no descriptor names to the trash; what cannot be moved now is moved at the next open. A partition
   * without segments may have none.
   */
  takeLater(folder: string): void {
    this.#orReport('log.trash.stuck', `${folder} could not be moved to the trash`, () => {
      try {
        this.#parts.trash.take(folder)
      } catch (error) {
        if (systemCodeOf(error) !== 'ENOENT') throw error
      }
    })
  }

  /** Makes a removal durable, then forgets its rows. @param place the descriptor that is gone, or null. */
  async settle(parent: string, place: DescriptorPlace | null, keys: readonly number[]): Promise<void> {
    try {
      await this.#parts.trash.settle([parent])
    } finally {
      // Also when the sync failed: memory has forgotten it already, and its id may be given again.
      this.#orReport('log.metadata.copy_failed', 'rows of what was deleted could not be removed from SQLite', () =>
        this.#parts.metadata.forget(place === null ? [] : [place], keys),
      )
    }
  }

  #orReport(event: string, what: string, work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
      const text = `${what}, the next start does it: ${error.message}`
      this.#parts.report({ event, level: 'warn', text, fields: { error_code: error.code } })
    }
  }
}
