/** Bytes of what lies beside journal and segments: SQLite and what was set aside. */
import type { Clock } from '../clock.ts'
import { EdgeError } from '../errors.ts'
import { METADATA_FILES } from './catalog/layout.ts'
import type { FileSystem } from './io/file-system.ts'
import { QUARANTINE } from './quarantine.ts'

/** Not measured more often: it lists folders, and is asked for by every look at the statistics. */
const MEASURED_FOR_US = 1_000_000

export class SideFiles {
  readonly #fileSystem: Pick<FileSystem, 'list' | 'sizeOf'>
  readonly #clock: Clock
  #measuredAtUs: number | undefined
  #sizeBytes = 0

  constructor(fileSystem: Pick<FileSystem, 'list' | 'sizeOf'>, clock: Clock) {
    this.#fileSystem = fileSystem
    this.#clock = clock
  }

  get sizeBytes(): number {
    const nowUs = this.#clock.monotonicUs()
    if (this.#measuredAtUs === undefined || nowUs - this.#measuredAtUs >= MEASURED_FOR_US) {
      this.#measuredAtUs = nowUs
      this.#measure()
    }
    return this.#sizeBytes
  }

  #measure(): void {
    try {
      const metadata = METADATA_FILES.map((name) => this.#fileSystem.sizeOf(name))
      this.#sizeBytes = metadata.reduce((sum, size) => sum + size, this.#below(QUARANTINE))
    } catch (error) {
      // The last measure stands while the disk does not answer.
      if (!(error instanceof EdgeError)) throw error
    }
  }

  #below(folder: string): number {
    let sum = 0
    for (const { name, isDirectory } of this.#fileSystem.list(folder)) {
      const path = `${folder}/${name}`
      sum += isDirectory ? this.#below(path) : this.#fileSystem.sizeOf(path)
    }
    return sum
  }
}
