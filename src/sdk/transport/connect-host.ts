/** A TCP connection to whichever address of a host answers. `net`'s own way gives each but the last up after half a second. */
import { Socket } from 'node:net'
import { type HostAddress, lookupHost } from './lookup.ts'
import { type Attempt, firstOf } from './race.ts'

export const HEAD_START_MS = 250
/** Of one host; the others have their turn when the name server gives them first. */
export const MAX_ADDRESSES = 16

/** @throws {EdgeError} what the lookup throws; the system's error of the address that failed last; the reason of `signal`. */
export async function connectToHost(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const addresses = inTurns(await lookupHost(host, signal)).slice(0, MAX_ADDRESSES)
  return await firstOf(addresses, (address) => attemptAt(address, port), HEAD_START_MS, signal)
}

function attemptAt({ address, family }: HostAddress, port: number): Attempt<Socket> {
  const socket = new Socket()
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  socket.once('connect', () => resolve(socket)).on('error', reject)
  socket.connect({ host: address, port, family })
  return { outcome: promise, abandon: () => void socket.destroy() }
}

/** @returns them so that families alternate, beginning with that of the first. */
export function inTurns(addresses: readonly HostAddress[]): HostAddress[] {
  const [first] = addresses
  const own = addresses.filter(({ family }) => family === first?.family)
  const others = addresses.filter(({ family }) => family !== first?.family)
  const count = Math.max(own.length, others.length)
  return Array.from({ length: count }, (_, at) => [own[at], others[at]])
    .flat()
    .filter((each) => each !== undefined)
}
