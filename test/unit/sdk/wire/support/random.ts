/** Random values from a seed, so that a failing case comes again. */
export interface SeededRandom {
  /** 0..below-1. */
  below(below: number): number
  bytes(length: number): Uint8Array
  u64(): bigint
}

/** mulberry32: 32 bits of state suffice for tests. */
export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t
    return (t ^ (t >>> 14)) >>> 0
  }
  return {
    below: (below) => next() % below,
    bytes(length) {
      const bytes = new Uint8Array(length)
      for (let i = 0; i < length; i++) bytes[i] = next() & 255
      return bytes
    },
    u64: () => (BigInt(next()) << 32n) | BigInt(next()),
  }
}
