import { realpathSync, statSync } from 'node:fs'

/** Whether a path lies on an SD card or eMMC, where the number of writes is what ends the device. */
export function isFlashDevice(path: string): boolean {
  const device = deviceOf(path)
  if (device === undefined) return false
  try {
    // `/sys/dev/block/179:2` points to `.../mmcblk0/mmcblk0p2`.
    return /\/mmcblk[0-9]/.test(realpathSync(`/sys/dev/block/${device}`))
  } catch {
    return false
  }
}

/** Major and minor number of the block device below a path. */
function deviceOf(path: string): string | undefined {
  try {
    const { dev } = statSync(path)
    const major = (dev >>> 8) & 0xfff
    const minor = (dev & 0xff) | ((dev >>> 12) & 0xfff00)
    return `${major}:${minor}`
  } catch {
    return undefined
  }
}
