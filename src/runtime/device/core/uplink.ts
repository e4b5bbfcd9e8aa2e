/**
 * Readings on their way in: publish, batch, series, skip, datagrams; acks, nacks, windows and rates. Pure.
 *
 * A frame is worked off in runs: consecutive readings that are stored in one append, or refused for good in one record.
 * Every append is answered in the same turn, before the next run of the frame is begun; so a refusal always concerns the
 * newest run and leaves no hole behind it.
 */
import type { EdgeError } from '../../../errors.ts'
import {
  type AckedRun,
  ALARM_WINDOW,
  DEFAULT_LIMITS,
  EDGE_CODES,
  type EdgeCodeName,
  type EdgeLimits,
  edgeCodeOf,
  type Frame,
  LANE_COUNT,
  LANES,
  MAX_SEQUENCE,
} from '../../../sdk/wire/edge/index.ts'
import { type Alias, Aliases, type AliasRefusal, shortText } from './aliases.ts'
import { DatagramIntake } from './datagram-intake.ts'
import { DeviceClock } from './device-clock.ts'
import type { Effect, LossReason, Moment, Settlement, WelcomeFacts } from './exchange.ts'
import { Lane, PROMISE, type Run } from './lane.ts'
import { LaneRates } from './lane-rates.ts'
import { type PublishFrame, readingsOf, type TimedValues } from './publish-readings.ts'
import { errorAbout, gapNack, joined, nack, wrongValue } from './replies.ts'
import type { Reading } from './stored-form.ts'

const SKIP_REASONS: readonly LossReason[] = ['skipped-overflow', 'skipped-expired', 'skipped-damaged', 'lost-by-edge']

const BEYOND_LAST = `sequences end at ${MAX_SEQUENCE}`

export interface UplinkOptions {
  readonly deviceName: string
  readonly epoch: number
  readonly limits: EdgeLimits
  /** Per lane, what the device says was acknowledged: where the log knows nothing. */
  readonly acked: readonly { readonly lane: number; readonly sequence: number }[]
  readonly welcome: WelcomeFacts
  readonly controlStream: number
  readonly nowMs: number
  /** For tests of the rules: another implementation of a lane. */
  readonly createLane?: (have: number, durable: number) => Lane
}

/** Readings of one frame, and how far they have been worked off. */
interface Work extends TimedValues {
  readonly stream: number
  readonly alias: Alias
  readonly lane: number
  /** Sequence of values[0]. */
  readonly first: number
  /** Index of the next reading. */
  at: number
  /** Counted with the first run. */
  sizeBytes: number
}

interface SentDatagram {
  readonly ticket: number
  readonly alias: Alias
  readonly number: number
}

export class Uplink {
  readonly clock = new DeviceClock()
  readonly aliases: Aliases
  readonly datagrams: DatagramIntake
  readonly #options: UplinkOptions
  readonly #lanes: readonly Lane[]
  /** Stream that carries a lane; a second one is refused while the first is open. */
  readonly #laneStreams = new Map<number, number>()
  readonly #rates: LaneRates
  readonly #laneOfTicket = new Map<number, number>()
  #work: Work | undefined
  /** The newest, until the log has answered in the same turn. */
  #datagram: SentDatagram | undefined
  #nextTicket = 1
  /** Largest ever announced: beyond it the device breaks the protocol. */
  readonly #maxWindow: { readonly bytes: number; readonly readings: number }

