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

/**
 * As Iggy's API has it: a plain number is µs.
 * @returns µs, 2^64 - 1 for never, 0 for "as configured"; undefined when it is none of these.
 */
export function parseDurationText(text: string): bigint | undefined {
  const trimmed = text.trim()
  return /^\d{1,20}$/.test(trimmed) ? within(BigInt(trimmed)) : parseDurationWithUnit(trimmed)
}

/** As people write it: what lacks a unit could be seconds as well as µs, so only 0 may. @returns as above. */
export function parseDurationWithUnit(text: string): bigint | undefined {
  const trimmed = text.trim().toLowerCase()
  if (trimmed === '0') return 0n
  return Object.hasOwn(WORDS, trimmed) ? WORDS[trimmed] : parseTimeSpan(trimmed)
}

/** A span such as "1h 30m" or "1.5 h". @returns µs; undefined when it is none, or no number of whole µs. */
export function parseTimeSpan(text: string): bigint | undefined {
  if (!/^(\d{1,15}(\.\d{1,3})?\s*[a-z]+\s*)+$/i.test(text.trim())) return undefined
  let total = 0n
  for (const [, whole, fraction, unit] of text.toLowerCase().matchAll(/(\d+)(?:\.(\d+))?\s*([a-z]+)/g)) {
    const scale = DURATION_UNITS.find(([pattern]) => pattern.test(unit ?? ''))
    if (scale === undefined) return undefined
    const thousandths = thousandthsOf(whole, fraction) * scale[1]
    if (thousandths % 1000n !== 0n) return undefined
    total += thousandths / 1000n
  }
  return within(total)
}

/** @returns bytes, 2^64 - 1 for unlimited, 0 for "as configured"; undefined when it is none of these. */
export function parseByteText(text: string): bigint | undefined {
  const trimmed = text.trim().toLowerCase()
  return Object.hasOwn(WORDS, trimmed) ? WORDS[trimmed] : parseByteCount(trimmed)
}

/** A size such as "8 MiB" or "1.5 GB"; a plain number is bytes. @returns undefined when it is none. */
export function parseByteCount(text: string): bigint | undefined {
  const match = /^(\d{1,20})(?:\.(\d{1,3}))?\s*([a-z]*)$/.exec(text.trim().toLowerCase())
  if (match === null || !Object.hasOwn(BYTE_UNITS, match[3] ?? '')) return undefined
  return within((thousandthsOf(match[1], match[2]) * (BYTE_UNITS[match[3] ?? ''] ?? 1n)) / 1000n)
}

/** Of a decimal number with at most three places. */
function thousandthsOf(whole = '0', fraction = ''): bigint {
  return BigInt(whole) * 1000n + BigInt(fraction.padEnd(3, '0'))
}

function within(value: bigint): bigint | undefined {
  return value <= UNLIMITED ? value : undefined
}
