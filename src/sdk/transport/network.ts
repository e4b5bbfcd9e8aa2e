/** Which network this machine is in, as far as its own addresses tell. */
import { networkInterfaces } from 'node:os'

/** @returns null where the system does not tell: netlink is not allowed here, or no file can be opened any more. */
export function networkNow(interfaces = networkInterfaces): string | null {
  try {
    return Object.entries(interfaces())
      .flatMap(([name, addresses]) => (addresses ?? []).map(({ address }) => `${name} ${address}`))
      .sort()
      .join('\n')
  } catch {
    return null
  }
}
