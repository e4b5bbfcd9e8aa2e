/** XXH32 with seed 0: messages keys choose their partition by it, and offsets of a named consumer are stored under it. */
const PRIME_1 = 0x9e3779b1
const PRIME_2 = 0x85ebca77
const PRIME_3 = 0xc2b2ae3d
const PRIME_4 = 0x27d4eb2f
const PRIME_5 = 0x165667b1

const textEncoder = new TextEncoder()

/** @returns the hash, 0..2^32-1. */
export function xxh32(bytesView: Uint8Array): number {
  const view = new DataView(bytesView.buffer, bytesView.byteOffset, bytesView.length)
  const length = bytesView.length
  let at = 0
  let hash = PRIME_5
  if (length >= 16) {
    let a = (PRIME_1 + PRIME_2) | 0
    let b = PRIME_2 | 0
    let c = 0
    let d = -PRIME_1 | 0
    for (; at + 16 <= length; at += 16) {
      a = round(a, view.getUint32(at, true))
      b = round(b, view.getUint32(at + 4, true))
      c = round(c, view.getUint32(at + 8, true))
      d = round(d, view.getUint32(at + 12, true))
    }
    hash = (rotated(a, 1) + rotated(b, 7) + rotated(c, 12) + rotated(d, 18)) | 0
  }
  hash = (hash + length) | 0
  for (; at + 4 <= length; at += 4) {
    hash = Math.imul(rotated((hash + Math.imul(view.getUint32(at, true), PRIME_3)) | 0, 17), PRIME_4)
  }
  for (; at < length; at++) {
    hash = Math.imul(rotated((hash + Math.imul(view.getUint8(at), PRIME_5)) | 0, 11), PRIME_1)
  }
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2)
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** @returns the hash of a text's UTF-8 bytes. */
export function xxh32OfText(text: string): number {
  return xxh32(textEncoder.encode(text))
}

/** @returns the partition of a messages key, 0..partitionsCount-1. */
export function partitionOfKey(keyView: Uint8Array, partitionsCount: number): number {
  return xxh32(keyView) % partitionsCount
}

function round(lane: number, word: number): number {
  return Math.imul(rotated((lane + Math.imul(word, PRIME_2)) | 0, 13), PRIME_1)
}

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits))
}
