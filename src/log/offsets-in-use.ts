import type { MetadataStore } from './api.ts'

/** @returns the lowest offset that a consumer has stored or a sync route has confirmed in a partition; null without any. */
export function lowestOffsetInUse(
  metadata: Pick<MetadataStore, 'offsetsOf' | 'cursorsOf'>,
  partitionKey: number,
): bigint | null {
  let lowest: bigint | null = null
  const lower = (offset: bigint): void => {
    if (lowest === null || offset < lowest) lowest = offset
  }
  for (const { offset } of metadata.offsetsOf(partitionKey)) lower(offset)
  for (const { row } of metadata.cursorsOf(partitionKey)) lower(row.confirmedOffset)
  return lowest
}
