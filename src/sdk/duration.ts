/** Durations as Iggy's settings write them: `5s`, `500ms`, `1h 30m`. Pure. */
const UNIT_US: Readonly<Record<string, number>> = {
  us: 1,
  µs: 1,
  ms: 1000,
  s: 1_000_000,
  sec: 1_000_000,
  m: 60_000_000,
  min: 60_000_000,
  h: 3_600_000_000,
  d: 86_400_000_000,
  day: 86_400_000_000,
  days: 86_400_000_000,
}

/** @returns µs, or undefined when the text is no duration; a bare zero is one. */
export function parseDuration(text: string): number | undefined {
  if (text.trim() === '0') return 0
  const parts = [...text.matchAll(/\s*(\d+)\s*([a-z\u00b5]+)\s*/gy)]
  const readLength = parts.reduce((sum, part) => sum + part[0].length, 0)
  if (parts.length === 0 || readLength !== text.length) return undefined
  let totalUs = 0
  for (const [, count = '', unit = ''] of parts) {
    if (!Object.hasOwn(UNIT_US, unit)) return undefined
    totalUs += Number(count) * (UNIT_US[unit] ?? 0)
  }
  return Number.isSafeInteger(totalUs) ? totalUs : undefined
}
