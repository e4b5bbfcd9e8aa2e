/**
 * Everything that belongs to one upstream: its link, its budget, its slots and the partitions that go there. Upstreams
 * share nothing, so that one that is dead for a day costs another no delay.
 */
import { US_MS } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { linkFailureKindOf } from '../core/classify.ts'
import { Link, type LinkEffect, type LinkInput } from '../core/link.ts'
import type { UpstreamSettings } from '../options.ts'
import type { SyncPorts } from '../ports.ts'
import { KeptBudget } from './kept-budget.ts'
import { PartitionRunner, type RunnerOptions } from './partition-runner.ts'
import { Slots } from './slots.ts'
import { reportTopicMissing, TopicWatch } from './topic-watch.ts'
import { Turns } from './turns.ts'
import type { OpenUpstream, Upstream } from './upstream.ts'
import { WakeTimer } from './wake-timer.ts'

export class UpstreamLoop {
  readonly settings: UpstreamSettings
  readonly budget: KeptBudget
  readonly slots: Slots
  readonly #ports: SyncPorts
  readonly #open: OpenUpstream
  readonly #link: Link
  readonly #runners = new Map<string, PartitionRunner>()
  readonly #abort = new AbortController()
  /** Told when a silence is over: others may be worth a try then. */
  readonly #onReached: () => void
  readonly #topics: TopicWatch
  #upstream: Upstream | null = null
  #turns = new Turns()
  readonly #timer: WakeTimer
  /** Since when each attempt has come to a link, however short, and no budget held anything back; null: the last one came to none. */
  #movableSinceUs: number | null = null
  #isStalled = false
  #lastBlocked = ''
  /** The log's last word about the link is that it stands. */
  #isToldUp = false
  failureCount = 0

