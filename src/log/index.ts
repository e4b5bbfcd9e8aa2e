/** The log: batches in order on disk, given back; the names they live under; everything durable around them. */
import type { Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import type { Log } from './api.ts'
import type { FileSystem } from './io/file-system.ts'
import { openLogStore } from './log.ts'
import type { Scheduler } from './scheduler.ts'
import type { LogSettings } from './settings.ts'

export type * from './api.ts'
export { LOG_SETTINGS, type LogSettings } from './settings.ts'

export interface OpenLogOptions {
  /** The data folder. Made when its parent exists; an empty mount point is refused by `EDGE_STORE_MISSING`. */
  readonly path: string
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: LogSettings
  /** Tells one machine start from another; the kernel's boot id when left out. */
  readonly bootId?: string
  /** Simulated in tests; the machine's when left out. */
  readonly fileSystem?: FileSystem
  readonly scheduler?: Scheduler
}

/**
 * Opens the data folder, recovers what a crash left and resolves when appends and reads are possible.
 *
 * @throws {EdgeError} EDGE_STORE_NEWER (nothing was touched), EDGE_STORE_IN_USE, EDGE_STORE_MISSING, EDGE_IO.
 */
export const openLog = (options: OpenLogOptions): Promise<Log> => openLogStore(options)
