/** Offsets and times are `bigint`, which `Math.max` does not take. */
export function later(a: bigint, b: bigint): bigint {
  if (a > b) return a
  return b
}

export function earlier(a: bigint, b: bigint): bigint {
  if (a < b) return a
  return b
}
