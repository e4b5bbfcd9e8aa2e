/**
 * Checks the CRC of a header, and puts a single flipped bit right where it lies.
 *
 * That is certain: over the at most 92 bytes of a header any two sums that fit lie five bits apart or more. One flipped bit
 * is put right, two or three are found and never taken for one. Of bytes that are no header at all, one in some five million
 * would pass; so whoever searches for headers asks `isNear` of magic and place first, and compares both again afterwards.
 */
import type { ByteArea } from './byte-area.ts'
import { crc32, flippedBit } from './checksum.ts'

/** Whether two u32 differ in at most one bit. */
export function isNear(found: number, expected: number): boolean {
  const difference = found ^ expected
  return (difference & (difference - 1)) === 0
}

/** A header as it was read. */
export type Decoded<T> = T & {
  /** A bit of it is flipped on the disk. */
  readonly isMended: boolean
}

/** What became of the sum of `start..end`, which stands at `sumAt`: `mended` when one bit of either was put right. */
export function checkSum(
  { bytes, view }: ByteArea,
  start: number,
  end: number,
  sumAt: number,
  seed: number,
): 'sound' | 'mended' | 'bad' {
  const found = view.getUint32(sumAt, true)
  const difference = (found ^ crc32(bytes, start, end, seed)) >>> 0
  if (difference === 0) return 'sound'
  if (isNear(difference, 0)) {
    view.setUint32(sumAt, found ^ difference, true)
    return 'mended'
  }
  const bit = flippedBit(difference, end - start)
  if (bit === undefined) return 'bad'
  const at = start + (bit >> 3)
  view.setUint8(at, view.getUint8(at) ^ (1 << (bit & 7)))
  return 'mended'
}
