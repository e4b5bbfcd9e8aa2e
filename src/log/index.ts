/** The log: batches in order on disk, given back; the names they live under; everything durable around them. */
import type { Log } from './api.ts'
import { LOCK_FILE, lockStore, openLogStore } from './log.ts'
import type { OpenLogOptions } from './open-options.ts'

export type * from './api.ts'
export { checkPartitionCount } from './catalog/partition-count.ts'
export { planDiskBudget } from './core/disk-budget.ts'
export { ENCRYPTION_SETTINGS, type EncryptionSettings } from './encryption-settings.ts'
export type { InspectedOffset } from './inspect/consumer-offsets.ts'
export type { InspectedPartition, InspectedTopic } from './inspect/names.ts'
export type { WalkCounts } from './inspect/partition-walk.ts'
export {
  type InspectionFinding,
  isEmptyStore,
  openInspection,
  type StoreInspection,
} from './inspect/store-inspection.ts'
export { MAX_USERS } from './metadata/accounts.ts'
export { lowestOffsetInUse } from './offsets-in-use.ts'
export type { OpenLogOptions } from './open-options.ts'
export { RETENTION_SETTINGS, type RetentionSettings } from './retention-settings.ts'
export { findLogProblems } from './setting-problems.ts'
export { LOG_SETTINGS, type LogSettings } from './settings.ts'
export { LOCK_FILE, lockStore }

/**
 * Opens the data folder, recovers what a crash left and resolves when appends and reads are possible.
 *
 * @throws {EdgeError} EDGE_STORE_NEWER, EDGE_KEY_WRONG (nothing was touched), EDGE_STORE_IN_USE, EDGE_STORE_MISSING, EDGE_DISK_FULL, EDGE_IO.
 */
export const openLog = (options: OpenLogOptions): Promise<Log> => openLogStore(options)
