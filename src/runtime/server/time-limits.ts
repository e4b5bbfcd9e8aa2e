/**
 * Time limits of one connection: when it is given up, and when what it waits for is refused. Pure.
 *
 * Who gets on is not cut: a byte that came counts, and one that the peer took of its answers, however large they are and slow
 * the link. Only of a large request a least rate is asked, and only where others wait for what it takes
 * of the budget.
 * Relies on being asked about once a second.
 */
import { type ConnectionLimits, END_GRACE_MS, GONE_TIMEOUT_MS, LEAST_FILL_BYTES_PER_S, MAX_FILL_S } from './defaults.ts'

const SECOND_US = 1_000_000

/** How a connection stands when it is looked at. */
export interface Standing {
  /** A whole request has come once. */
  readonly hasAsked: boolean
  /** Nothing is looked at before the peer has taken its answers. */
  readonly isOutputFull: boolean
  /** What was written and has not gone out, bytes. */
  readonly unsentBytes: number
  /** What went out and was not acknowledged, bytes; null when it was not asked for, or nobody knows. */
  readonly unacknowledgedBytes: number | null
  /** A request has begun to come, and the rest of it is read as it comes. */
  readonly isMidRequest: boolean
  /** A request that holds a share of the budget and is not whole. */
  readonly filling: { readonly sizeBytes: number; readonly receivedBytes: number } | null
  /** Others wait for such a share. */
  readonly isShareAwaited: boolean
  /** It waits for what is refused when it does not come in time. */
  readonly mayBeRefused: boolean
}

/**
 * What is over: the time for its peer to end too, for a first request, for a sign of life, for as many bytes of a large
 * request, for what it waits for.
 */
export type Overdue = 'end' | 'first-request' | 'sign' | 'fill' | 'wait'

export class TimeLimits {
  private readonly limits: ConnectionLimits
  private readonly isStream: boolean
  private readonly openedUs: number
  private heardUs: number
  private takenUs: number
  private unsentBytes = 0
  private unacknowledgedBytes: number | null = null
  /** Something was written, and it is not known that the peer has it. */
  private hasAnswered = false
  private waitsSinceUs: number
  private endedUs: number | null = null
  /** Since when the bytes of a large request are counted, what it had then, and whether its share was missing to others since. */
  private fill: { readonly sinceUs: number; readonly receivedBytes: number; isAwaited: boolean } | null = null

  /** @param isStream of one request and one answer. */
  constructor(limits: ConnectionLimits, isStream: boolean, nowUs: number) {
    this.limits = limits
    this.isStream = isStream
    this.openedUs = nowUs
    this.heardUs = nowUs
    this.takenUs = nowUs
    this.waitsSinceUs = nowUs
  }

  /** When the peer was last seen to be there. */
  get lastSeenUs(): number {
    return Math.max(this.heardUs, this.takenUs)
  }

  get hasEnded(): boolean {
    return this.endedUs !== null
  }

  /** Bytes came, or what it waited for is there. */
  heard(nowUs: number): void {
    this.heardUs = nowUs
  }

  /** The peer has taken its answers. */
  taken(nowUs: number): void {
    this.takenUs = nowUs
  }

  /** Something is written. */
  answers(): void {
    this.hasAnswered = true
  }

  waits(nowUs: number): void {
    this.waitsSinceUs = nowUs
  }

  /** Another request has a share. */
  beginsFill(): void {
    this.fill = null
  }

  /** Nothing more is written. */
  ended(nowUs: number): void {
    this.endedUs = nowUs
  }

  /**
   * Whether the peer seems to take nothing, or to be gone: then it is worth asking what it acknowledges. Of a silent one once
   * is enough when it has all: then keep-alive asks for it, which does not while an answer is on its way.
   */
  isInDoubt(unsentBytes: number, nowUs: number): boolean {
    if (unsentBytes > 0) return nowUs - this.takenUs > (this.limits.stallTimeoutMs * 1000) / 2
    return this.hasAnswered && nowUs - this.lastSeenUs > (GONE_TIMEOUT_MS * 1000) / 2
  }

  check(standing: Standing, nowUs: number): Overdue | null {
    const hasAll = standing.unsentBytes === 0 && (standing.unacknowledgedBytes ?? 0) === 0
    if (hasAll && this.isInDoubt(0, nowUs)) this.hasAnswered = false
    if (this.hasTaken(standing)) this.takenUs = nowUs
    const stallUs = this.limits.stallTimeoutMs * 1000
    const isSlow = this.isFillSlow(standing, nowUs)
    if (this.endedUs !== null) {
      // A stream is over when the peer has all of its answer, and it is told so; of a connection the peer is to end its side.
      const graceUs = this.isStream || standing.unsentBytes > 0 ? stallUs : END_GRACE_MS * 1000
      return nowUs - Math.max(this.endedUs, this.takenUs) > graceUs ? 'end' : null
    }
    if (!standing.hasAsked && nowUs - this.openedUs > this.limits.firstRequestTimeoutMs * 1000) return 'first-request'
    if (standing.isOutputFull && nowUs - this.takenUs > stallUs) return 'sign'
    if (standing.isMidRequest && nowUs - this.lastSeenUs > stallUs) return 'sign'
    const isLost = (standing.unacknowledgedBytes ?? 0) > 0 && nowUs - this.lastSeenUs > GONE_TIMEOUT_MS * 1000
    if (isLost) return 'sign'
    if (isSlow) return 'fill'
    const isLate = standing.mayBeRefused && nowUs - this.waitsSinceUs > this.limits.roomTimeoutMs * 1000
    return isLate ? 'wait' : null
  }

  private hasTaken({ unsentBytes, unacknowledgedBytes }: Standing): boolean {
    const before = this.unacknowledgedBytes
    const isAcknowledged = before !== null && unacknowledgedBytes !== null && before !== unacknowledgedBytes
    const hasGone = unsentBytes !== this.unsentBytes
    this.unsentBytes = unsentBytes
    this.unacknowledgedBytes = unacknowledgedBytes
    return hasGone || isAcknowledged
  }

  /** Over as long a time as a silent peer gets: a link may well be gone for a part of it. */
  private isFillSlow({ filling, isShareAwaited }: Standing, nowUs: number): boolean {
    const { fill } = this
    if (filling === null || fill === null) {
      this.fill = filling === null ? null : { sinceUs: nowUs, receivedBytes: filling.receivedBytes, isAwaited: false }
      return false
    }
    // Who waited may have been refused meanwhile.
    fill.isAwaited ||= isShareAwaited
    const passedUs = nowUs - fill.sinceUs
    if (passedUs < this.limits.stallTimeoutMs * 1000) return false
    this.fill = { sinceUs: nowUs, receivedBytes: filling.receivedBytes, isAwaited: false }
    const leastBytes = leastFillRate(filling.sizeBytes) * (passedUs / SECOND_US)
    return fill.isAwaited && filling.receivedBytes - fill.receivedBytes < leastBytes
  }
}

/** @returns bytes a second that a request of that size has to come with while others wait. */
export function leastFillRate(sizeBytes: number): number {
  return Math.max(LEAST_FILL_BYTES_PER_S, Math.ceil(sizeBytes / MAX_FILL_S))
}
