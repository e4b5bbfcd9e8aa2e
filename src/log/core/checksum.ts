/**
 * CRC-32 (zlib's polynomial) over part of a buffer, for headers: short enough that a call into zlib, which wants a view
 * object made first, would cost more than the sum itself. Bodies go through the faster `Checksum` that the shell hands in.
 *
 * A *seed* is the sum to go on from. Headers are seeded with random salts, so that bytes which a client sends, or which a
 * recycled file still holds, never pass for a header of this file or session.
 */
export type Checksum = (bytes: Uint8Array, start: number, end: number, seed: number) => number

const POLYNOMIAL = 0xedb88320

/** Bytes taken at once. */
const STEP = 8
/** `STEP` tables in one: the entry of byte `b` in table `k` is the sum of `b` followed by `k` zero bytes. Signed: faster. */
const TABLES = createTables()

export const crc32: Checksum = (bytes, start, end, seed) => {
  let sum = ~seed
  let at = start
  for (; at + STEP <= end; at += STEP) {
    sum =
      entry(7, sum ^ byte(bytes, at)) ^
      entry(6, (sum >>> 8) ^ byte(bytes, at + 1)) ^
      entry(5, (sum >>> 16) ^ byte(bytes, at + 2)) ^
      entry(4, (sum >>> 24) ^ byte(bytes, at + 3)) ^
      entry(3, byte(bytes, at + 4)) ^
      entry(2, byte(bytes, at + 5)) ^
      entry(1, byte(bytes, at + 6)) ^
      entry(0, byte(bytes, at + 7))
  }
  for (; at < end; at++) sum = entry(0, sum ^ byte(bytes, at)) ^ (sum >>> 8)
  return ~sum >>> 0
}

/**
 * The sum of two pieces, one behind the other, from the sums of both. What it costs grows with the bits of the length, not
 * with the bytes: a microsecond where zlib takes eight for 20 KB.
 *
 * The method is that of zlib's `crc32_combine`: a sum is a polynomial over GF(2), and n bytes behind it multiply it by x^8n.
 *
 * @param second sum of the second piece alone, seeded with 0.
 * @param secondLength in bytes.
 */
export function joinedCrc32(first: number, second: number, secondLength: number): number {
  let sum = first
  for (let [rest, power] = [secondLength, 0]; rest > 0; rest = Math.floor(rest / 2), power++) {
    if (rest % 2 === 1) sum = product(BYTE_POWERS[power] ?? 0, sum)
  }
  return (sum ^ second) >>> 0
}

/**
 * Which bit of `sizeBytes` bytes was flipped, by what that does to their sum: the polynomial itself for the last one, and one
 * zero bit further for each that follows it.
 *
 * @param difference of the sum as it was and as it is, not 0.
 * @returns its number, from the lowest bit of the first byte on; undefined when no single bit does it.
 */
export function flippedBit(difference: number, sizeBytes: number): number | undefined {
  let sum = POLYNOMIAL
  for (let bit = 8 * sizeBytes - 1; bit >= 0; bit--) {
    if ((sum ^ difference) === 0) return bit
    sum = oneBitOn(sum)
  }
  return undefined
}

/** x^8, x^16, x^32 ..: what one, two, four .. bytes multiply a sum by. As many as lengths below 2^32 have bits. */
const BYTE_POWERS = createBytePowers()

function createBytePowers(): Int32Array {
  const powers = new Int32Array(32)
  // Bits are in reverse: the highest one is x^0.
  let power = 1 << (31 - 8)
  for (let at = 0; at < powers.length; at++) {
    powers[at] = power
    power = product(power, power)
  }
  return powers
}

/** The sum with a zero bit behind it. Masks instead of branches: the bits are random, and a wrong guess costs more than both. */
function oneBitOn(sum: number): number {
  return (sum >>> 1) ^ (POLYNOMIAL & -(sum & 1))
}

/** Of two polynomials, modulo the sum's own. */
function product(left: number, right: number): number {
  let result = 0
  let shifted = right
  for (let rest = left; rest !== 0; rest <<= 1) {
    result ^= shifted & (rest >> 31)
    shifted = oneBitOn(shifted)
  }
  return result
}

function createTables(): Int32Array {
  const tables = new Int32Array(STEP * 256)
  // Sums are linear: those of single bits give all others. Eight steps a value got this compiled by TurboFan at the start.
  let sum = 1
  for (let bit = 128; bit > 0; bit >>= 1) {
    sum = oneBitOn(sum)
    for (let value = 0; value < 256; value += 2 * bit) tables[value + bit] = sum ^ (tables[value] ?? 0)
  }
  for (let at = 256; at < tables.length; at++) {
    // One more zero byte behind.
    const before = tables[at - 256] ?? 0
    tables[at] = (tables[before & 255] ?? 0) ^ (before >>> 8)
  }
  return tables
}

// The index is in range by construction; the fallback is for the type checker and is optimised away.
function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0
}

function entry(table: number, value: number): number {
  return TABLES[(table << 8) | (value & 255)] ?? 0
}
