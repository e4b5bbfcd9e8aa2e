/**
 * Ids that our records carry upstream: they tell after any doubt what the upstream holds of ours.
 *
 *   upper 64 bits  FNV-1a of (store id, partition key, incarnation): one partition of one edge, until its data is lost
 *   lower 64 bits  offset in that partition
 *
 * Never zero, since Iggy replaces a zero id by a random one. Pure.
 */
const FNV_OFFSET = 0xcbf29ce484222325n
const FNV_PRIME = 0x100000001b3n
const MASK_64 = 0xffffffffffffffffn
const STORE_ID_BYTES = 16

/** Incarnations that a search of the tail recognises beside the current one. */
export const KNOWN_INCARNATIONS = 16

/**
 * @param storeId the 16 random bytes of the data folder.
 * @param partitionKey number of the partition incarnation, never given twice by one store.
 * @param incarnation raised when the upstream was found ahead of the local log.
 * @returns upper half of the ids, not zero.
 */
export function idPrefix(storeId: Uint8Array, partitionKey: number, incarnation: number): bigint {
  const bytes = new Uint8Array(STORE_ID_BYTES + 8)
  bytes.set(storeId.subarray(0, STORE_ID_BYTES))
  const view = new DataView(bytes.buffer)
  view.setUint32(STORE_ID_BYTES, partitionKey, true)
  view.setUint32(STORE_ID_BYTES + 4, incarnation, true)
  let hash = FNV_OFFSET
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * FNV_PRIME) & MASK_64
  return hash === 0n ? 1n : mix(hash)
}

export function messageId(prefix: bigint, offset: bigint): bigint {
  return (prefix << 64n) | (offset & MASK_64)
}

export function splitMessageId(id: bigint): { prefix: bigint; offset: bigint } {
  return { prefix: id >> 64n, offset: id & MASK_64 }
}

/** FNV alone leaves the last bytes in the low bits: this (the finaliser of SplitMix64) spreads them over all. */
function mix(hash: bigint): bigint {
  let value = hash
  value = ((value ^ (value >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK_64
  value = ((value ^ (value >> 27n)) * 0x94d049bb133111ebn) & MASK_64
  value ^= value >> 31n
  return value === 0n ? 1n : value
}
