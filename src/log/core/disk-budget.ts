/** How much of the volume the log may take. Pure. */

/** Of the volume, when the budget is `auto`: a gateway's disk is ours but for system, updates and other services. */
const AUTO_SHARE_PERCENT = 80
/** Kept free, when the floor is `auto`, between the two bounds below. */
const AUTO_FLOOR_PERCENT = 5
const AUTO_FLOOR_MIN_BYTES = 16 * 1024 * 1024
const AUTO_FLOOR_MAX_BYTES = 1024 * 1024 * 1024
/** Below it not even journal, reserve and one segment fit. */
export const DISK_BUDGET_MIN_BYTES = 32 * 1024 * 1024

export interface DiskBudget {
  /** All files of the log together stay below it, but for one segment. */
  readonly budgetBytes: number
  /** The log gives up readings rather than leave less than this free on the volume. */
  readonly freeFloorBytes: number
}

export interface DiskBudgetSettings {
  readonly budget: number | 'auto'
  readonly freeFloor: number | 'auto'
}

/** @param totalBytes size of the volume. */
export function planDiskBudget(settings: DiskBudgetSettings, totalBytes: number): DiskBudget {
  const freeFloorBytes = settings.freeFloor === 'auto' ? autoFloor(totalBytes) : settings.freeFloor
  if (settings.budget !== 'auto') return { budgetBytes: settings.budget, freeFloorBytes }
  const shareBytes = Math.floor((totalBytes * AUTO_SHARE_PERCENT) / 100) - freeFloorBytes
  return { budgetBytes: Math.max(DISK_BUDGET_MIN_BYTES, shareBytes), freeFloorBytes }
}

function autoFloor(totalBytes: number): number {
  const shareBytes = Math.floor((totalBytes * AUTO_FLOOR_PERCENT) / 100)
  return Math.min(AUTO_FLOOR_MAX_BYTES, Math.max(AUTO_FLOOR_MIN_BYTES, shareBytes))
}
