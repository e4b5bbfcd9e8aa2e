/** What is looked at of two records that carry one id. Pure. */

export interface RecordContent {
  readonly payloadBytes: number
  /** CRC-32 of the payload. */
  readonly payloadSum: number
  /** µs since the Unix epoch; null where the upstream does not tell. */
  readonly originUs: bigint | null
}

export function isSameRecord(there: RecordContent, here: RecordContent): boolean {
  const isSameTime = there.originUs === null || here.originUs === null || there.originUs === here.originUs
  return isSameTime && there.payloadBytes === here.payloadBytes && there.payloadSum === here.payloadSum
}