  constructor(options: UplinkOptions) {
    this.#options = options
    const { limits, welcome, acked, nowMs } = options
    const createLane = options.createLane ?? ((have: number, durable: number) => new Lane(have, durable))
    this.aliases = new Aliases(options.deviceName, limits.aliases)
    this.#lanes = Array.from({ length: LANE_COUNT }, (_, lane) => {
      const known = welcome.lanes.find((one) => one.lane === lane)
      if (known !== undefined) return createLane(known.have, known.durable)
      return createLane(acked.find((one) => one.lane === lane)?.sequence ?? 0, 0)
    })
    this.#rates = new LaneRates(limits, nowMs)
    this.datagrams = new DatagramIntake({ clock: this.clock, rates: this.#rates, nowMs })
    // Until it has read `welcome`, the device goes by the defaults.
    this.#maxWindow = {
      bytes: Math.max(limits.windowBytes, DEFAULT_LIMITS.windowBytes),
      readings: Math.max(limits.windowReadings, DEFAULT_LIMITS.windowReadings),
    }
  }

  /** Whether anything waits to be acknowledged. */
  get isPending(): boolean {
    return this.#lanes.some((lane) => lane.isPending)
  }

  get unackedBytes(): number {
    return this.#lanes.reduce((sum, lane) => sum + lane.unackedBytes, 0)
  }

  declare(stream: number, frame: Frame<'alias'>): Effect[] {
    const refusal = this.aliases.declare(frame)
    if (refusal !== undefined) return [errorAbout(stream, 'alias', frame.alias, refusal)]
    return [{ type: 'resolve', alias: frame.alias, topic: frame.topic, partition: frame.options?.partition }]
  }

  publish(stream: number, frame: PublishFrame, sizeBytes: number, now: Moment): Effect[] {
    const alias = this.aliases.get(frame.alias)
    if (alias === undefined) return [wrongValue(stream, frame, 'alias not declared')]
    const carrier = this.#laneStreams.get(alias.lane) ?? stream
    if (carrier !== stream) return [wrongValue(stream, frame, 'lane in use on another stream')]
    this.#laneStreams.set(alias.lane, stream)
    const readings = readingsOf(frame)
    const count = readings.values.length
    if (count > this.#options.limits.readingsPerFrame)
      return [wrongValue(stream, frame, `${count} readings in a frame`)]
    const last = frame.sequence + count - 1
    if (last > MAX_SEQUENCE) return [wrongValue(stream, frame, BEYOND_LAST)]
    const offer = this.#lane(alias.lane).offer(frame.sequence, last)
    if (offer.type === 'passed-over') return []
    if (offer.type === 'duplicate') return this.#acknowledgeAgain(stream, alias.lane, frame.sequence)
    if (offer.type === 'gap') {
      return [gapNack(stream, alias.lane, offer.expected, count)]
    }
    const excess = this.#excess(alias.lane, sizeBytes, count)
    if (excess !== undefined) return [excess]
    const at = offer.first - frame.sequence
    this.#work = { stream, alias, lane: alias.lane, first: frame.sequence, ...readings, at, sizeBytes }
    return this.#refusedAtOnce(this.#work, now) ?? this.#advance(now)
  }

  skip(stream: number, frame: Frame<'skip'>, sizeBytes: number, now: Moment): Effect[] {
    const lane = this.#lane(frame.lane)
    const last = frame.first + frame.count - 1
    if (frame.count === 0) return [wrongValue(stream, frame, 'nothing skipped')]
    if (last > MAX_SEQUENCE) return [wrongValue(stream, frame, BEYOND_LAST)]
    const offer = lane.offer(frame.first, last)
    if (offer.type === 'passed-over') return []
    if (offer.type === 'duplicate') return this.#acknowledgeAgain(stream, frame.lane, frame.first)
    if (offer.type === 'gap') {
      return [gapNack(stream, frame.lane, offer.expected, frame.count)]
    }
    // However many it gives up: it is one record in the log.
    const waitMs = this.#rates.waitMs(frame.lane, 1, sizeBytes, now)
    if (waitMs > 0) {
      const { first } = offer
      lane.hold()
      return [nack(stream, { lane: frame.lane, first, count: last - first + 1, ...overRate(waitMs) })]
    }
    if (!this.#laneStreams.has(frame.lane)) this.#laneStreams.set(frame.lane, stream)
    const reason = SKIP_REASONS[frame.why] ?? 'skipped-damaged'
    return this.#dispose(frame.lane, {
      first: offer.first,
      last,
      alias: null,
      sizeBytes: 0,
      refusal: undefined,
      reason,
    })
  }

  /** The first append of a datagram is its last: nobody waits for its promise. */
  datagram(frame: Frame<'datagram'>, now: Moment): Effect[] {
    const alias = this.aliases.get(frame.alias)
    const reading = this.datagrams.take(alias, frame, now)
    if (alias === undefined || reading === undefined) return [lostDatagram(alias, frame.number)]
    const ticket = this.#nextTicket++
    this.#datagram = { ticket, alias, number: frame.number }
    return [{ type: 'append', ticket, ...reading, tag: null }]
  }

  /** The log took the newest run. @param offset null: a full topic gave the readings up. */
  appended(ticket: number, offset: bigint | null, now: Moment): Effect[] {
    if (ticket === this.#datagram?.ticket) return this.#datagramAppended(this.#datagram, offset)
    const lane = this.#laneOfTicket.get(ticket)
    if (lane === undefined) return []
    if (offset === null) return [...this.#givenUp(lane, ticket), ...this.#advance(now)]
    this.#lane(lane).stored(ticket, offset)
    return this.#advance(now)
  }

  #datagramAppended({ alias, number }: SentDatagram, offset: bigint | null): Effect[] {
    if (offset === null) return [lostDatagram(alias, number, 'topic-full')]
    alias.datagrams.take(number)
    return []
  }

  /** Told like a refusal for good: the topic wants its senders to go on. */
  #givenUp(laneId: number, ticket: number): Effect[] {
    const { code } = EDGE_CODES.topicFull
    const run = this.#lane(laneId).givenUp(ticket, { code, text: 'the topic is full and drops what comes' })
    if (run === undefined) return []
    return [{ type: 'lost', reason: 'topic-full', lane: laneId, first: run.first, count: run.last - run.first + 1 }]
  }

  /** The log did not take the newest run. */
  appendRefused(ticket: number, error: EdgeError, now: Moment): Effect[] {
    if (ticket === this.#datagram?.ticket) return [lostDatagram(this.#datagram.alias, this.#datagram.number)]
    const laneId = this.#laneOfTicket.get(ticket)
    if (laneId === undefined) return []
    const work = this.#work
    this.#forgetTicket(ticket)
    const run = this.#lane(laneId).withdraw(ticket)
    if (run === undefined || work === undefined) return []
    work.sizeBytes = run.sizeBytes
    const { code, retryMs, after } = EDGE_CODES[edgeCodeOf(error)]
    const text = shortText(error.message)
    if (after === 'lane-held' || retryMs !== null) {
      this.#work = undefined
      const first = this.#lane(laneId).hold()
      const count = run.last - run.first + 1
      const pause = retryMs ?? EDGE_CODES.noRoom.retryMs
      return [nack(work.stream, { lane: laneId, first, count, code, retryMs: pause, text })]
    }
    const refusal = { code, text }
    const disposed = this.#dispose(laneId, { ...run, refusal, reason: 'refused' })
    return [...disposed, ...this.#advance(now)]
  }

  /** Acknowledges what became durable or failed, at most one ack a lane. */
  settled(results: readonly Settlement[]): Effect[] {
    const effects: Effect[] = []
    const done = new Map<number, { upTo: number; runs: Run[] }>()
    for (const { ticket, error } of results) {
      const laneId = this.#laneOfTicket.get(ticket)
      if (laneId === undefined) continue
      const lane = this.#lane(laneId)
      if (error === null && lane.isOrphan(ticket)) {
        return [{ type: 'close', code: EDGE_CODES.internal.code, reason: 'a later write was kept, an earlier one not' }]
      }
      if (error !== null) {
        effects.push(...this.#failed(laneId, ticket, error))
        continue
      }
      const settled = lane.settle(ticket)
      if (settled === undefined) continue
      const before = done.get(laneId)?.runs ?? []
      done.set(laneId, { upTo: settled.upTo, runs: [...before, ...settled.runs] })
    }
    for (const [laneId, { upTo, runs }] of done) effects.push(...this.#acknowledge(laneId, upTo, runs))
    return effects
  }

  /** Publishes of its lanes may come on another stream now. */
  streamEnded(stream: number): void {
    for (const [lane, carrier] of this.#laneStreams) if (carrier === stream) this.#laneStreams.delete(lane)
  }

  /** Refusals that concern all of a frame: the rate, or its alias. What an alias refuses costs a record, hence in this order. */
  #refusedAtOnce(work: Work, now: Moment): Effect[] | undefined {
    const left = work.values.length - work.at
    const waitMs = this.#rates.waitMs(work.lane, left, work.sizeBytes, now)
    const refusal = waitMs > 0 ? overRate(waitMs) : work.alias.refusal
    return refusal === undefined ? undefined : this.#refuseRest(work, refusal)
  }

  #refuseRest(work: Work, refusal: AliasRefusal): Effect[] {
    this.#work = undefined
    const lane = this.#lane(work.lane)
    const [first, last] = [work.first + work.at, work.first + work.values.length - 1]
    if (refusal.retryMs !== null) {
      lane.hold()
      return [nack(work.stream, { lane: work.lane, first, count: last - first + 1, ...refusal })]
    }
    const { alias, sizeBytes } = work
    return this.#dispose(work.lane, { first, last, alias, sizeBytes, refusal, reason: 'refused' })
  }

  /** Begins runs of the current frame until one has to be answered, or the frame is done. */
  #advance(now: Moment): Effect[] {
    const effects: Effect[] = []
    for (let work = this.#work; work !== undefined; work = this.#work) {
      if (work.at >= work.values.length) {
        this.#work = undefined
        break
      }
      const problem = problemAt(work, work.at)
      const end = endOfRun(work)
      const [first, last] = [work.first + work.at, work.first + end - 1]
      const sizeBytes = work.sizeBytes
      work.sizeBytes = 0
      if (problem === undefined) {
        effects.push(this.#append(work, end, { first, last, sizeBytes }, now))
        work.at = end
        break
      }
      work.at = end
      const name: EdgeCodeName = problem.isTooLarge ? 'readingTooLarge' : 'valueInvalid'
      const refusal = { code: EDGE_CODES[name].code, text: shortText(problem.text) }
      const run = { first, last, alias: work.alias, sizeBytes, refusal, reason: 'refused' as const }
      effects.push(...this.#dispose(work.lane, run))
    }
    return effects
  }

  #append(work: Work, end: number, range: { first: number; last: number; sizeBytes: number }, now: Moment): Effect {
    const readings: Reading[] = []
    for (let at = work.at; at < end; at++) {
      const { originUs } = this.clock.originOf(work.times[at] ?? null, now)
      readings.push({ originUs, value: work.values[at] ?? null })
    }
    const promise = work.alias.target?.promise === 'buffered' ? PROMISE.buffered : PROMISE.durable
    const ticket = this.#begin(work.lane, { ...range, alias: work.alias, promise, refusal: undefined })
    const batch = work.alias.form.pack(readings)
    return { type: 'append', ticket, alias: work.alias.id, batch, tag: this.#tag(work.lane, range) }
  }

  /** Sequences that end without a reading in the log: the log is told, so that they are never waited for again. */
  #dispose(
    lane: number,
    run: Pick<Run, 'first' | 'last' | 'alias' | 'sizeBytes' | 'refusal'> & { reason: LossReason },
  ): Effect[] {
    const { reason, first, last, alias, sizeBytes, refusal } = run
    const ticket = this.#begin(lane, { first, last, alias, sizeBytes, refusal, promise: PROMISE.durable })
    return [
      { type: 'record', ticket, tag: this.#tag(lane, run) },
      { type: 'lost', reason, lane, first, count: last - first + 1 },
    ]
  }

  #begin(lane: number, run: Omit<Run, 'ticket'>): number {
    const ticket = this.#nextTicket++
    this.#lane(lane).accept({ ...run, ticket })
    this.#laneOfTicket.set(ticket, lane)
    return ticket
  }

  #tag(lane: number, { first, last }: { first: number; last: number }) {
    return { epoch: this.#options.epoch, lane, firstSequence: first, sequenceCount: last - first + 1 }
  }

  #failed(laneId: number, ticket: number, error: EdgeError): Effect[] {
    const dropped = this.#lane(laneId).fail(ticket)
    this.#forgetTicket(ticket)
    const [failed] = dropped
    if (failed === undefined) return []
    // The frame being worked off lies behind it: it comes again with everything else.
    if (this.#work?.lane === laneId) this.#work = undefined
    const { code, retryMs } = EDGE_CODES[edgeCodeOf(error)]
    const count = failed.last - failed.first + 1
    const pause = retryMs ?? EDGE_CODES.storage.retryMs
    const text = shortText(error.message)
    return [nack(this.#streamOf(laneId), { lane: laneId, first: failed.first, count, code, retryMs: pause, text })]
  }

  #acknowledge(laneId: number, upTo: number, runs: readonly Run[]): Effect[] {
    const stream = this.#streamOf(laneId)
    const nacks: Effect[] = []
    const stored: AckedRun[] = []
    let promise: number = PROMISE.durable
    for (const run of runs) {
      this.#forgetTicket(run.ticket)
      const { alias } = run
      promise = Math.max(promise, run.promise)
      const count = run.last - run.first + 1
      if (run.refusal !== undefined) {
        nacks.push(nack(stream, { lane: laneId, first: run.first, count, retryMs: null, ...run.refusal }))
      } else if (alias?.wantsOffsets && run.offset !== undefined) {
        const partition = alias.target?.partitionId ?? 0
        stored.push({ alias: alias.id, partition, offset: run.offset, firstSequence: run.first, count })
      }
    }
    const frame: Frame = {
      type: 'ack',
      lane: laneId,
      upTo,
      promise,
      ...(stored.length > 0 ? { runs: joined(stored) } : {}),
    }
    return [...nacks, { type: 'send', stream, frame }]
  }

  /** A duplicate is answered with what is settled; what is not will be acknowledged when it is. */
  #acknowledgeAgain(stream: number, laneId: number, first: number): Effect[] {
    const lane = this.#lane(laneId)
    const frame: Frame = { type: 'ack', lane: laneId, upTo: lane.settled, promise: lane.promiseFrom(first) }
    return [{ type: 'send', stream, frame }]
  }

  /** @returns the end of the session when more is unacknowledged than was ever allowed. */
  #excess(laneId: number, sizeBytes: number, count: number): Effect | undefined {
    const isAlarm = laneId === LANES.alarm
    const group = this.#lanes.filter((_, id) => (id === LANES.alarm) === isAlarm)
    const window = isAlarm ? ALARM_WINDOW : this.#maxWindow
    const bytes = group.reduce((sum, lane) => sum + lane.unackedBytes, sizeBytes)
    const readings = group.reduce((sum, lane) => sum + lane.unackedReadings, count)
    if (bytes <= window.bytes && readings <= window.readings) return undefined
    return {
      type: 'close',
      code: EDGE_CODES.noRoom.code,
      reason: 'more unacknowledged readings than the window allows',
    }
  }

  #streamOf(lane: number): number {
    return this.#laneStreams.get(lane) ?? this.#options.controlStream
  }

  #forgetTicket(ticket: number): void {
    this.#laneOfTicket.delete(ticket)
  }

  #lane(id: number): Lane {
    const lane = this.#lanes[id]
    if (lane === undefined) throw new RangeError(`lane ${id}: the codec lets through 0 to ${LANE_COUNT - 1} only`)
    return lane
  }
}

function overRate(retryMs: number): AliasRefusal {
  return { code: EDGE_CODES.rate.code, retryMs, text: 'over the rate' }
}

function lostDatagram(alias: Alias | undefined, number: number, reason: LossReason = 'datagram-dropped'): Effect {
  return { type: 'lost', reason, lane: alias?.lane ?? 0, first: number, count: 1 }
}

function problemAt(work: Work, at: number) {
  return work.alias.form.problemOf(work.values[at] ?? null, work.alias.target?.maxPayloadBytes ?? 0)
}

/** @returns the index after the last reading that shares the fate of the one at `work.at`. */
function endOfRun(work: Work): number {
  const code = (at: number) => problemAt(work, at)?.text
  const first = code(work.at)
  let end = work.at + 1
  while (end < work.values.length && code(end) === first) end++
  return end
}
