/**
 * Consumer offsets of a closed store: the database's, and newer ones of the trail. The next start takes the same, and
 * forgets those of groups and devices that a lost database no longer names.
 */
import type { ConsumerKind } from '../api.ts'
import { consumerOf } from '../metadata/consumer-column.ts'
import type { DatabaseReport } from '../metadata/integrity.ts'
import { type FoundTrail, takeTrail } from '../metadata/trail-rows.ts'

export interface InspectedOffset {
  readonly kind: ConsumerKind
  readonly consumerId: number
  readonly offset: bigint
}

/** @returns by partition key; each partition's in the order of kind and id. */
export function mergeOffsets(
  { consumerOffsets, offsetGeneration }: DatabaseReport,
  trail: FoundTrail,
): ReadonlyMap<number, readonly InspectedOffset[]> {
  const columnsOf = new Map<number, Map<number, bigint>>()
  const columns = (partitionKey: number): Map<number, bigint> => {
    const known = columnsOf.get(partitionKey) ?? new Map<number, bigint>()
    columnsOf.set(partitionKey, known)
    return known
  }
  for (const { partitionKey, column, offset } of consumerOffsets) columns(partitionKey).set(column, offset)
  const taken = takeTrail(trail, offsetGeneration, (partitionKey, column) => columnsOf.get(partitionKey)?.get(column))
  for (const { partitionKey, column, offset } of taken.changes) {
    if (offset === undefined) columns(partitionKey).delete(column)
    else columns(partitionKey).set(column, offset)
  }
  return new Map([...columnsOf].map(([partitionKey, known]) => [partitionKey, inOrder(known)]))
}

function inOrder(columns: ReadonlyMap<number, bigint>): InspectedOffset[] {
  return [...columns].sort(([a], [b]) => a - b).map(([column, offset]) => ({ ...consumerOf(column), offset }))
}
