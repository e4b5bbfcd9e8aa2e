/** Inputs that nobody should send, made from good ones. */
import { EdgeError } from '../../src/errors.ts'
import { SeededRandom } from './seeded-random.ts'

/** What parsers turn on: ends of number ranges, and marks of JSON and TOML. */
const TELLING_BYTES = [0, 1, 0x7f, 0x80, 0xff, 0x22, 0x2c, 0x3a, 0x5b, 0x7b]

/** A copy with some bytes changed, moved, cut or added; sometimes nothing but noise. */
export function mutatedBytes(sample: Uint8Array, random: SeededRandom): Uint8Array {
  const bytes = new Uint8Array(sample.length + 8)
  bytes.set(sample)
  const { length } = sample
  const kind = random.below(16)
  if (kind === 0) return bytes.subarray(0, random.below(length + 1))
  if (kind === 1) {
    for (let at = length; at < bytes.length; at++) bytes[at] = random.below(256)
    return bytes.subarray(0, length + random.below(8))
  }
  if (kind === 2) for (let at = 0; at < length; at++) bytes[at] = random.below(256)
  if (kind === 3) bytes.copyWithin(random.below(length), random.below(length), length)
  for (let left = random.below(4); left >= 0; left--) {
    const byte = random.chance(0.3) ? TELLING_BYTES[random.below(TELLING_BYTES.length)] : random.below(256)
    bytes[random.below(length)] = byte ?? 0
  }
  return bytes.subarray(0, length)
}

export interface FuzzOptions {
  readonly samples: readonly Uint8Array[]
  readonly rounds: number
  /** Of the mutations of each sample, and of the samples. */
  readonly seed: number
}

/**
 * Decodes so many mutations of the samples. Whatever is thrown but an error of ours, or one that says we are at fault, is
 * thrown on.
 *
 * @param decode returns undefined for what it refuses without an error.
 * @returns how many decoded.
 */
export function countDecoded({ samples, rounds, seed }: FuzzOptions, decode: (bytes: Uint8Array) => unknown): number {
  const random = new SeededRandom(seed)
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0 // They would be most of the time.
  let count = 0
  try {
    for (let round = 0; round < rounds; round++) {
      const bytes = mutatedBytes(samples[random.below(samples.length)] ?? new Uint8Array(1), random)
      try {
        if (decode(bytes) !== undefined) count++
      } catch (error) {
        if (!(error instanceof EdgeError) || error.code === 'EDGE_INTERNAL') throw error
      }
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  return count
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
