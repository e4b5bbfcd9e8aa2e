/**
 * Carries one partition upstream: exactly once, in order, across crashes of either side.
 *
 * Decides what to do next and never does it. Relies on: one send in flight per partition; answers of one connection come
 * in order; the upstream appends a send whole or not at all; local records below the durable end never change. Holds to:
 *  - S1 nothing is sent while it is unknown what the upstream holds: a link that comes up, an error, a lost answer each
 *    lead through a read of the upstream's tail;
 *  - S2 a send whose outcome is unknown may still be applied late (it sits in a buffer of the peer): it is repeated only
 *    when a tail read that began after the settle time did not show it;
 *  - S3 the cursor moves only over what the tail or an answer proved, or what was given up and counted.
 */
import type { EdgeError } from '../../errors.ts'
import { Backoff } from '../../sdk/index.ts'
import type { Cursor } from '../ports.ts'
import { Batcher } from './batcher.ts'
import { isOutcomeUnknown } from './failure.ts'
import { Forgetting } from './forgetting.ts'
import { ForwarderCounters } from './forwarder-counters.ts'
import type {
  Effect,
  Failure,
  ForwarderOptions,
  ForwarderState,
  ForwarderView,
  Input,
  Question,
  ReadSummary,
  Report,
} from './forwarder-protocol.ts'
import { KNOWN_INCARNATIONS } from './message-id.ts'
import { OffsetRanges } from './offset-ranges.ts'
import { type Finding, reconcile } from './reconcile.ts'
import { Suspicion } from './suspicion.ts'
import { type TailPage, TailScan, type TailVerdict } from './tail.ts'

const NEEDING_SLOT: ReadonlySet<ForwarderState> = new Set(['reading', 'paused', 'sending', 'quarantining'])
/** States that read the upstream's tail before anything is sent, whatever they are told. */
const LOOKS_BY_ITSELF: ReadonlySet<ForwarderState> = new Set([
  'offline',
  'resolving',
  'waiting',
  'quarantining',
  'blocked',
])

export class Forwarder {
  readonly #options: ForwarderOptions
  readonly #batcher: Batcher
  readonly #backoff: Backoff
  readonly #suspicion: Suspicion
  readonly #forgetting = new Forgetting()
  readonly #givenUp = new OffsetRanges()
  readonly #counters = new ForwarderCounters()
  /** What an earlier process may have sent ends here. */
  readonly #openedEnd: bigint
  /** So does what this one has sent: nothing of ours can be upstream from here on, but a copy of this store may have sent some. */
  #sentEnd: bigint
  #state: ForwarderState = 'offline'
  #stateSinceUs: number
  #ticket = 0
  #cursor: Cursor | undefined
  #incarnation: number
  #logStart: bigint
  #durableEnd: bigint
  #nextOffset: bigint
  #hasReconciled = false
  #scan: TailScan | null = null
  #scanStartedUs = 0
  /** Where the first of our records would land upstream: what lower bounds are counted from. */
  #upstreamBase = 0n
  #isLinkUp = false
  /** Goes down when others' messages make an answer too large for us. */
  #tailPageCount: number
  /** A send below `end` may be on its way since then. */
  #doubt: { sinceUs: number; end: bigint; count: number } | null
  #read: ReadSummary | null = null
  #readFrom = 0n
  #refusals = 0
  #deadLettersInRow = 0
  #wakeAtUs: number | null = null
  #reason: EdgeError | null = null
  #effects: Effect[] = []

  constructor(options: ForwarderOptions, nowUs: number) {
    this.#options = options
    this.#batcher = new Batcher(options.bounds)
    this.#backoff = new Backoff(options.retry, options.random)
    this.#suspicion = new Suspicion(options.maxRefusals)
    this.#stateSinceUs = nowUs
    this.#tailPageCount = options.tailPageCount
    this.#cursor = options.cursor
    this.#incarnation = options.cursor?.incarnation ?? 0
    this.#logStart = options.logStart
    this.#durableEnd = options.durableEnd
    // After a kill not all of it is known to be synced any more; it was when it was sent.
    this.#openedEnd = most(options.foundEnd, options.durableEnd)
    this.#sentEnd = this.#openedEnd
    this.#nextOffset = options.cursor === undefined ? options.logStart : options.cursor.confirmedOffset + 1n
    // An earlier process may have sent what the cursor does not know of yet.
    const mayBeInFlight = this.#openedEnd > this.#nextOffset
    this.#doubt = mayBeInFlight ? { sinceUs: nowUs, end: this.#openedEnd, count: 1 } : null
  }

