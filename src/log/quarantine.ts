import { EARLIEST_WALL_US } from '../clock.ts'
import type { FileSystem } from './io/file-system.ts'

export const QUARANTINE = 'quarantine'

/** Entries kept whatever their size: a store that is damaged again and again must not fill a folder. */
const MAX_ENTRIES = 256

/** `<time in µs, 16 digits>-<number>-<old path, / as ~>` */
const ENTRY_NAME = /^([0-9]{16})-([0-9]+)-(.+)$/

export interface QuarantineOptions {
  readonly fileSystem: FileSystem
  readonly maxBytes: number
  readonly maxAgeUs: bigint
}

export interface QuarantineEntry {
  /** In the quarantine folder. */
  readonly name: string
  /** Where it lay, as far as the name tells. */
  readonly origin: string
  readonly setAsideAtUs: bigint
  readonly sizeBytes: number
}

/**
 * Damaged and unknown files are moved here instead of being deleted, so that somebody may rescue what a program cannot.
 * The folder has a cap of its own and forgets the oldest first.
 */
export class Quarantine {
  readonly #options: QuarantineOptions
  #number = 0

  constructor(options: QuarantineOptions) {
    this.#options = options
  }

  /** Moves a file here. @returns its new path. @throws EDGE_IO. */
  take(path: string, nowUs: bigint): string {
    const { fileSystem } = this.#options
    fileSystem.makeDirectory(QUARANTINE)
    const target = `${QUARANTINE}/${this.#nameFor(path, nowUs)}`
    fileSystem.rename(path, target)
    return target
  }

  /** Keeps bytes that were cut off a file which itself goes on. */
  keep(origin: string, bytesView: Uint8Array, nowUs: bigint): string {
    const { fileSystem } = this.#options
    fileSystem.makeDirectory(QUARANTINE)
    const target = `${QUARANTINE}/${this.#nameFor(origin, nowUs)}`
    const file = fileSystem.open(target, 'create')
    try {
      file.write(bytesView, 0)
    } finally {
      file.close()
    }
    return target
  }

  /** Oldest first. Files that came here otherwise are listed with time 0. */
  list(): readonly QuarantineEntry[] {
    return this.#options.fileSystem
      .list(QUARANTINE)
      .filter((entry) => !entry.isDirectory)
      .map(({ name }) => this.#describe(name))
      .sort((a, b) =>
        a.setAsideAtUs < b.setAsideAtUs ? -1 : a.setAsideAtUs > b.setAsideAtUs ? 1 : a.name < b.name ? -1 : 1,
      )
  }

  /**
   * Drops what is too old, and the oldest while there is too much. The newest stays even when it is too much by itself: a
   * full segment is, and would be gone before anybody could look.
   *
   * @returns what was dropped.
   */
  sweep(nowUs: bigint): readonly QuarantineEntry[] {
    const { maxAgeUs, maxBytes } = this.#options
    const entries = this.list()
    const newest = maxBytes > 0 ? entries.at(-1) : undefined
    let sizeBytes = entries.reduce((sum, entry) => sum + entry.sizeBytes, 0)
    let count = entries.length
    const dropped = entries.filter((entry) => {
      // Of one that was set aside while the clock was not set nobody knows how old it is.
      const isOld = entry.setAsideAtUs >= EARLIEST_WALL_US && nowUs - entry.setAsideAtUs > maxAgeUs
      const isMuch = (sizeBytes > maxBytes && entry !== newest) || count > MAX_ENTRIES
      if (!isOld && !isMuch) return false
      sizeBytes -= entry.sizeBytes
      count--
      return true
    })
    for (const { name } of dropped) this.#options.fileSystem.unlink(`${QUARANTINE}/${name}`)
    return dropped
  }

  #nameFor(path: string, nowUs: bigint): string {
    const taken = new Set(this.#options.fileSystem.list(QUARANTINE).map(({ name }) => name))
    const time = String(nowUs < 0n ? 0n : nowUs).padStart(16, '0')
    for (;;) {
      const name = `${time}-${this.#number++}-${path.replaceAll('/', '~')}`
      if (!taken.has(name)) return name
    }
  }

  #describe(name: string): QuarantineEntry {
    // Not opened: what was set aside may be somebody else's, which the service may move but not read.
    const sizeBytes = this.#options.fileSystem.sizeOf(`${QUARANTINE}/${name}`)
    const [, time = '0', , origin = name] = ENTRY_NAME.exec(name) ?? []
    return { name, origin: origin.replaceAll('~', '/'), setAsideAtUs: BigInt(time), sizeBytes }
  }
}
