/** The shell around one partition's forwarder: does what it says, and tells it what came of it. */
import type { Clock } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import { unpackMessages } from '../../sdk/index.ts'
import { failureKindOf, retryAfterUsOf } from '../core/classify.ts'
import { Forwarder } from '../core/forwarder.ts'
import type { Effect, ForwarderOptions, ForwarderView, Input } from '../core/forwarder-protocol.ts'
import { joinBatches, type Outgoing } from '../core/outgoing.ts'
import { isSameRecord } from '../core/record-content.ts'
import type { Route, TopicName } from '../core/route.ts'
import type { Cursor, CursorStore, DeadLetterSink, SourcePartition } from '../ports.ts'
import type { KeptBudget } from './kept-budget.ts'
import { contentInBatches } from './record-contents.ts'
import { reportEvent } from './report-event.ts'
import type { Slots } from './slots.ts'
import type { Turns } from './turns.ts'
import type { Upstream } from './upstream.ts'
import { WakeTimer } from './wake-timer.ts'

export interface RunnerOptions {
  readonly route: Route
  readonly source: TopicName
  readonly target: TopicName
  readonly partition: SourcePartition
  /** Partitions of the local topic now: the upstream topic gets as many. */
  readonly partitionCount: () => number
  readonly forwarder: Omit<ForwarderOptions, 'cursor' | 'logStart' | 'durableEnd' | 'foundEnd'>
  readonly cursors: CursorStore
  readonly deadLetters: DeadLetterSink | undefined
  readonly slots: Slots
  readonly budget: Pick<KeptBudget, 'take' | 'leftBytes'>
  readonly clock: Clock
  readonly logger: Logger
}

export class PartitionRunner {
  readonly options: RunnerOptions
  readonly #forwarder: Forwarder
  readonly #onTopicMissing: (runner: PartitionRunner) => void
  readonly #unsubscribe: () => void
  #link: { readonly upstream: Upstream; readonly turns: Turns } | null = null
  #topicIncarnation: string | null = null
  #outgoing: Outgoing | null = null
  /** The read that is under way for the slot; what an earlier one brings late must not take the place of a batch. */
  #readTicket: number | null = null
  readonly #timer: WakeTimer
  readonly #budgetTimer: WakeTimer
  /** Taken from the budget for a batch that lost its link before its turn: the next one need not pay for it again. */
  #paidBytes = 0
  #slot: 'none' | 'waiting' | 'held' = 'none'
  #withdraw: () => void = () => {}
  #isClosed = false

