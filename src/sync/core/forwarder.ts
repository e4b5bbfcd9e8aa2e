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
import { Alignment } from './alignment.ts'
import { Examination, type ExaminationStep } from './examination.ts'
import { isOutcomeUnknown } from './failure.ts'
import { Forgetting } from './forgetting.ts'
import { ForwarderCounters } from './forwarder-counters.ts'
import { ForwarderOutbox } from './forwarder-outbox.ts'
import type { Effect, Failure, ForwarderOptions, ForwarderView, Input, ReadSummary } from './forwarder-protocol.ts'
import { type ForwarderState, LOOKS_BY_ITSELF, NEEDING_SLOT } from './forwarder-state.ts'
import { KNOWN_INCARNATIONS } from './message-id.ts'
import { OffsetRanges } from './offset-ranges.ts'
import { type Finding, reconcile, withIncarnation } from './reconcile.ts'
import { Refusals } from './refusals.ts'
import { anchorOf, TailSearch } from './tail-search.ts'

export class Forwarder {
  readonly #options: ForwarderOptions
  readonly #backoff: Backoff
  readonly #refusals: Refusals
  readonly #forgetting = new Forgetting()
  readonly #givenUp = new OffsetRanges()
  readonly #counters = new ForwarderCounters()
  /** What an earlier process may have sent ends here. */
  readonly #openedEnd: bigint
  /** So does what this one has sent: nothing of ours can be upstream from here on, but a copy of this store may have sent some. */
  #sentEnd: bigint
  #state: ForwarderState = 'offline'
  #progressUs: number
  #cursor: Cursor | undefined
  #incarnation: number
  #logStart: bigint
  #durableEnd: bigint
  #nextOffset: bigint
  #hasReconciled = false
  /** Of the topic that was searched last. */
  #topicIncarnation = ''
  /** Of the one that our records were compared with last; null before the first time. */
  #comparedIncarnation: string | null = null
  /** The upstream itself was asked which topic it is, since the last send. */
  #isTopicAsked = false
  readonly #alignment: Alignment
  /** Where the first of our records would land upstream: what lower bounds are counted from. */
  #upstreamBase = 0n
  #isLinkUp = false
  readonly #search: TailSearch
  readonly #examination: Examination
  /** A send below `end` may be on its way since then. */
  #doubt: { sinceUs: number; end: bigint; count: number } | null
  #read: ReadSummary | null = null
  #readFrom = 0n
  #wakeAtUs: number | null = null
  #reason: EdgeError | null = null
  readonly #outbox = new ForwarderOutbox()

  constructor(options: ForwarderOptions, nowUs: number) {
    this.#options = options
    this.#backoff = new Backoff(options.retry, options.random)
    this.#refusals = new Refusals(options)
    this.#progressUs = nowUs
    this.#search = new TailSearch(options.tailPageCount)
    this.#examination = new Examination(this.#search)
    this.#cursor = options.cursor
    this.#incarnation = options.cursor?.incarnation ?? 0
    this.#logStart = options.logStart
    this.#durableEnd = options.durableEnd
    // After a kill not all of it is known to be synced any more; it was when it was sent.
    this.#openedEnd = most(options.foundEnd, options.durableEnd)
    this.#sentEnd = this.#openedEnd
    this.#nextOffset = options.cursor === undefined ? options.logStart : options.cursor.confirmedOffset + 1n
    this.#alignment = new Alignment(this.#nextOffset)
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
    return this.#outbox.awaits(ticket)
  }

  view(): ForwarderView {
    return {
      state: this.#state,
      progressUs: this.#progressUs,
      nextAttemptUs: this.#wakeAtUs,
      reason: this.#reason,
      confirmedOffset: this.#cursor?.confirmedOffset ?? null,
      nextOffset: this.#nextOffset,
      durableEnd: this.#durableEnd,
      counters: this.#counters,
    }
  }

