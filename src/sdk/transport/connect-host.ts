/** A TCP connection to whichever address of a host answers. `net`'s own way gives each but the last up after half a second. */
import { Socket } from 'node:net'
import { type HostAddress, lookupHost } from './lookup.ts'
import { type Attempt, firstOf, untilRefused } from './race.ts'

export const HEAD_START_MS = 250
/** Of one host; the others have their turn when the name server gives them first. */
export const MAX_ADDRESSES = 16
/**
 * Nobody says when a link that was cut elsewhere is back, and TCP asks again after 1, 3, 7, 15 s. So whoever waits that long
 * begins anew beside it: then a link is never back for longer without being asked, and one of ten seconds is waited for.
 */
const ROUND_MS = 5000
const ROUNDS = [1, 2, 3] as const

/** @throws {EdgeError} what the lookup throws; the system's error of the address that failed last; the reason of `signal`. */
export async function connectToHost(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const addresses = inTurns(await lookupHost(host, signal)).slice(0, MAX_ADDRESSES)
  return await firstOf(
    ROUNDS,
    untilRefused(() => roundOver(addresses, port)),
    ROUND_MS,
    signal,
  )
}

function roundOver(addresses: readonly HostAddress[], port: number): Attempt<Socket> {
  const stop = new AbortController()
  const outcome = firstOf(addresses, (address) => attemptAt(address, port), HEAD_START_MS, stop.signal)
  return {
    outcome,
    abandon() {
      stop.abort()
      outcome.then((socket) => void socket.destroy()).catch(() => {}) // told to the race
    },
  }
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
