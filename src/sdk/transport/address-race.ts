/**
 * One connection to a host of several addresses, of which some may be dead: each gets a head start on the next, and goes on
 * while that is tried (RFC 8305). Node's own way, `autoSelectFamily`, gives an address up when its head start is over: behind
 * a round trip longer than that, only the last address of a host could ever be reached.
 */
import { Socket } from 'node:net'
import { type HostAddress, lookupHost } from './lookup.ts'

const HEAD_START_MS = 250
/** Of one host; the others have their turn when the name server gives them first. */
const MAX_ADDRESSES = 16

export interface Attempt<T> {
  readonly connected: Promise<T>
  abandon(): void
}

/** @throws {EdgeError} what the lookup throws; the system's error of the address that failed last; the reason of `signal`. */
export async function connectToHost(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const addresses = await lookupHost(host, signal)
  return await firstOf(addresses, (address) => attemptAt(address, port), signal)
}

/**
 * @param addresses at least one; families take turns, beginning with that of the first.
 * @returns what came first; every other attempt is abandoned then.
 */
export async function firstOf<T>(
  addresses: readonly HostAddress[],
  start: (address: HostAddress) => Attempt<T>,
  signal: AbortSignal,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const abort = (): void => reject(signal.reason)
  const waiting = inTurns(addresses).slice(0, MAX_ADDRESSES)
  const running = new Set<Attempt<T>>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const startNext = (): void => {
    clearTimeout(timer)
    const address = waiting.shift()
    if (address === undefined) return
    const attempt = start(address)
    running.add(attempt)
    attempt.connected.then(
      (connected) => {
        running.delete(attempt)
        resolve(connected)
      },
      (error: unknown) => {
        running.delete(attempt)
        if (waiting.length > 0) startNext()
        else if (running.size === 0) reject(error)
      },
    )
    timer = setTimeout(startNext, HEAD_START_MS)
  }
  signal.addEventListener('abort', abort, { once: true })
  try {
    if (signal.aborted) abort()
    else startNext()
    return await promise
  } finally {
    signal.removeEventListener('abort', abort)
    clearTimeout(timer)
    waiting.length = 0
    for (const attempt of running) attempt.abandon()
  }
}

function attemptAt({ address, family }: HostAddress, port: number): Attempt<Socket> {
  const socket = new Socket()
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  socket.once('connect', () => resolve(socket)).on('error', reject)
  socket.connect({ host: address, port, family })
  return { connected: promise, abandon: () => void socket.destroy() }
}

function inTurns(addresses: readonly HostAddress[]): HostAddress[] {
  const [first] = addresses
  const own = addresses.filter(({ family }) => family === first?.family)
  const others = addresses.filter(({ family }) => family !== first?.family)
  const count = Math.max(own.length, others.length)
  return Array.from({ length: count }, (_, at) => [own[at], others[at]])
    .flat()
    .filter((each) => each !== undefined)
}