  /** @param onTopicMissing told when a topic that was there is not any more. */
  constructor(options: RunnerOptions, onTopicMissing: (runner: PartitionRunner) => void = () => {}) {
    this.options = options
    this.#onTopicMissing = onTopicMissing
    const { partition, route, cursors, clock } = options
    this.#timer = new WakeTimer(clock)
    this.#budgetTimer = new WakeTimer(clock)
    const { cursor, from } = heldCursor(cursors, route.name, partition)
    this.#forwarder = new Forwarder(
      {
        ...options.forwarder,
        cursor,
        // What has gone since is met as a gap when the link is up.
        logStart: from,
        durableEnd: partition.durableEnd,
        foundEnd: partition.foundEnd,
      },
      clock.monotonicUs(),
    )
    this.#unsubscribe = partition.onAppended(() => this.#appended())
  }

  get view(): ForwarderView {
    return this.#forwarder.view()
  }

  /** Which upstream topic of that name it compared itself with; null before the first time. */
  get topicIncarnation(): string | null {
    return this.#topicIncarnation
  }

  /** @param turns of this link, shared by all that use it. */
  linkUp(upstream: Upstream, turns: Turns): void {
    this.#link = { upstream, turns }
    this.#appended()
    this.#feed({ type: 'link-up' })
  }

  linkDown(error: EdgeError): void {
    this.#link = null
    this.#feed({ type: 'link-down', error })
  }

  probe(): void {
    this.#feed({ type: 'probe' })
  }

  /** Its topic is not there upstream any more: it is made anew and filled from the log. */
  topicLost(): void {
    this.#topicIncarnation = null
    this.#feed({ type: 'topic-lost' })
  }

  /** Idempotent; answers that come later find nobody. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#unsubscribe()
    this.#timer.clear()
    this.#budgetTimer.clear()
    this.#releaseSlot()
  }

  #appended(): void {
    const { logStartOffset: logStart, durableEnd } = this.options.partition
    this.#feed({ type: 'appended', logStart, durableEnd })
  }

  #feed(input: Input): void {
    if (this.#isClosed) return
    for (const effect of this.#forwarder.step(input, this.options.clock.monotonicUs())) this.#carryOut(effect)
    if (!this.#forwarder.needsSlot) this.#releaseSlot()
  }

  #carryOut(effect: Effect): void {
    const { target, partition, cursors, route } = this.options
    switch (effect.type) {
      case 'ensure-topic':
        this.#answer(effect.ticket, async (upstream) => {
          if (effect.isAnew) upstream.forgetTopic(target)
          const incarnation = await upstream.ensureTopic(target, this.options.partitionCount())
          this.#topicIncarnation = incarnation
          return { type: 'topic-ready', ticket: effect.ticket, incarnation }
        })
        return
      case 'poll-tail':
        this.#answer(effect.ticket, async (upstream) => {
          const page = await upstream.pollTail(target, partition.partitionId, effect.request)
          return { type: 'tail', ticket: effect.ticket, page }
        })
        return
      case 'compare':
        void this.#compare(effect)
        return
      case 'read':
        this.#withSlot(() => void this.#read(effect))
        return
      case 'send':
        this.#send(effect)
        return
      case 'keep-dead-letter':
        void this.#keepDeadLetter(effect)
        return
      case 'commit-cursor':
        cursors.setCursor(route.name, partition.key, effect.cursor)
        return
      case 'topic-missing':
        // Once: a topic that cannot be made is missing at every attempt.
        if (this.#topicIncarnation !== null) this.#onTopicMissing(this)
        this.#topicIncarnation = null
        return
      case 'wake':
        this.#timer.set(effect.atUs, () => this.#feed({ type: 'woken' }))
        return
      case 'report':
        reportEvent(this.options, effect.report)
        return
    }
  }

  /** Runs one question to the upstream, in its turn; its failure is an answer too. */
  #answer(ticket: number, ask: (upstream: Upstream) => Promise<Input>, suspicion = 0): void {
    const link = this.#link
    if (link === null) return // `link-down` has been told, or is about to be
    const { upstream, turns } = link
    turns.take(suspicion, () => {
      if (this.#isClosed || !this.#forwarder.awaits(ticket)) {
        turns.end()
        return
      }
      const answered = ask(upstream).then(
        (input) => this.#feed(input),
        (error) => this.#fail(ticket, toEdgeError(error)),
      )
      void answered.finally(() => turns.end())
    })
  }

  #fail(ticket: number, error: EdgeError, kind = failureKindOf(error)): void {
    const retryAfterUs = retryAfterUsOf(error)
    const failure = { kind, error, ...(retryAfterUs === undefined ? {} : { retryAfterUs }) }
    this.#feed({ type: 'failed', ticket, failure })
  }

  // ---- reading and sending -----------------------------------------------------------------------------------------------

  async #read(effect: Extract<Effect, { type: 'read' }>): Promise<void> {
    const { ticket, fromOffset, bounds } = effect
    this.#readTicket = ticket
    try {
      // What does not fit today is sent tomorrow, and may be as much as ever.
      const leftBytes = this.#leftBytes() || Number.POSITIVE_INFINITY
      const maxBytes = Math.min(bounds.maxBytes, leftBytes)
      const reading = this.options.partition.read(fromOffset, bounds.maxCount, maxBytes)
      // A hot read is used up in this very turn: its views end with it.
      const read = reading instanceof Promise ? await reading : reading
      if (this.#readTicket !== ticket) return
      const outgoing = joinBatches(read.batches, 0n, leftBytes)
      this.#outgoing = outgoing ?? null
      const nextOffset = nextAfter(outgoing, read.nextOffset, read.messageCount)
      const summary = {
        count: outgoing?.count ?? 0,
        sizeBytes: outgoing?.sizeBytes ?? 0,
        nextOffset,
        // A hole behind records that stay for the next read is met again then.
        hole: read.hole !== undefined && read.hole.end <= nextOffset ? read.hole : null,
      }
      this.#feed({ type: 'read', ticket, read: summary })
    } catch (error) {
      this.#fail(ticket, toEdgeError(error), 'busy')
    }
  }

  async #compare(effect: Extract<Effect, { type: 'compare' }>): Promise<void> {
    const { ticket, offset, content } = effect
    try {
      const reading = this.options.partition.read(offset, 1, this.options.forwarder.bounds.maxBytes)
      // As in `#read`: a hot read is used up in this very turn.
      const { batches } = reading instanceof Promise ? await reading : reading
      const here = contentInBatches(batches, offset)
      // Of what the log has lost nothing can be said.
      this.#feed({ type: 'compared', ticket, isSame: here === null || isSameRecord(content, here) })
    } catch (error) {
      this.#fail(ticket, toEdgeError(error), 'busy')
    }
  }

  #send(effect: Extract<Effect, { type: 'send' }>): void {
    const outgoing = this.#outgoing
    if (outgoing === null) return
    const leftBytes = this.#leftBytes()
    if (outgoing.count > 1 && leftBytes > 0 && outgoing.sizeBytes > leftBytes) {
      this.#feed({ type: 'over-budget', ticket: effect.ticket })
      return
    }
    const owedBytes = Math.max(0, outgoing.sizeBytes - this.#paidBytes)
    const waitUs = owedBytes === 0 ? 0 : this.options.budget.take(owedBytes)
    if (waitUs > 0) {
      this.#budgetTimer.set(this.options.clock.monotonicUs() + waitUs, () => this.#send(effect))
      return
    }
    this.#paidBytes += owedBytes
    const { target, partition } = this.options
    const { ticket, idPrefix, suspicion } = effect
    const send = async (upstream: Upstream): Promise<Input> => {
      this.#feed({ type: 'sent', ticket })
      this.#paidBytes -= outgoing.sizeBytes
      const batch = { ...outgoing.batch, idSeed: idPrefix }
      const upstreamBaseOffset = await upstream.send(target, partition.partitionId, batch)
      return { type: 'confirmed', ticket, upstreamBaseOffset }
    }
    this.#answer(ticket, send, suspicion)
  }

  /** What may be sent today without paying more than the budget has. */
  #leftBytes(): number {
    return this.options.budget.leftBytes() + this.#paidBytes
  }

  async #keepDeadLetter(effect: Extract<Effect, { type: 'keep-dead-letter' }>): Promise<void> {
    const { deadLetters, route, source, partition } = this.options
    const outgoing = this.#outgoing
    try {
      const [message] = outgoing === null ? [] : unpackMessages(outgoing.batch)
      if (message === undefined) throw new EdgeError('EDGE_INTERNAL', `no record to set aside at ${effect.offset}`)
      await deadLetters?.add({
        route: route.name,
        streamName: source.streamName,
        topicName: source.topicName,
        partitionId: partition.partitionId,
        offset: message.offset,
        payloadBytes: message.payload,
        userHeadersBytes: message.headersBytes.length === 0 ? null : message.headersBytes,
        originUs: message.originUs,
        reason: effect.reason,
      })
      this.#feed({ type: 'dead-letter-kept', ticket: effect.ticket })
    } catch (error) {
      this.#fail(effect.ticket, toEdgeError(error), 'busy')
    }
  }

  // ---- slots ------------------------------------------------------------------------------------------------------------

  #withSlot(run: () => void): void {
    if (this.#slot === 'held') {
      run()
      return
    }
    this.#withdraw()
    this.#slot = 'waiting'
    this.#withdraw = this.options.slots.acquire(() => {
      this.#slot = 'held'
      run()
    })
  }

  #releaseSlot(): void {
    if (this.#slot === 'none') return
    const wasHeld = this.#slot === 'held'
    this.#slot = 'none'
    this.#withdraw()
    this.#withdraw = () => {}
    this.#outgoing = null
    this.#readTicket = null
    this.#budgetTimer.clear()
    if (wasHeld) this.options.slots.release()
  }
}

