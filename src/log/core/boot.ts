/**
 * Counts machine starts as the store sees them: whenever what was written but not synced may have gone. A new start of the
 * machine is one; so is a process that saw a sync fail, since the kernel may have dropped what it had written.
 *
 * There is no file that could be lost: groups and blocks name the start that wrote them, and groups a hash of the kernel's
 * boot id. A start that wrote nothing leaves nothing that could be missed.
 */
import { crc32 } from './checksum.ts'

export interface BootWitness {
  readonly boot: number
  readonly bootHash: number
}

/** 0 when the kernel has no boot id: every open then counts as a start of its own. */
export function hashBootId(bootIdBytes: Uint8Array): number {
  return bootIdBytes.length === 0 ? 0 : crc32(bootIdBytes, 0, bootIdBytes.length, 0)
}

/** Whether this start wrote one of the groups: what is read then may lie in the cache alone. */
export function isSameBoot(groups: readonly BootWitness[], bootHash: number): boolean {
  return bootHash === 0 ? groups.length > 0 : groups.some((group) => group.bootHash === bootHash)
}

/**
 * @param hadFailure an earlier process left word of a failed sync.
 * @param highestSegmentBoot of the last blocks of all partitions.
 */
export function bootNumber(
  groups: readonly BootWitness[],
  bootHash: number,
  { hadFailure, highestSegmentBoot }: { hadFailure: boolean; highestSegmentBoot: number },
): number {
  const highest = groups.reduce((most, group) => Math.max(most, group.boot), highestSegmentBoot)
  const ours = groups.filter((group) => group.bootHash === bootHash)
  if (bootHash === 0 || hadFailure || ours.length === 0) return highest + 1
  return ours.reduce((most, group) => Math.max(most, group.boot), 0)
}
