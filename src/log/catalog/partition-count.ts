import { EdgeError } from '../../errors.ts'

/** As in Iggy. */
const MAX_PARTITIONS_PER_REQUEST = 1000

/** @throws {EdgeError} EDGE_TOO_MANY_PARTITIONS for what no request may make or remove at once. */
export function checkPartitionCount(count: number, min: 0 | 1): void {
  if (Number.isInteger(count) && count >= min && count <= MAX_PARTITIONS_PER_REQUEST) return
  const text = `a request is for ${min}..${MAX_PARTITIONS_PER_REQUEST} partitions, found ${count}`
  throw new EdgeError('EDGE_TOO_MANY_PARTITIONS', text, { details: { count } })
}
