/**
 * A file of zeros that is given up on a full disk, so that what makes room can go on: moving messages into segments, or
 * putting on record which of them go. It is made anew when there is plenty of room again.
 */
import type { Written } from '../core/flash-budget.ts'
import type { FileSystem } from './file-system.ts'
import { createZeroed } from './journal-file.ts'

export interface BallastOptions {
  readonly fileSystem: FileSystem
  /** In the data folder. */
  readonly path: string
  readonly sizeBytes: number
  readonly written: Written
}

/** Given up on a full disk, so that repacking, and with it dropping, can go on. */
export const RESERVE = { path: 'reserve', minBytes: 2 * 1024 * 1024 }
/** The same for the record of what is dropped: repacking must not take the last bytes from it. */
export const DROP_RESERVE = { path: 'reserve-drops', sizeBytes: 256 * 1024 }

/** Made only with that many times its size free: it must not be what fills the disk. */
const ROOM_FACTOR = 4

export class Ballast {
  readonly #options: BallastOptions
  #heldBytes = 0

  constructor(options: BallastOptions) {
    this.#options = options
  }

  /** Bytes the file takes now. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Looks whether an earlier process has left it. */
  find(): void {
    try {
      const file = this.#options.fileSystem.open(this.#options.path, 'existing')
      this.#heldBytes = file.size()
      file.close()
    } catch {
      this.#heldBytes = 0
    }
  }

  /** @returns whether there is room now that was not there before. */
  giveUp(): boolean {
    if (this.#heldBytes === 0) return false
    try {
      this.#options.fileSystem.unlink(this.#options.path)
    } catch {
      return false
    }
    this.#heldBytes = 0
    return true
  }

  /** Makes it when it is missing and there is plenty of room. @throws EDGE_DISK_FULL, EDGE_IO. */
  async restore(): Promise<void> {
    const { fileSystem, path, sizeBytes, written } = this.#options
    if (this.#heldBytes > 0 || fileSystem.space().freeBytes < ROOM_FACTOR * sizeBytes) return
    // An empty one: made by a process that was stopped at once.
    fileSystem.unlink(path)
    const handle = await createZeroed(fileSystem, path, sizeBytes)
    written(sizeBytes, 1)
    handle.close()
    this.#heldBytes = sizeBytes
  }
}

/** Makes room at open, before the engine is there to look after it. @returns whether there is some now. */
export function giveUpOneOf(fileSystem: FileSystem): boolean {
  const ballasts = [RESERVE.path, DROP_RESERVE.path].map(
    (path) => new Ballast({ fileSystem, path, sizeBytes: 0, written() {} }),
  )
  return ballasts.some((ballast) => {
    ballast.find()
    return ballast.giveUp()
  })
}