  /** True while it holds, or waits for, one of the link's slots for a batch. */
  get needsSlot(): boolean {
    return NEEDING_SLOT.has(this.#state)
  }

  /** False for a question that was given up since: its answer would find nobody. */
  awaits(ticket: number): boolean {
    return ticket === this.#ticket
  }

  view(): ForwarderView {
    return {
      state: this.#state,
      stateSinceUs: this.#stateSinceUs,
      nextAttemptUs: this.#wakeAtUs,
      reason: this.#reason,
      confirmedOffset: this.#cursor?.confirmedOffset ?? null,
      nextOffset: this.#nextOffset,
      durableEnd: this.#durableEnd,
      counters: this.#counters,
    }
  }

  step(input: Input, nowUs: number): Effect[] {
    this.#effects = []
    // An answer to a question that was given up since: the tail read that followed knows better.
    if ('ticket' in input && !this.awaits(input.ticket)) return this.#effects
    switch (input.type) {
      case 'link-up':
        this.#isLinkUp = true
        if (this.#state === 'offline') this.#resolve(nowUs)
        break
      case 'link-down':
        this.#linkDown(input.error, nowUs)
        break
      case 'appended':
        this.#logStart = input.logStart
        this.#durableEnd = input.durableEnd
        if (this.#state === 'caught-up') this.#readNext(nowUs)
        break
      case 'topic-ready':
        this.#startScan(nowUs)
        break
      case 'tail':
        this.#tail(input.page, nowUs)
        break
      case 'read':
        this.#readDone(input.read, nowUs)
        break
      case 'sent':
        this.#sent(nowUs)
        break
      case 'confirmed':
        this.#confirmed(input.upstreamBaseOffset, nowUs)
        break
      case 'failed':
        this.#failed(input.failure, nowUs)
        break
      case 'dead-letter-kept':
        this.#deadLetterKept(nowUs)
        break
      case 'topic-lost':
        this.#topicLost(nowUs)
        break
      case 'woken':
        if (this.#wakeAtUs !== null && nowUs >= this.#wakeAtUs) this.#wake(nowUs)
        break
      case 'probe':
        if (this.#state === 'waiting' || this.#state === 'blocked') this.#wake(nowUs)
        break
    }
    return this.#effects
  }

  // ---- link ------------------------------------------------------------------------------------------------------------

  #linkDown(error: EdgeError, nowUs: number): void {
    this.#isLinkUp = false
    this.#forgetting.linkDown()
    // A dead letter is kept locally: it is finished first, or the record would be refused, and kept, once more.
    if (this.#state === 'quarantining') return
    if (this.#state === 'sending') this.#sendLost(error, nowUs)
    this.#enter('offline', nowUs)
    this.#ticket += 1
  }

  #resolve(nowUs: number): void {
    if (!this.#isLinkUp) {
      this.#enter('offline', nowUs)
      return
    }
    this.#enter('resolving', nowUs)
    this.#ask({ type: 'ensure-topic' })
  }

  /** What is sent from now on may reach another topic of that name: the tail is read first. */
  #topicLost(nowUs: number): void {
    if (LOOKS_BY_ITSELF.has(this.#state)) return
    if (this.#state === 'sending') this.#markDoubt(nowUs)
    this.#resolve(nowUs)
  }

  #wake(nowUs: number): void {
    if (this.#state === 'settling') this.#startScan(nowUs)
    else this.#resolve(nowUs)
  }

  // ---- doubt -----------------------------------------------------------------------------------------------------------

  #startScan(nowUs: number): void {
    this.#enter('in-doubt', nowUs)
    const prefixes = Array.from({ length: KNOWN_INCARNATIONS + this.#incarnation }, (_, index) =>
      this.#options.idPrefix(index),
    )
    const wasNeverSent = this.#wasNeverSent
    const hasCursor = this.#cursor !== undefined
    this.#scan = new TailScan({
      prefixes,
      pageCount: this.#tailPageCount,
      // Where nothing can be there, the newest message is read for its offset alone.
      maxCount: wasNeverSent ? 1 : hasCursor ? Number.MAX_SAFE_INTEGER : this.#options.tailScanMaxCount,
    })
    this.#scanStartedUs = nowUs
    this.#ask({ type: 'poll-tail', request: this.#scan.request })
  }

  get #wasNeverSent(): boolean {
    return this.#cursor === undefined && this.#openedEnd === 0n && !this.#hasReconciled
  }

  #tail(page: TailPage, nowUs: number): void {
    const verdict = this.#scan?.accept(page)
    if (verdict) this.#reconcile(verdict, nowUs)
    else if (this.#scan) this.#ask({ type: 'poll-tail', request: this.#scan.request })
  }

  #reconcile(verdict: TailVerdict, nowUs: number): void {
    const resume = reconcile({
      verdict,
      cursor: this.#cursor,
      isCursorFresh: this.#hasReconciled,
      inDoubt: this.#doubt,
      incarnation: this.#incarnation,
      logStart: this.#logStart,
      sendableEnd: most(this.#sentEnd, this.#nextOffset),
      isGivenUp: (from, end) => this.#givenUp.covers(from, end),
    })
    const doubt = this.#doubt
    if (doubt !== null && resume.nextOffset < doubt.end) {
      const settledUs = doubt.sinceUs + this.#options.settleUs
      if (this.#scanStartedUs < settledUs) {
        this.#enter('settling', nowUs)
        this.#wakeAt(settledUs)
        return
      }
    }
    this.#doubt = null
    const { finding } = resume
    const isLimitExpected = this.#wasNeverSent && finding.kind === 'limited'
    // What the first look finds was sent, and counted, by an earlier process.
    const isOurs = this.#hasReconciled && finding.kind === 'recovered' && finding.end > finding.from
    if (isOurs) this.#took(finding.end - finding.from, nowUs)
    this.#hasReconciled = true
    this.#incarnation = resume.incarnation
    // Without a cursor nothing was passed yet: what retention took since the first look is met as a gap below.
    if (this.#cursor !== undefined || verdict.kind === 'found') this.#nextOffset = resume.nextOffset
    this.#upstreamBase = verdict.upstreamEnd
    if (resume.cursor) this.#commit(resume.cursor)
    if (!isLimitExpected) this.#account(finding)
    const vain = this.#forgetting.vainReason(finding)
    if (vain === null) this.#readNext(nowUs)
    else this.#block(vain, nowUs)
  }

  #account(finding: Finding): void {
    if (finding.kind === 'agreed') return
    if (finding.kind === 'forgotten') this.#counters.resentCount += finding.end - finding.from
    // Records found after a lost answer, or a restart, are no news.
    if (finding.kind !== 'recovered') this.#report(finding)
  }

  // ---- sending ---------------------------------------------------------------------------------------------------------

  #readNext(nowUs: number): void {
    if (this.#nextOffset < this.#logStart) this.#giveUpGap(this.#logStart)
    if (this.#nextOffset >= this.#durableEnd) {
      this.#enter('caught-up', nowUs)
      return
    }
    if (!this.#isLinkUp) {
      this.#enter('offline', nowUs)
      return
    }
    this.#enter('reading', nowUs)
    this.#readFrom = this.#nextOffset
    this.#ask({ type: 'read', fromOffset: this.#nextOffset, bounds: this.#batcher.bounds })
  }

  #readDone(read: ReadSummary, nowUs: number): void {
    this.#read = read
    if (read.hole) {
      this.#counters.unreadableCount += read.hole.end - read.hole.from
      this.#report({ kind: 'hole', ...read.hole })
    }
    const verdict = this.#suspicion.verdictOn(this.#readFrom)
    if (read.count === 1 && verdict !== null) {
      this.#setAside(verdict, nowUs)
    } else if (read.count > 0) {
      // Not on its way yet: what becomes of the link until then neither leaves it in doubt nor speaks against it.
      this.#enter('paused', nowUs)
      const suspicion = this.#suspicion.of(this.#readFrom)
      this.#ask({ type: 'send', idPrefix: this.#options.idPrefix(this.#incarnation), suspicion })
    } else if (read.nextOffset > this.#nextOffset) {
      this.#skipTo(read.nextOffset)
      this.#readNext(nowUs)
    } else {
      // Nothing although the durable end says so: asked again after a pause rather than in a circle.
      this.#enter('waiting', nowUs)
      this.#wakeAt(nowUs + this.#backoff.nextDelayUs())
    }
  }

  #sent(nowUs: number): void {
    if (this.#state !== 'paused' || this.#read === null) return
    this.#enter('sending', nowUs)
    this.#sentEnd = most(this.#sentEnd, this.#read.nextOffset)
  }

  #confirmed(upstreamBaseOffset: bigint | null, nowUs: number): void {
    const read = this.#read
    if (this.#state !== 'sending' || read === null) return
    const count = BigInt(read.count)
    const lowerBound = (this.#cursor?.upstreamOffset ?? this.#upstreamBase - 1n) + count
    const told = upstreamBaseOffset === null ? lowerBound : upstreamBaseOffset + count - 1n
    this.#nextOffset = read.nextOffset
    this.#took(count, nowUs)
    this.#batcher.succeeded()
    this.#commit(this.#cursorAt(read.nextOffset - 1n, most(told, lowerBound)))
    // Offsets that went back are another topic's: the look at the tail compares them with what the cursor has.
    if (told < lowerBound) this.#resolve(nowUs)
    else this.#readNext(nowUs)
  }

  /** The upstream has `count` records more, as its answer says, or its tail where the answer was lost. */
  #took(count: bigint, nowUs: number): void {
    this.#counters.sentCount += count
    this.#counters.lastConfirmedUs = nowUs
    this.#refusals = 0
    this.#suspicion.clear()
    this.#deadLettersInRow = 0
    this.#backoff.reset()
  }

  // ---- trouble ---------------------------------------------------------------------------------------------------------

  #failed(failure: Failure, nowUs: number): void {
    const wasSending = this.#state === 'sending'
    const read = this.#read
    this.#reason = failure.error
    if (failure.kind === 'missing') this.#effects.push({ type: 'topic-missing' })
    if (wasSending && failure.kind === 'lost') this.#sendLost(failure.error, nowUs)
    else if (wasSending && isOutcomeUnknown(failure.kind)) this.#markDoubt(nowUs)
    const isPageTooLarge = this.#state === 'in-doubt' && failure.error.code === 'EDGE_FRAME_TOO_LARGE'
    if (isPageTooLarge) this.#tailPageCount = Math.max(1, Math.floor(this.#tailPageCount / 2))
    if (failure.kind === 'forbidden') this.#block(failure.error, nowUs)
    else if (wasSending && read !== null && (failure.kind === 'too-large' || failure.kind === 'invalid'))
      this.#sendRefused(failure, read, nowUs)
    else this.#pause(failure, nowUs)
  }

  /** No answer came. */
  #sendLost(error: EdgeError, nowUs: number): void {
    const read = this.#read
    this.#markDoubt(nowUs)
    if (read === null) return
    this.#batcher.lost(read.sizeBytes)
    if (error.code !== 'EDGE_CONNECTION_LOST') return
    this.#suspicion.hungUp(this.#readFrom, read.count, error)
    if (this.#suspicion.of(this.#readFrom) > 0) this.#batcher.refusedAsInvalid(read.count)
  }

  /** Smaller sends find what the upstream does take, down to the one record that it does not. */
  #sendRefused(failure: Failure, read: ReadSummary, nowUs: number): void {
    if (failure.kind === 'too-large') this.#batcher.refusedAsTooLarge(read.count, read.sizeBytes)
    else this.#batcher.refusedAsInvalid(read.count)
    if (read.count > 1) this.#startScan(nowUs)
    else this.#refused(failure, nowUs)
  }

  /** One record, alone in its send, was refused by name. */
  #refused(failure: Failure, nowUs: number): void {
    this.#refusals += 1
    if (this.#refusals < this.#options.maxRefusals) {
      this.#pause(failure, nowUs)
      return
    }
    this.#setAside(failure.error, nowUs)
  }

