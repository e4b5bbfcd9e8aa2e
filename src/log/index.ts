/** The log: batches in order on disk, given back; the names they live under; everything durable around them. */
import type { Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import type { Log } from './api.ts'
import type { Cron } from './cron.ts'
import type { EncryptionSettings } from './encryption-settings.ts'
import type { EngineRules } from './engine-options.ts'
import type { BlockCodec } from './io/block-codec.ts'
import type { FileSystem } from './io/file-system.ts'
import { openLogStore } from './log.ts'
import type { RetentionSettings } from './retention-settings.ts'
import type { Scheduler } from './scheduler.ts'
import type { LogSettings } from './settings.ts'

export type * from './api.ts'
export { planDiskBudget } from './core/disk-budget.ts'
export { ENCRYPTION_SETTINGS, type EncryptionSettings } from './encryption-settings.ts'
export type { InspectedOffset } from './inspect/consumer-offsets.ts'
export type { InspectedPartition, InspectedTopic } from './inspect/names.ts'
export type { WalkCounts } from './inspect/partition-walk.ts'
export {
  type InspectionFinding,
  isEmptyStore,
  openInspection,
  refuseHeld,
  type StoreInspection,
} from './inspect/store-inspection.ts'
export { MAX_USERS } from './metadata/accounts.ts'
export { RETENTION_SETTINGS, type RetentionSettings } from './retention-settings.ts'
export { findLogProblems } from './setting-problems.ts'
export { LOG_SETTINGS, type LogSettings } from './settings.ts'

export interface OpenLogOptions {
  /** The data folder; made when it is not there, unless `expectExisting`. */
  readonly path: string
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: LogSettings
  /** The defaults when left out. */
  readonly retention?: RetentionSettings
  /** Plain when left out. */
  readonly encryption?: EncryptionSettings
  /** The folder held a store before: an empty one is a disk that was not mounted. */
  readonly expectExisting?: boolean
  /** Whether wall time can be trusted now; true when left out. */
  readonly isClockTrusted?: () => boolean
  /** SQLite's native addon when it does not lie in `node_modules`. */
  readonly nativeBinding?: string

  // Simulated in tests; the machine's when left out.
  /** Tells one machine start from another. */
  readonly bootId?: string
  readonly fileSystem?: FileSystem
  readonly scheduler?: Scheduler
  readonly cron?: Cron
  readonly randomU64?: () => bigint
  /** `:memory:` for a log that lives on a simulated disk. */
  readonly metadataPath?: string
  readonly codec?: BlockCodec
  /** Rules to leave out, to see that a test notices. */
  readonly rules?: EngineRules
}

/**
 * Opens the data folder, recovers what a crash left and resolves when appends and reads are possible.
 *
 * @throws {EdgeError} EDGE_STORE_NEWER, EDGE_KEY_WRONG (nothing was touched), EDGE_STORE_IN_USE, EDGE_STORE_MISSING, EDGE_DISK_FULL, EDGE_IO.
 */
export const openLog = (options: OpenLogOptions): Promise<Log> => openLogStore(options)
