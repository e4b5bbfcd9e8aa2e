/**
 * Sizes as Iggy writes them: the value stays exact, in the largest unit in which it is at least 1 and needs at most three
 * decimals: `0 B`, `1 KiB`, `1.5 KB`, `147412 KiB`. Clients of Iggy read exactly this form. Pure.
 */

/** Largest first; the binary unit wins over the decimal one beside it. */
const UNITS: readonly (readonly [name: string, sizeBytes: bigint])[] = [
  ['EiB', 1n << 60n],
  ['EB', 10n ** 18n],
  ['PiB', 1n << 50n],
  ['PB', 10n ** 15n],
  ['TiB', 1n << 40n],
  ['TB', 10n ** 12n],
  ['GiB', 1n << 30n],
  ['GB', 10n ** 9n],
  ['MiB', 1n << 20n],
  ['MB', 10n ** 6n],
  ['KiB', 1n << 10n],
  ['KB', 10n ** 3n],
]

/** @param sizeBytes whole and not negative. */
export function formatByteSize(sizeBytes: number | bigint): string {
  const size = BigInt(sizeBytes)
  for (const [name, unit] of UNITS) {
    if (size < unit || (size * 1000n) % unit !== 0n) continue
    const thousandths = (size * 1000n) / unit
    const decimals = (thousandths % 1000n).toString().padStart(3, '0').replace(/0+$/, '')
    const whole = (thousandths / 1000n).toString()
    return decimals === '' ? `${whole} ${name}` : `${whole}.${decimals} ${name}`
  }
  return `${size} B`
}
