/** Durations and sizes as Iggy's users write them: "1h 30m", "7 days", "never", "2 GiB", "unlimited". Pure. */

/** "Never" and "unlimited" on the wire; 0 is "as the server is configured". */
export const UNLIMITED = 0xffff_ffff_ffff_ffffn

const WORDS: Readonly<Record<string, bigint>> = {
  never: UNLIMITED,
  none: UNLIMITED,
  unlimited: UNLIMITED,
  never_expire: UNLIMITED,
  server_default: 0n,
  default: 0n,
}
const SECOND_US = 1_000_000n
const DURATION_UNITS: readonly (readonly [RegExp, bigint])[] = [
  [/^(us|usec|microseconds?)$/, 1n],
  [/^(ms|msec|milliseconds?)$/, 1000n],
  [/^(s|secs?|seconds?)$/, SECOND_US],
  [/^(m|mins?|minutes?)$/, 60n * SECOND_US],
  [/^(h|hrs?|hours?)$/, 3600n * SECOND_US],
  [/^(d|days?)$/, 86_400n * SECOND_US],
  [/^(w|weeks?)$/, 604_800n * SECOND_US],
]
const BYTE_UNITS: Readonly<Record<string, bigint>> = {
  '': 1n,
  b: 1n,
  kb: 1000n,
  mb: 1000n ** 2n,
  gb: 1000n ** 3n,
  tb: 1000n ** 4n,
  kib: 1024n,
  mib: 1024n ** 2n,
  gib: 1024n ** 3n,
  tib: 1024n ** 4n,
}

/** @returns µs, 2^64 - 1 for never, 0 for "as configured"; a plain number is µs. undefined when it is none of these. */
export function parseDurationText(text: string): bigint | undefined {
  const trimmed = text.trim().toLowerCase()
  if (Object.hasOwn(WORDS, trimmed)) return WORDS[trimmed]
  if (/^\d{1,20}$/.test(trimmed)) return within(BigInt(trimmed))
  if (!/^(\d{1,15}\s*[a-z]+\s*)+$/.test(trimmed)) return undefined
  let total = 0n
  for (const [, amount, unit] of trimmed.matchAll(/(\d+)\s*([a-z]+)/g)) {
    const scale = DURATION_UNITS.find(([pattern]) => pattern.test(unit ?? ''))
    if (scale === undefined) return undefined
    total += BigInt(amount ?? 0) * scale[1]
  }
  return within(total)
}

/** @returns bytes, 2^64 - 1 for unlimited, 0 for "as configured"; undefined when it is none of these. */
export function parseByteText(text: string): bigint | undefined {
  const trimmed = text.trim().toLowerCase()
  if (Object.hasOwn(WORDS, trimmed)) return WORDS[trimmed]
  const match = /^(\d{1,20})(?:\.(\d{1,3}))?\s*([a-z]*)$/.exec(trimmed)
  if (match === null || !Object.hasOwn(BYTE_UNITS, match[3] ?? '')) return undefined
  const thousandths = BigInt(match[1] ?? 0) * 1000n + BigInt((match[2] ?? '').padEnd(3, '0'))
  return within((thousandths * (BYTE_UNITS[match[3] ?? ''] ?? 1n)) / 1000n)
}

function within(value: bigint): bigint | undefined {
  return value <= UNLIMITED ? value : undefined
}
