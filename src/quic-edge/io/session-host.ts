/** The living sessions of one listener and the one timer that looks after them. */
import type { Clock } from '../../clock.ts'
import type { PackageSession } from '../../quinn-transport/index.ts'
import { SessionRegistry } from '../core/session-registry.ts'
import { QUIC_EDGE_DEFAULTS } from '../defaults.ts'
import { SESSION_CODES, type SessionGate, type SessionLimits, type SessionRequest } from '../ports.ts'
import { DriverSession } from './driver-session.ts'

/** Session numbers are unique in the process, over all listeners. */
let nextSessionId = 1

export class SessionHost {
  readonly limits: SessionLimits
  readonly registry: SessionRegistry
  readonly #gate: SessionGate
  readonly #clock: Clock
  readonly #sessions = new Map<number, DriverSession>()
  readonly #timer: NodeJS.Timeout
  #onEmpty: (() => void)[] = []

  constructor(limits: SessionLimits, gate: SessionGate, clock: Clock) {
    this.limits = limits
    this.registry = new SessionRegistry(limits)
    this.#gate = gate
    this.#clock = clock
    this.#timer = setInterval(() => this.#sweep(), QUIC_EDGE_DEFAULTS.sweepIntervalMs)
    this.#timer.unref()
  }

  nowMs(): number {
    return this.#clock.monotonicUs() / 1000
  }

  get sessionCount(): number {
    return this.#sessions.size
  }

  /** Takes over a session that the package has made after its admission. */
  async adopt(
    inner: PackageSession,
    request: SessionRequest,
    options: { isReliableOnly: boolean; maxStreamsEver: number },
  ): Promise<void> {
    inner.closed.catch(() => {})
    try {
      await inner.ready
    } catch {
      return // gone before it began: its admission expires
    }
    const session = new DriverSession({ id: nextSessionId++, request, inner, host: this, ...options })
    this.#sessions.set(session.id, session)
    this.registry.add(session.id, this.nowMs())
    session.start(this.#gate)
  }

  removed(session: DriverSession): void {
    this.#sessions.delete(session.id)
    this.registry.remove(session.id)
    if (this.#sessions.size > 0) return
    for (const resolve of this.#onEmpty.splice(0)) resolve()
  }

  closeAll(code: number, reason: string): void {
    for (const session of [...this.#sessions.values()]) session.close(code, reason)
  }

  /** @returns whether all sessions were gone within the time. */
  async whenEmpty(timeoutMs: number): Promise<boolean> {
    if (this.#sessions.size === 0) return true
    const empty = new Promise<boolean>((resolve) => this.#onEmpty.push(() => resolve(true)))
    return await within(timeoutMs, empty, false)
  }

  /** Runs `late` when `work` is not settled in time. */
  expectWithin(timeoutMs: number, work: Promise<unknown>, late: () => void): void {
    const timer = setTimeout(late, timeoutMs)
    timer.unref()
    work.finally(() => clearTimeout(timer)).catch(() => {})
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #sweep(): void {
    for (const action of this.registry.due(this.nowMs())) {
      const session = this.#sessions.get(action.sessionId)
      if (action.type === 'ping') session?.ping()
      else if (action.type === 'close-idle') session?.close(SESSION_CODES.idle, 'idle')
      else session?.resetStream(action.streamId)
    }
  }
}

/** @returns what `work` gives, or `fallback` when it takes longer. */
export async function within<T>(timeoutMs: number, work: Promise<T>, fallback: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, fallback)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
