/**
 * The connection to one upstream, as a state machine: when to try, how long to wait, and the name of what stands in the
 * way. Each upstream has its own, so that one that is dead costs another nothing. Pure; times are monotonic.
 */
import type { EdgeError } from '../../errors.ts'
import { LinkBackoff, type LinkBackoffPolicy } from './backoff.ts'
import { isSilence } from './classify.ts'

export type LinkState =
  | 'connecting'
  | 'up'
  | 'waiting' // a pause before the next attempt
  | 'blocked' // credentials, certificate, version: an operator must act; tried again slowly
  | 'closed'

/** Why an attempt failed, as far as the pause depends on it. */
export type LinkFailureKind =
  | 'unreachable' // name, route, refused, cut, no answer
  | 'refused' // the peer knows us and says no: credentials, permissions, version
  | 'certificate' // the peer's certificate is not acceptable
  | 'clock' // its dates do not fit our clock, which may be the one that is wrong

export type LinkInput =
  | { readonly type: 'start' }
  | { readonly type: 'connected' }
  | { readonly type: 'failed'; readonly kind: LinkFailureKind; readonly error: EdgeError }
  | { readonly type: 'woken' }
  /** The network or the clock changed. */
  | { readonly type: 'probe' }
  /** Another upstream was reached after silence. */
  | { readonly type: 'reached-elsewhere' }
  | { readonly type: 'close' }

export type LinkEffect =
  | { readonly type: 'connect' }
  | { readonly type: 'wake'; readonly atUs: number }
  /** A silence is over: other upstreams may be reached again, too. */
  | { readonly type: 'reached' }
  | { readonly type: 'changed'; readonly state: LinkState; readonly reason: EdgeError | null }

export interface LinkPolicy extends LinkBackoffPolicy {
  /** As `maxDelayUs`, after an attempt to which nothing answered. */
  readonly silentMaxDelayUs: number
  readonly blockedRetryUs: number
  readonly clockRetryUs: number
}

export class Link {
  readonly #policy: LinkPolicy
  readonly #backoff: LinkBackoff
  #state: LinkState = 'waiting'
  #reason: EdgeError | null = null
  #failureKind: LinkFailureKind | null = null
  #wakeAtUs: number | null = null
  /** Nothing answered the last attempt, or the link ended with that. */
  #isSilent = false
  #triedElsewhereUs = Number.NEGATIVE_INFINITY

  constructor(policy: LinkPolicy, random: () => number) {
    this.#policy = policy
    this.#backoff = new LinkBackoff(policy, random)
  }

  get state(): LinkState {
    return this.#state
  }

  get reason(): EdgeError | null {
    return this.#reason
  }

  get failureKind(): LinkFailureKind | null {
    return this.#failureKind
  }

  get attempts(): number {
    return this.#backoff.attempts
  }

  get nextAttemptUs(): number | null {
    return this.#wakeAtUs
  }

  step(input: LinkInput, nowUs: number): LinkEffect[] {
    if (this.#state === 'closed') return []
    switch (input.type) {
      case 'start':
        return this.#connect()
      case 'connected':
        this.#backoff.connected(nowUs)
        this.#failureKind = null
        return this.#connected()
      case 'failed':
        return this.#failed(input.kind, input.error, nowUs)
      case 'woken':
        return this.#wakeAtUs !== null && nowUs >= this.#wakeAtUs ? this.#connect() : []
      case 'probe':
        return this.#wakeAtUs === null ? [] : this.#connect()
      case 'reached-elsewhere':
        return this.#mayTry(nowUs) ? this.#connect() : []
      case 'close':
        return [this.#enter('closed', null)]
    }
  }

  #connect(): LinkEffect[] {
    return [this.#enter('connecting', this.#reason), { type: 'connect' }]
  }

  #connected(): LinkEffect[] {
    const wasSilent = this.#isSilent
    this.#isSilent = false
    const changed = this.#enter('up', null)
    return wasSilent ? [changed, { type: 'reached' }] : [changed]
  }

  /** Where somebody hangs up, or refuses, another one's success tells nothing: two of them would try each other without end. */
  #mayTry(nowUs: number): boolean {
    const isDue = nowUs - this.#triedElsewhereUs >= this.#policy.maxDelayUs
    if (this.#state !== 'waiting' || this.#wakeAtUs === null || !this.#isSilent || !isDue) return false
    this.#triedElsewhereUs = nowUs
    return true
  }

  #failed(kind: LinkFailureKind, error: EdgeError, nowUs: number): LinkEffect[] {
    if (this.#state !== 'connecting' && this.#state !== 'up') return []
    const { maxDelayUs, silentMaxDelayUs } = this.#policy
    this.#isSilent = isSilence(error)
    const backoffUs = this.#backoff.failed(nowUs, this.#isSilent ? silentMaxDelayUs : maxDelayUs)
    const delayUs = kind === 'unreachable' ? backoffUs : this.#pauseOf(kind)
    this.#failureKind = kind
    const changed = this.#enter(kind === 'unreachable' ? 'waiting' : 'blocked', error)
    this.#wakeAtUs = nowUs + delayUs
    return [changed, { type: 'wake', atUs: this.#wakeAtUs }]
  }

  #pauseOf(kind: Exclude<LinkFailureKind, 'unreachable'>): number {
    return kind === 'clock' ? this.#policy.clockRetryUs : this.#policy.blockedRetryUs
  }

  #enter(state: LinkState, reason: EdgeError | null): LinkEffect {
    this.#state = state
    this.#reason = reason
    this.#wakeAtUs = null
    return { type: 'changed', state, reason }
  }
}