  #setAside(reason: EdgeError, nowUs: number): void {
    if (this.#deadLettersInRow >= this.#options.maxDeadLettersInRow) {
      this.#suspicion.reprieve()
      this.#block(reason, nowUs)
      return
    }
    this.#enter('quarantining', nowUs, reason)
    this.#ask({ type: 'keep-dead-letter', offset: this.#readFrom, reason })
  }

  #deadLetterKept(nowUs: number): void {
    const reason = this.#reason
    const read = this.#read
    if (this.#state !== 'quarantining' || read === null || reason === null) return
    this.#refusals = 0
    this.#suspicion.clear()
    this.#deadLettersInRow += 1
    this.#counters.deadLetterCount += 1n
    this.#report({ kind: 'dead-letter', offset: this.#readFrom, reason })
    this.#skipTo(read.nextOffset)
    this.#backoff.reset()
    // The link may be another one by now, to an upstream that has forgotten.
    this.#resolve(nowUs)
  }

  #pause(failure: Failure, nowUs: number): void {
    const delayUs = Math.max(this.#backoff.nextDelayUs(), failure.retryAfterUs ?? 0)
    this.#enter('waiting', nowUs, failure.error)
    this.#wakeAt(nowUs + delayUs)
  }

  #block(reason: EdgeError, nowUs: number): void {
    const isNews = this.#counters.blockedBy !== reason.code
    this.#counters.blockedBy = reason.code
    if (isNews) this.#report({ kind: 'blocked', reason })
    this.#enter('blocked', nowUs, reason)
    this.#wakeAt(nowUs + this.#options.blockedRetryUs)
  }

  #markDoubt(nowUs: number): void {
    const { nextOffset: end, count } = this.#read ?? { nextOffset: this.#nextOffset, count: 0 }
    this.#doubt = { sinceUs: nowUs, end, count }
  }

  // ---- bookkeeping -----------------------------------------------------------------------------------------------------

  /** Local retention dropped records that were not sent. */
  #giveUpGap(end: bigint): void {
    this.#counters.gapCount += end - this.#nextOffset
    this.#report({ kind: 'gap', from: this.#nextOffset, end })
    this.#skipTo(end)
  }

  /** Moves over records that are not upstream and will not be. */
  #skipTo(nextOffset: bigint): void {
    this.#givenUp.add(this.#nextOffset, nextOffset)
    this.#nextOffset = nextOffset
    this.#commit(this.#cursorAt(nextOffset - 1n, this.#cursor?.upstreamOffset ?? null))
  }

  #cursorAt(confirmedOffset: bigint, upstreamOffset: bigint | null): Cursor {
    const cursor = { confirmedOffset, upstreamOffset }
    return this.#incarnation === 0 ? cursor : { ...cursor, incarnation: this.#incarnation }
  }

  #commit(cursor: Cursor): void {
    this.#cursor = cursor
    this.#effects.push({ type: 'commit-cursor', cursor })
  }

  #enter(state: ForwarderState, nowUs: number, reason: EdgeError | null = null): void {
    if (state !== this.#state) this.#stateSinceUs = nowUs
    this.#state = state
    this.#wakeAtUs = null
    if (state === 'caught-up' || state === 'sending') this.#counters.blockedBy = null
    // The reason of the last trouble stays in sight until something was confirmed or nothing is left to do.
    if (reason !== null) this.#reason = reason
    else if (state === 'caught-up' || state === 'reading') this.#reason = null
  }

  #ask(question: Question): void {
    this.#ticket += 1
    this.#effects.push({ ...question, ticket: this.#ticket })
  }

  #wakeAt(atUs: number): void {
    this.#wakeAtUs = atUs
    this.#effects.push({ type: 'wake', atUs })
  }

  #report(report: Report): void {
    this.#effects.push({ type: 'report', report })
  }
}

const most = (left: bigint, right: bigint): bigint => (left > right ? left : right)
