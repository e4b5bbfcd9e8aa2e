/** What is done and told after recovery: files that are of no use any more, batches that belong to nobody. */
import type { FileSystem } from './io/file-system.ts'
import type { DescriptorStore, ReportFinding } from './ports.ts'
import type { Recovered } from './recovery.ts'

/** Removes what the journal holds as well. @returns files that nothing can be made of, to be set aside. */
export function clearLeftovers(fileSystem: FileSystem, recovered: Recovered): readonly string[] {
  const { damage, orphanPaths, repeatedPaths, damagedPaths } = recovered
  for (const path of repeatedPaths) fileSystem.unlink(path)
  // Where nothing is damaged, a large batch without a reference was never acked.
  const isSound = damage.lostBytes === 0 && damage.damagedBatches === 0
  if (isSound) for (const path of orphanPaths) fileSystem.unlink(path)
  return isSound ? damagedPaths : [...orphanPaths, ...damagedPaths]
}

export function reportUnknownKeys(
  { unknownKeys }: Recovered,
  { nextKey }: Pick<DescriptorStore, 'nextKey'>,
  report: ReportFinding,
): void {
  for (const [key, count] of unknownKeys) {
    const isDeleted = key < nextKey
    report({
      event: isDeleted ? 'log.recovery.deleted_batches' : 'log.recovery.unknown_key',
      level: isDeleted ? 'warn' : 'error',
      text: isDeleted
        ? `${count} journal batches of deleted partition key ${key} were dropped`
        : `${count} journal batches of partition key ${key}, which no descriptor names, were left out`,
      fields: { partition_key: key, batch_count: count },
    })
  }
}
