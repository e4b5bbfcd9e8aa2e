/** Ids of 128 bits that nobody else has: of messages and of clients. */

/** @returns never zero, which Iggy takes for no id. */
export function randomId(): bigint {
  const [low = 0n, high = 0n] = crypto.getRandomValues(new BigUint64Array(2))
  return (high << 64n) | low || 1n
}
