/** When a connection has been silent for too long (RFC 9000 section 10.1). Pure. */

/** A timeout never is shorter than so many probe timeouts, or a few losses would end the connection. */
const PROBE_TIMEOUTS_MIN = 3

export class IdleTimer {
  #timeoutMs: number
  #deadlineMs = Number.POSITIVE_INFINITY
  /** Something was sent since the last packet came: further ones do not prolong the wait. */
  #hasAsked = false

  /** @param timeoutMs 0: never idle. */
  constructor(timeoutMs: number, nowMs: number) {
    this.#timeoutMs = timeoutMs === 0 ? Number.POSITIVE_INFINITY : timeoutMs
    this.#deadlineMs = nowMs + this.#timeoutMs
  }

  get deadlineMs(): number {
    return this.#deadlineMs
  }

  /** The peer's timeout holds too. @param timeoutMs 0: it has none. */
  limit(timeoutMs: number): void {
    if (timeoutMs > 0) this.#timeoutMs = Math.min(this.#timeoutMs, timeoutMs)
  }

  received(nowMs: number, probeTimeoutMs: number): void {
    this.#hasAsked = false
    this.#restart(nowMs, probeTimeoutMs)
  }

  /** A packet went out that asks for an acknowledgement. */
  sent(nowMs: number, probeTimeoutMs: number): void {
    if (this.#hasAsked) return
    this.#hasAsked = true
    this.#restart(nowMs, probeTimeoutMs)
  }

  #restart(nowMs: number, probeTimeoutMs: number): void {
    this.#deadlineMs = nowMs + Math.max(this.#timeoutMs, PROBE_TIMEOUTS_MIN * probeTimeoutMs)
  }
}
