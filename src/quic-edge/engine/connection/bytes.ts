/** Comparing bytes. Pure. */

/** Takes as long for a difference at the start as for one at the end: fit for secrets of a size that everybody knows. */
export function areEqualBytes(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false
  let difference = 0
  for (let index = 0; index < left.length; index++) difference |= (left[index] ?? 0) ^ (right[index] ?? 0)
  return difference === 0
}
