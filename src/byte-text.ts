/** Sizes as a person reads them. Pure. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** @returns such as `5.0 GiB`; rounded, so never what a program is to read. */
export function formatBytes(sizeBytes: number): string {
  const step = sizeBytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(sizeBytes) / 10))
  const amount = sizeBytes / 1024 ** step
  return `${step === 0 ? sizeBytes : amount.toFixed(1)} ${UNITS[step]}`
}
