/** Variable-length integers (RFC 9000 section 16): two bits say how many bytes follow, 1, 2, 4 or 8. Pure. */

/** The largest value that the encoding has, 2^62 - 1, as a double. */
export const VARINT_MAX = 2 ** 62

/** Bytes that `value` takes in its shortest form. */
export function varintSize(value: number): 1 | 2 | 4 | 8 {
  if (value < 0x40) return 1
  if (value < 0x4000) return 2
  return value < 0x4000_0000 ? 4 : 8
}