/**
 * Retention waits for a route from its first moment on, not from the first answer of an upstream that may be days away. What
 * it takes all the same is the route's loss, also when that is found by a later process.
 *
 * @returns the cursor, unless nothing of ours can be upstream; and the first offset that the route has not done with.
 */
function heldCursor(
  cursors: CursorStore,
  route: string,
  { key, logStartOffset }: SourcePartition,
): { cursor: Cursor | undefined; from: bigint } {
  const stored = cursors.cursor(route, key)
  if (stored === undefined) {
    cursors.setCursor(route, key, { confirmedOffset: logStartOffset - 1n, upstreamOffset: null })
    return { cursor: undefined, from: logStartOffset }
  }
  const from = stored.confirmedOffset + 1n
  if (from > logStartOffset) return { cursor: stored, from: logStartOffset }
  const isNothingKnown = stored.upstreamOffset === null && (stored.incarnation ?? 0) === 0
  return { cursor: isNothingKnown ? undefined : stored, from }
}

/** What was taken, or, when a hole ended the read before any record, where the log says to go on. */
function nextAfter(outgoing: Outgoing | undefined, readNext: bigint, messageCount: number): bigint {
  if (outgoing === undefined) return readNext
  return outgoing.count === messageCount ? readNext : outgoing.nextOffset
}