  step(input: Input, nowUs: number): Effect[] {
    // An answer to a question that was given up since: the tail read that followed knows better.
    if ('ticket' in input && !this.awaits(input.ticket)) return []
    const before = this.#nextOffset
    const hadWork = before < this.#durableEnd
    this.#take(input, nowUs)
    if (this.#nextOffset > before || !hadWork) this.#progressUs = nowUs
    return this.#outbox.take()
  }

  #take(input: Input, nowUs: number): void {
    switch (input.type) {
      case 'link-up':
        this.#isLinkUp = true
        if (this.#state === 'offline') this.#resolve()
        break
      case 'link-down':
        this.#linkDown(input.error, nowUs)
        break
      case 'appended':
        this.#logStart = input.logStart
        this.#durableEnd = input.durableEnd
        if (this.#state === 'caught-up') this.#readNext()
        break
      case 'topic-ready':
        if (input.incarnation !== this.#topicIncarnation) this.#search.forget()
        this.#topicIncarnation = input.incarnation
        this.#startScan(nowUs)
        break
      case 'tail':
        this.#examined(this.#examination.accept(input.page), nowUs)
        break
      case 'compared':
        this.#examined(this.#examination.compared(input.isSame), nowUs)
        break
      case 'read':
        this.#readDone(input.read, nowUs)
        break
      case 'over-budget':
        if (this.#state === 'paused') this.#readNext()
        break
      case 'sent':
        this.#sent()
        break
      case 'confirmed':
        this.#confirmed(input.upstreamBaseOffset, nowUs)
        break
      case 'failed':
        this.#failed(input.failure, nowUs)
        break
      case 'dead-letter-kept':
        this.#deadLetterKept()
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
  }

  // ---- link ------------------------------------------------------------------------------------------------------------

  #linkDown(error: EdgeError, nowUs: number): void {
    this.#isLinkUp = false
    this.#forgetting.linkDown()
    // A dead letter is kept locally: it is finished first, or the record would be refused, and kept, once more.
    if (this.#state === 'quarantining') return
    if (this.#state === 'sending') this.#sendLost(error, nowUs)
    if (this.#state === 'in-doubt') this.#search.failed(error.code)
    this.#enter('offline')
    this.#outbox.giveUp()
  }

  #resolve(isAnew = false): void {
    if (!this.#isLinkUp) {
      this.#enter('offline')
      return
    }
    this.#enter('resolving')
    this.#isTopicAsked = isAnew
    this.#outbox.ask({ type: 'ensure-topic', isAnew })
  }

  /** What is sent from now on may reach another topic of that name: the tail is read first. */
  #topicLost(nowUs: number): void {
    if (LOOKS_BY_ITSELF.has(this.#state)) return
    if (this.#state === 'sending') this.#markDoubt(nowUs)
    this.#resolve()
  }

  #wake(nowUs: number): void {
    if (this.#state === 'settling') this.#startScan(nowUs)
    else this.#resolve()
  }

  // ---- doubt -----------------------------------------------------------------------------------------------------------

  #startScan(nowUs: number): void {
    this.#enter('in-doubt')
    const { idPrefix, tailScanMaxCount } = this.#options
    const prefixes = Array.from({ length: KNOWN_INCARNATIONS + this.#incarnation }, (_, index) => idPrefix(index))
    // Where nothing can be there, the newest message is read for its offset alone.
    const maxCount = this.#wasNeverSent ? 1 : tailScanMaxCount
    const anchor = anchorOf(this.#cursor, this.#hasReconciled && this.#doubt === null)
    const known = {
      incarnation: this.#incarnation,
      cursor: this.#cursor,
      logStart: this.#logStart,
      sendableEnd: most(this.#sentEnd, this.#nextOffset),
    }
    this.#examined(this.#examination.begin({ prefixes, maxCount, anchor }, { prefixes, ...known }, nowUs), nowUs)
  }

  get #wasNeverSent(): boolean {
    return this.#cursor === undefined && this.#openedEnd === 0n && !this.#hasReconciled
  }

  #examined(step: ExaminationStep | null, nowUs: number): void {
    if (step === null) return
    if (step.type === 'done') this.#reconcile(step, nowUs)
    else if (step.type === 'poll-tail' || step.offset < this.#durableEnd) this.#outbox.ask(step)
    // Until it can be read nothing lies behind it that could be sent.
    else this.#settleUntil(nowUs + this.#options.settleUs)
  }

  #reconcile({ verdict, partsAt }: Extract<ExaminationStep, { type: 'done' }>, nowUs: number): void {
    const resume = reconcile({
      verdict,
      partsAt,
      cursor: this.#cursor,
      isCursorFresh: this.#hasReconciled,
      isTopicNew: this.#hasReconciled && this.#topicIncarnation !== this.#comparedIncarnation,
      alignment: this.#alignment,
      back: (end, count) => this.#givenUp.back(end, count),
      inDoubt: this.#doubt,
      incarnation: this.#incarnation,
      logStart: this.#logStart,
      isGivenUp: (from, end) => this.#givenUp.covers(from, end),
    })
    const doubt = this.#doubt
    if (doubt !== null && resume.nextOffset < doubt.end) {
      const settledUs = doubt.sinceUs + this.#options.settleUs
      if (this.#search.startedUs < settledUs) {
        this.#settleUntil(settledUs)
        return
      }
    }
    const { finding } = resume
    // Whether it is the same topic decides how much is sent under new ids; what the link remembers of it may be old.
    if (resume.incarnation > this.#incarnation && finding.kind === 'forgotten' && !this.#isTopicAsked) {
      this.#resolve(true)
      return
    }
    this.#doubt = null
    this.#comparedIncarnation = this.#topicIncarnation
    const isLimitExpected = this.#wasNeverSent && finding.kind === 'limited'
    // What the first look finds was sent, and counted, by an earlier process.
    const isOurs = this.#hasReconciled && finding.kind === 'recovered' && finding.end > finding.from
    if (isOurs) this.#took(finding.end - finding.from, nowUs)
    this.#hasReconciled = true
    this.#incarnation = resume.incarnation
    // Without a cursor nothing was passed yet: what retention took since the first look is met as a gap below.
    if (this.#cursor !== undefined || verdict.kind === 'found') this.#nextOffset = resume.nextOffset
    this.#alignment.settled(this.#nextOffset)
    this.#upstreamBase = verdict.upstreamEnd
    if (resume.cursor) this.#commit(resume.cursor)
    if (!isLimitExpected) this.#account(finding)
    const vain = this.#forgetting.vainReason(finding, this.#nextOffset)
    if (vain === null) this.#readNext()
    else this.#block(vain, nowUs)
  }

  #settleUntil(atUs: number): void {
    this.#enter('settling')
    this.#wakeAt(atUs)
  }

  #account(finding: Finding): void {
    if (finding.kind === 'agreed') return
    if (finding.kind === 'forgotten') this.#counters.resentCount += finding.end - finding.from
    // Records found after a lost answer, or a restart, are no news.
    if (finding.kind !== 'recovered') this.#outbox.report(finding)
  }

  // ---- sending ---------------------------------------------------------------------------------------------------------

  #readNext(): void {
    if (this.#nextOffset < this.#logStart) this.#giveUpGap(this.#logStart)
    if (this.#nextOffset >= this.#durableEnd) {
      this.#enter('caught-up')
      return
    }
    if (!this.#isLinkUp) {
      this.#enter('offline')
      return
    }
    this.#enter('reading')
    this.#readFrom = this.#nextOffset
    this.#outbox.ask({ type: 'read', fromOffset: this.#nextOffset, bounds: this.#refusals.bounds })
  }

  #readDone(read: ReadSummary, nowUs: number): void {
    this.#read = read
    const verdict = this.#refusals.verdictOn(this.#readFrom)
    if (read.count === 1 && verdict !== null) {
      this.#setAside(verdict, nowUs)
    } else if (read.count > 0) {
      // Not on its way yet: what becomes of the link until then neither leaves it in doubt nor speaks against it.
      this.#enter('paused')
      const suspicion = this.#refusals.suspicionOf(this.#readFrom)
      this.#outbox.ask({ type: 'send', idPrefix: this.#options.idPrefix(this.#incarnation), suspicion })
    } else if (read.nextOffset > this.#nextOffset) {
      this.#passHole(read)
      this.#skipTo(read.nextOffset)
      this.#readNext()
    } else {
      // Nothing although the durable end says so: asked again after a pause rather than in a circle.
      this.#enter('waiting')
      this.#wakeAt(nowUs + this.#backoff.nextDelayUs())
    }
  }

  #sent(): void {
    if (this.#state !== 'paused' || this.#read === null) return
    this.#enter('sending')
    this.#search.sent(this.#read.count, this.#read.sizeBytes)
    this.#sentEnd = most(this.#sentEnd, this.#read.nextOffset)
    this.#isTopicAsked = false
  }

  #confirmed(upstreamBaseOffset: bigint | null, nowUs: number): void {
    const read = this.#read
    if (this.#state !== 'sending' || read === null) return
    const count = BigInt(read.count)
    const lowerBound = (this.#cursor?.upstreamOffset ?? this.#upstreamBase - 1n) + count
    const told = upstreamBaseOffset === null ? null : upstreamBaseOffset + count - 1n
    this.#passHole(read)
    if (read.hole !== null) this.#givenUp.add(read.hole.from, read.hole.end)
    this.#nextOffset = read.nextOffset
    this.#took(count, nowUs)
    this.#refusals.answered()
    this.#commit(this.#cursorAt(read.nextOffset - 1n, most(told ?? lowerBound, lowerBound)))
    this.#alignment.confirmed(lowerBound, told, this.#nextOffset)
    const isLower = this.#alignment.missingCount > 0n
    // Something is missing before these records, and the look at the tail tells what.
    if (isLower || this.#forgetting.isSuspected) this.#resolve(isLower)
    else this.#readNext()
  }

  /** The upstream has `count` records more, as its answer says, or its tail where the answer was lost. */
  #took(count: bigint, nowUs: number): void {
    this.#counters.sentCount += count
    this.#counters.lastConfirmedUs = nowUs
    this.#refusals.took()
    this.#backoff.reset()
  }

  // ---- trouble ---------------------------------------------------------------------------------------------------------

  #failed(failure: Failure, nowUs: number): void {
    const wasSending = this.#state === 'sending'
    const read = this.#read
    this.#reason = failure.error
    if (failure.kind === 'missing') this.#outbox.topicMissing()
    if (wasSending && failure.kind === 'lost') this.#sendLost(failure.error, nowUs)
    else if (wasSending && isOutcomeUnknown(failure.kind)) this.#markDoubt(nowUs)
    if (this.#state === 'in-doubt') this.#search.failed(failure.error.code)
    if (failure.kind === 'forbidden') this.#block(failure.error, nowUs)
    else if (wasSending && read !== null && (failure.kind === 'too-large' || failure.kind === 'invalid'))
      this.#sendRefused(failure, read, nowUs)
    else this.#pause(failure, nowUs)
  }

  /** No answer came. */
  #sendLost(error: EdgeError, nowUs: number): void {
    this.#markDoubt(nowUs)
    if (this.#read !== null) this.#refusals.lost(this.#readFrom, this.#read, error)
  }

  #sendRefused(failure: Failure, read: ReadSummary, nowUs: number): void {
    const next = this.#refusals.refused(failure.kind, read)
    if (next === 'try-smaller') this.#startScan(nowUs)
    else if (next === 'try-later') this.#pause(failure, nowUs)
    else this.#setAside(failure.error, nowUs)
  }

  #setAside(reason: EdgeError, nowUs: number): void {
    if (!this.#refusals.mayGiveUp()) {
      this.#block(reason, nowUs)
      return
    }
    this.#enter('quarantining', reason)
    this.#outbox.ask({ type: 'keep-dead-letter', offset: this.#readFrom, reason })
  }

  #deadLetterKept(): void {
    const reason = this.#reason
    const read = this.#read
    if (this.#state !== 'quarantining' || read === null || reason === null) return
    this.#refusals.gaveUp()
    this.#counters.deadLetterCount += 1n
    this.#outbox.report({ kind: 'dead-letter', offset: this.#readFrom, reason })
    this.#passHole(read)
    this.#skipTo(read.nextOffset)
    this.#backoff.reset()
    // The link may be another one by now, to an upstream that has forgotten.
    this.#resolve()
  }

  #pause(failure: Failure, nowUs: number): void {
    const delayUs = Math.max(this.#backoff.nextDelayUs(), failure.retryAfterUs ?? 0)
    this.#enter('waiting', failure.error)
    this.#wakeAt(nowUs + delayUs)
  }

  #block(reason: EdgeError, nowUs: number): void {
    const isNews = this.#counters.blockedBy !== reason.code
    this.#counters.blockedBy = reason.code
    if (isNews) this.#outbox.report({ kind: 'blocked', reason })
    this.#enter('blocked', reason)
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
    this.#outbox.report({ kind: 'gap', from: this.#nextOffset, end })
    this.#skipTo(end)
  }

  /** What is read anew, as the first read was not sent, has the same hole. */
  #passHole({ hole }: ReadSummary): void {
    if (hole === null) return
    this.#counters.unreadableCount += hole.end - hole.from
    this.#outbox.report({ kind: 'hole', ...hole })
  }

  /** Moves over records that are not upstream and will not be. */
  #skipTo(nextOffset: bigint): void {
    this.#givenUp.add(this.#nextOffset, nextOffset)
    this.#nextOffset = nextOffset
    this.#commit(this.#cursorAt(nextOffset - 1n, this.#cursor?.upstreamOffset ?? null))
  }

  #cursorAt(confirmedOffset: bigint, upstreamOffset: bigint | null): Cursor {
    return withIncarnation({ confirmedOffset, upstreamOffset }, this.#incarnation)
  }

  #commit(cursor: Cursor): void {
    this.#cursor = cursor
    this.#outbox.commit(cursor)
  }

  #enter(state: ForwarderState, reason: EdgeError | null = null): void {
    this.#state = state
    this.#wakeAtUs = null
    if (state === 'caught-up' || state === 'sending') this.#counters.blockedBy = null
    // The reason of the last trouble stays in sight until something was confirmed or nothing is left to do.
    if (reason !== null) this.#reason = reason
    else if (state === 'caught-up' || state === 'reading') this.#reason = null
  }

  #wakeAt(atUs: number): void {
    this.#wakeAtUs = atUs
    this.#outbox.wakeAt(atUs)
  }
}

const most = (left: bigint, right: bigint): bigint => (left > right ? left : right)