  constructor(settings: UpstreamSettings, ports: SyncPorts, open: OpenUpstream, onReached: () => void) {
    const { clock, random = Math.random } = ports
    this.settings = settings
    this.#ports = ports
    this.#open = open
    this.#onReached = onReached
    this.#timer = new WakeTimer(clock)
    this.budget = new KeptBudget(settings, ports.budgets, clock)
    const { name: upstreamName, topicCheckIntervalMs: intervalMs } = settings
    this.#topics = new TopicWatch({ upstreamName, intervalMs, logger: ports.logger }, clock.monotonicUs())
    this.slots = new Slots(settings.maxInFlight)
    this.#link = new Link(
      {
        minDelayUs: settings.retryDelayMinMs * US_MS,
        maxDelayUs: settings.retryDelayMaxMs * US_MS,
        silentMaxDelayUs: settings.retryDelaySilentMaxMs * US_MS,
        stableAfterUs: settings.stableAfterMs * US_MS,
        blockedRetryUs: settings.blockedRetryMs * US_MS,
        clockRetryUs: settings.clockRetryMs * US_MS,
      },
      random,
    )
  }

  get link(): Readonly<Pick<Link, 'state' | 'reason' | 'failureKind' | 'attempts' | 'nextAttemptUs'>> {
    return this.#link
  }

  get upstream(): Pick<Upstream, 'protocol' | 'peer'> | null {
    return this.#upstream
  }

  get runners(): Iterable<PartitionRunner> {
    return this.#runners.values()
  }

  start(): void {
    this.#feed({ type: 'start' })
  }

  has(name: string): boolean {
    return this.#runners.has(name)
  }

  add(name: string, options: RunnerOptions): void {
    const runner = new PartitionRunner(options, (missing) => this.#topicMissing(missing))
    this.#runners.set(name, runner)
    if (this.#upstream) runner.linkUp(this.#upstream, this.#turns)
  }

  /** Ends the partitions that `isWanted` does not name. */
  keepOnly(isWanted: (name: string) => boolean): void {
    for (const [name, runner] of this.#runners) {
      if (isWanted(name)) continue
      runner.close()
      this.#runners.delete(name)
      // Another partition that still goes there asks once more.
      this.#upstream?.forgetTopic(runner.options.target)
    }
  }

  /** Another upstream was reached after silence: this one may be, too. */
  reachedElsewhere(): void {
    this.#feed({ type: 'reached-elsewhere' })
  }

  /** Ends all pauses: the network or the clock changed. */
  probe(): void {
    this.#feed({ type: 'probe' })
    if (this.#link.state === 'up') for (const runner of this.#runners.values()) runner.probe()
  }

  /** Looks whether work is there and nothing moves, which it says once, and whether the topics are still there. */
  watch(): void {
    const nowUs = this.#ports.clock.monotonicUs()
    if (this.#upstream !== null) void this.#topics.look(this.#upstream, this.#turns, [...this.#runners.values()], nowUs)
    if (this.#movableSinceUs !== null && this.budget.pause() !== null) this.#movableSinceUs = nowUs
    const isStalled = this.#isStuck(nowUs)
    if (isStalled && !this.#isStalled) this.#ports.logger.warn('sync.stalled', { upstream: this.settings.name })
    this.#isStalled = isStalled
  }

  /** Also on links that come and go: one that is never up for long must not pass for one that carries. */
  #isStuck(nowUs: number): boolean {
    const sinceUs = this.#movableSinceUs
    if (sinceUs === null) return false
    const limitUs = this.settings.stalledAfterMs * US_MS
    return [...this.#runners.values()].some(({ view }) => {
      return view.nextOffset < view.durableEnd && nowUs - Math.max(view.progressUs, sinceUs) > limitUs
    })
  }

  /** Idempotent. What is on its way is left to the upstream: the next start reads its tail. */
  async close(error: EdgeError): Promise<void> {
    this.#feed({ type: 'close' })
    this.#abort.abort()
    this.#timer.clear()
    for (const runner of this.#runners.values()) runner.close()
    this.#upstream?.abort(error)
    this.#upstream = null
    await this.budget.close()
  }

  /** The next one to send has the topic made anew: by then each of its partitions must know that it is another one. */
  #topicMissing(missing: PartitionRunner): void {
    const { target } = missing.options
    reportTopicMissing(this.settings.name, target, this.#ports.logger)
    for (const runner of this.#runners.values()) {
      const { streamName, topicName } = runner.options.target
      const isSame = streamName === target.streamName && topicName === target.topicName
      if (isSame && runner !== missing) runner.topicLost()
    }
  }

  #feed(input: LinkInput): void {
    for (const effect of this.#link.step(input, this.#ports.clock.monotonicUs())) this.#carryOut(effect)
  }

  #carryOut(effect: LinkEffect): void {
    switch (effect.type) {
      case 'connect':
        void this.#connect()
        return
      case 'wake':
        this.#timer.set(effect.atUs, () => this.#feed({ type: 'woken' }))
        return
      case 'reached':
        this.#onReached()
        return
      case 'changed':
        this.#changed(effect)
        return
    }
  }

  async #connect(): Promise<void> {
    const turns = new Turns()
    let upstream: Upstream
    try {
      upstream = await this.#open(this.#abort.signal, turns)
    } catch (cause) {
      const error = toEdgeError(cause)
      this.#movableSinceUs = null
      this.#feed({ type: 'failed', kind: linkFailureKindOf(error), error })
      return
    }
    if (this.#link.state !== 'connecting') {
      upstream.abort(toEdgeError(new Error('not wanted any more')))
      return
    }
    this.#upstream = upstream
    this.#movableSinceUs ??= this.#ports.clock.monotonicUs()
    this.#turns = turns
    this.#feed({ type: 'connected' })
    const error = await upstream.closed
    if (this.#upstream !== upstream) return
    this.#upstream = null
    this.#feed({ type: 'failed', kind: linkFailureKindOf(error), error })
  }

  #changed({ state, reason }: Extract<LinkEffect, { type: 'changed' }>): void {
    const { logger } = this.#ports
    const fields = {
      upstream: this.settings.name,
      ...(reason ? { error_code: reason.code, reason: reason.message } : {}),
    }
    if (state === 'up' && this.#upstream) {
      const { protocol, peer } = this.#upstream
      this.#lastBlocked = ''
      this.#isToldUp = true
      logger.info('sync.link.up', { upstream: this.settings.name, protocol, peer })
      for (const runner of this.#runners.values()) runner.linkUp(this.#upstream, this.#turns)
      return
    }
    if (state === 'connecting') return
    if (state !== 'closed') this.failureCount += 1
    const error = reason ?? new EdgeError('EDGE_SHUTTING_DOWN', 'sync was closed')
    for (const runner of this.#runners.values()) runner.linkDown(error)
    // The end of a link is news, and the first failure of a series; the attempts after it are in the state.
    if (state === 'waiting' && (this.#isToldUp || this.#link.attempts <= 1)) logger.warn('sync.link.down', fields)
    this.#isToldUp = false
    if (state === 'blocked') this.#reportBlocked(fields)
  }

  #reportBlocked(fields: { readonly upstream: string; readonly error_code?: string; readonly reason?: string }): void {
    const news = `${this.#link.failureKind} ${fields.error_code}`
    if (news === this.#lastBlocked) return
    this.#lastBlocked = news
    this.#ports.logger.error('sync.link.blocked', { ...fields, kind: this.#link.failureKind })
  }
}
