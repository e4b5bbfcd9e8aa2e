/**
 * Decides whether a session is taken. Pure.
 *
 * A session counts from its admission on, so that a burst of requests cannot slip in while their answers are under way.
 * One that was admitted and never opened (the peer went away between) is forgotten after the handshake timeout.
 */
import type { AdmissionStatus, SessionLimits, SessionRequest } from '../ports.ts'

export type AdmissionLimits = Pick<SessionLimits, 'maxSessions' | 'maxSessionsPerPeer' | 'handshakeTimeoutMs'>

export class Admission {
  readonly #limits: AdmissionLimits
  readonly #countByHost = new Map<string, number>()
  /** Admitted and not yet opened, oldest first. */
  #pending: { readonly host: string | undefined; readonly expiresMs: number }[] = []
  #openCount = 0
  #isStopping = false
  #refusedCount = 0

  constructor(limits: AdmissionLimits) {
    this.#limits = limits
  }

  get openCount(): number {
    return this.#openCount
  }

  /** Requests refused for a limit, for metrics. */
  get refusedCount(): number {
    return this.#refusedCount
  }

  /** @param isPathKnown whether anyone serves the path. */
  admit(request: SessionRequest, isPathKnown: boolean, nowMs: number): AdmissionStatus {
    this.#expire(nowMs)
    if (!isPathKnown) return 404
    const host = hostOf(request.peer)
    const isFull = this.#openCount + this.#pending.length >= this.#limits.maxSessions
    const isPeerFull = host !== undefined && (this.#countByHost.get(host) ?? 0) >= this.#limits.maxSessionsPerPeer
    if (this.#isStopping || isFull || isPeerFull) {
      this.#refusedCount++
      return 503
    }
    this.#pending.push({ host, expiresMs: nowMs + this.#limits.handshakeTimeoutMs })
    this.#count(host, 1)
    return 200
  }

  opened(peer: string | undefined): void {
    const host = hostOf(peer)
    const at = this.#pending.findIndex((one) => one.host === host)
    if (at >= 0) this.#pending.splice(at, 1)
    else this.#count(host, 1) // its admission had expired: it counts all the same
    this.#openCount++
  }

  /** Admitted, and gone before it was opened. */
  abandoned(peer: string | undefined): void {
    const host = hostOf(peer)
    const at = this.#pending.findIndex((one) => one.host === host)
    if (at < 0) return // its admission had expired
    this.#pending.splice(at, 1)
    this.#count(host, -1)
  }

  closed(peer: string | undefined): void {
    this.#openCount--
    this.#count(hostOf(peer), -1)
  }

  /** From now on everything is refused. */
  stop(): void {
    this.#isStopping = true
  }

  #expire(nowMs: number): void {
    while (this.#pending[0] !== undefined && this.#pending[0].expiresMs <= nowMs) {
      this.#count(this.#pending.shift()?.host, -1)
    }
  }

  #count(host: string | undefined, change: number): void {
    if (host === undefined) return
    const count = (this.#countByHost.get(host) ?? 0) + change
    if (count > 0) this.#countByHost.set(host, count)
    else this.#countByHost.delete(host)
  }
}

/**
 * Whom a limit for one peer is about: the address without its port. Of IPv6 it is the network of 64 bits, all of whose
 * addresses one machine may have.
 *
 * @param peer `192.0.2.1:40000`, `[2001:db8::1]:40000`, or without brackets.
 */
export function hostOf(peer: string | undefined): string | undefined {
  if (peer === undefined) return undefined
  const host = peer.slice(0, peer.lastIndexOf(':')).replace(/^\[|\]$/g, '')
  if (!host.includes(':') || host.includes('.')) return host
  const [left = '', right] = host.split('::')
  const groups = left.split(':')
  if (right !== undefined) groups.push(...Array.from({ length: NETWORK_GROUPS }, () => '0'))
  return groups.slice(0, NETWORK_GROUPS).join(':')
}

/** Of 16 bits each. */
const NETWORK_GROUPS = 4
