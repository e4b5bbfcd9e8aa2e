/**
 * CRC-32 (zlib's polynomial) over part of a buffer, for headers: short enough that a call into zlib, which wants a view
 * object made first, would cost more than the sum itself. Bodies go through the faster `Checksum` that the shell hands in.
 *
 * A *seed* is the sum to go on from. Headers are seeded with random salts, so that bytes which a client sends, or which a
 * recycled file still holds, never pass for a header of this file or session.
 */
export type Checksum = (bytes: Uint8Array, start: number, end: number, seed: number) => number

const POLYNOMIAL = 0xedb88320

/** Four tables: `TABLES[k][b]` is the sum of byte `b` followed by `k` zero bytes. */
const TABLES: readonly Uint32Array[] = createTables()

export const crc32: Checksum = (bytes, start, end, seed) => {
  const [t0, t1, t2, t3] = TABLES as [Uint32Array, Uint32Array, Uint32Array, Uint32Array]
  let sum = ~seed
  let at = start
  for (; at + 4 <= end; at += 4) {
    sum ^= byte(bytes, at) | (byte(bytes, at + 1) << 8) | (byte(bytes, at + 2) << 16) | (byte(bytes, at + 3) << 24)
    sum = at32(t3, sum & 255) ^ at32(t2, (sum >>> 8) & 255) ^ at32(t1, (sum >>> 16) & 255) ^ at32(t0, sum >>> 24)
  }
  for (; at < end; at++) sum = at32(t0, (sum ^ byte(bytes, at)) & 255) ^ (sum >>> 8)
  return ~sum >>> 0
}

function createTables(): Uint32Array[] {
  const first = new Uint32Array(256)
  for (let value = 0; value < 256; value++) {
    let sum = value
    for (let bit = 0; bit < 8; bit++) sum = (sum & 1) === 1 ? (sum >>> 1) ^ POLYNOMIAL : sum >>> 1
    first[value] = sum
  }
  const second = shifted(first, first)
  const third = shifted(first, second)
  return [first, second, third, shifted(first, third)]
}

/** The table for one more zero byte behind. */
function shifted(first: Uint32Array, before: Uint32Array): Uint32Array {
  return before.map((sum) => at32(first, sum & 255) ^ (sum >>> 8))
}

// The index is in range by construction; the fallback is for the type checker and is optimised away.
function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0
}

function at32(table: Uint32Array, at: number): number {
  return table[at] ?? 0
}
