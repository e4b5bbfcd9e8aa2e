/**
 * A device's side of the edge protocol, without clock, randomness or socket: what to send next, and what an answer means.
 *
 * Holds to: a reading keeps its sequence and its bytes for ever, so that a resend is recognised; of each lane nothing
 * overtakes a held reading; unacknowledged bytes and readings stay within the window that the edge announced. Pure. @see
 * docs/protocol/edge.md.
 */

import { EdgeError } from '../../errors.ts'
import { SDK_DEFAULTS } from '../defaults.ts'
import {
  ALARM_WINDOW,
  type Auth,
  DEFAULT_LIMITS,
  EDGE_CODES,
  type EdgeLimits,
  encodeBareFrame,
  encodeFrame,
  FIRST_FLIGHT_BYTES,
  FRAMES,
  type Frame,
  type IgnorableFrame,
  LANE_COUNT,
  LANES,
  MAX_ALIAS,
  PROTOCOL_VERSION,
  type StartFrom,
  traitsOfCode,
  type Value,
  type When,
} from '../wire/edge/index.ts'
import { refuseLarger, refuseUnreadable } from './frame-checks.ts'
import { type LaneBounds, type LaneEntry, LaneQueue } from './lane-queue.ts'
import { fitsWindow, windowsOf } from './lane-windows.ts'
import { Subscriptions } from './subscriptions.ts'

/** Lanes that share a window take each frame that is not too large by itself. */
const NO_WINDOW = { bytes: Number.POSITIVE_INFINITY, readings: Number.POSITIVE_INFINITY }

export type AliasKind = 'bytes' | 'senml-cbor' | 'cbor' | 'numbers'
export type OverflowPolicy = 'reject' | 'drop-oldest'
type AliasOptions = NonNullable<Frame<'alias'>['options']>
type SubscribeOptions = NonNullable<Frame<'subscribe'>['options']>

export interface DeviceIdentity {
  readonly name: string
  readonly auth: Auth
  /** 32 random bits, new whenever the numbering does not continue. */
  readonly epoch: number
  readonly boot?: number
  readonly firmware?: string
}

export interface DeviceCoreOptions {
  readonly identity: DeviceIdentity
  readonly bounds: LaneBounds
  readonly overflow: OverflowPolicy
  readonly maxFrameBytes: number
}

/** What happened; the shell tells the program. */
export type DeviceEvent =
  | { readonly type: 'welcome'; readonly session: number; readonly limits: EdgeLimits }
  | { readonly type: 'acked'; readonly lane: number; readonly upTo: number; readonly promise: 'durable' | 'buffered' }
  | {
      readonly type: 'refused'
      readonly lane: number
      readonly first: number
      readonly count: number
      readonly error: EdgeError
    }
  | { readonly type: 'dropped'; readonly lane: number; readonly first: number; readonly count: number }
  | { readonly type: 'message'; readonly message: Frame<'message'> }
  | { readonly type: 'subscribed'; readonly subscription: number; readonly next: bigint }
  | { readonly type: 'subscription-ended'; readonly subscription: number; readonly error: EdgeError | null }
  | { readonly type: 'time'; readonly time: NonNullable<Frame<'pong'>['time']>; readonly sentUs: number }
  | { readonly type: 'error'; readonly error: EdgeError }
  /** The session ends; the edge asks to come back no sooner. */
  | { readonly type: 'bye'; readonly error: EdgeError | null; readonly pauseMs: number }

interface Alias {
  readonly frame: Frame<'alias'>
  readonly lane: number
  datagramNumber: number
}

const KINDS: Readonly<Record<AliasKind, number>> = { bytes: 0, 'senml-cbor': 1, cbor: 2, numbers: 3 }
const MS_US = 1000
/** A lane that was held goes on so soon after its alias stands: at once, an edge that refuses again would be asked without end. */
const AFTER_ALIAS_MS = 1000

export class DeviceCore {
  readonly #options: DeviceCoreOptions
  readonly #lanes: readonly LaneQueue[]
  readonly #aliases: Alias[] = []
  readonly #subscriptions = new Subscriptions()
  readonly #control: Uint8Array[] = []
  #limits: EdgeLimits = DEFAULT_LIMITS
  #windows = windowsOf(DEFAULT_LIMITS)
  #isOpen = false
  #isWelcome = false
  #flightBytes = 0
  #pingNumber = 0
  readonly #pings = new Map<number, number>()
  #lastSentUs = 0
  #lastReceivedUs = 0
  /** When the oldest frame was sent after which nothing has come; 0 for none. */
  #askedUs = 0

  constructor(options: DeviceCoreOptions) {
    this.#options = options
    this.#lanes = Array.from({ length: LANE_COUNT }, (_, lane) => new LaneQueue(lane, options.bounds))
  }

  get isReady(): boolean {
    return this.#isWelcome
  }

  /** Readings queued and not acknowledged. */
  get pendingReadings(): number {
    return this.#lanes.reduce((sum, lane) => sum + lane.queuedReadings, 0)
  }

  // ---- what the program asks ---------------------------------------------------------------------------------------------

  /**
   * @param topic as `stream/topic`.
   * @returns number of the alias.
   * @throws {EdgeError} EDGE_LIMIT_REACHED, EDGE_READING_INVALID for what no edge can read.
   */
  declare(topic: string, kind: AliasKind, options: AliasOptions = {}): number {
    const alias = this.#aliases.length
    const most = Math.min(this.#limits.aliases, MAX_ALIAS + 1)
    if (alias >= most) throw new EdgeError('EDGE_LIMIT_REACHED', `aliases: expected at most ${most}`)
    const frame: Frame<'alias'> = { type: 'alias', alias, topic, kind: KINDS[kind], options }
    const bytes = encodeFrame(frame)
    refuseUnreadable(bytes)
    this.#aliases.push({ frame, lane: options.lane ?? LANES.live, datagramNumber: 0 })
    if (this.#isOpen) this.#control.push(bytes)
    return alias
  }

  /**
   * Queues one reading, or several that share a frame.
   *
   * @param build makes the frame from the sequence it gets.
   * @throws {EdgeError} EDGE_BACKPRESSURE when the queue is full and the policy is `reject`, EDGE_FRAME_TOO_LARGE for what no
   *   edge would take, EDGE_READING_INVALID for what none can read: NaN, no value at all.
   */
  publish(
    alias: number,
    count: number,
    build: (sequence: number) => Frame,
  ): { lane: number; first: number; dropped: DeviceEvent[] } {
    const queue = this.#queueOf(alias)
    const first = queue.nextSequence
    const frameBytes = encodeFrame(build(first))
    const { maxFrameBytes, readingsPerFrame } = this.#limits
    const window = queue.lane === LANES.alarm ? ALARM_WINDOW : NO_WINDOW
    refuseLarger('bytes', frameBytes.length, Math.min(maxFrameBytes, window.bytes))
    refuseLarger('readings', count, Math.min(readingsPerFrame, window.readings))
    refuseUnreadable(frameBytes)
    const ranges = this.#roomFor(queue, count, frameBytes.length)
    if (ranges === null) {
      throw new EdgeError('EDGE_BACKPRESSURE', `lane ${queue.lane}: ${queue.queuedReadings} readings wait already`)
    }
    queue.add(alias, count, frameBytes)
    const dropped = ranges.map((range): DeviceEvent => ({ type: 'dropped', lane: queue.lane, ...range }))
    return { lane: queue.lane, first, dropped }
  }

  /** @returns what was given up for it; null when it gets no room. */
  #roomFor(queue: LaneQueue, count: number, sizeBytes: number): { first: number; count: number }[] | null {
    if (queue.hasRoomFor(count, sizeBytes)) return []
    return this.#options.overflow === 'drop-oldest' ? queue.makeRoomFor(count, sizeBytes) : null
  }

  /** @returns a bare frame for a datagram, or null when it must not be sent now. */
  datagram(alias: number, time: When, value: Value): Uint8Array | null {
    const declared = this.#aliasOf(alias)
    if (!this.#isWelcome || this.#limits.maxDatagramBytes === 0) return null
    declared.datagramNumber += 1
    const bytes = encodeBareFrame({ type: 'datagram', alias, number: declared.datagramNumber, time, value })
    return bytes.length <= this.#limits.maxDatagramBytes ? bytes : null
  }

  subscribe(
    topic: string,
    from: StartFrom,
    window: { bytes: number; messages: number },
    options: SubscribeOptions = {},
  ): number {
    const frame = this.#subscriptions.add({ topic, from, window, options }, this.#limits.subscriptions)
    if (this.#isOpen) this.#control.push(encodeFrame(frame))
    return frame.subscription
  }

  /** Answers a message: 0 taken (all up to it), 1 done, 2 failed, 3 refused, 4 expired, 5 unknown command, 6 superseded. */
  result(subscription: number, offset: bigint, status: number, body?: Uint8Array): void {
    const frame: Frame<'result'> = { type: 'result', subscription, offset, status, ...(body ? { body } : {}) }
    if (this.#isOpen) this.#control.push(encodeFrame(frame))
  }

  unsubscribe(subscription: number, nowUs: number, uptimeMs: number): void {
    const left = this.#subscriptions.remove(subscription)
    if (left === null || !this.#isOpen) return
    this.#control.push(encodeFrame({ type: 'end', subscription }))
    if (!left.isOver) this.#subscriptions.reserve(subscription, this.#ping(nowUs, uptimeMs))
  }

  bye(pauseMs: number): void {
    if (this.#isOpen) this.#control.push(encodeFrame({ type: 'bye', code: 0, pauseMs }))
  }

  // ---- session -----------------------------------------------------------------------------------------------------------

  /** A stream is open: what is sent first is queued; fetch it with `take`. */
  opened(nowUs: number, uptimeMs: number): void {
    this.#isOpen = true
    this.#isWelcome = false
    this.#flightBytes = 0
    this.#limits = DEFAULT_LIMITS
    this.#windows = windowsOf(DEFAULT_LIMITS)
    this.#lastReceivedUs = nowUs
    this.#askedUs = 0
    this.#pings.clear()
    this.#control.length = 0
    this.#control.push(encodeFrame(this.#hello(uptimeMs)))
    for (const alias of this.#aliases) {
      alias.datagramNumber = 0
      this.#control.push(encodeFrame(alias.frame))
    }
    for (const frame of this.#subscriptions.resume()) this.#control.push(encodeFrame(frame))
    for (const lane of this.#lanes) {
      lane.rewindTo(0)
      lane.holdUntilUs = 0
    }
  }

  closed(): void {
    this.#isOpen = false
    this.#isWelcome = false
  }

  /** @returns the next frame to write, highest lane first; null when there is none, or no window. */
  take(nowUs: number): Uint8Array | null {
    if (!this.#isOpen) return null
    const control = this.#control[0]
    const bytes = control ?? this.#takeReading(nowUs)
    if (bytes === null || !this.#fitsFlight(bytes.length)) return null
    if (control !== undefined) this.#control.shift()
    this.#flightBytes += bytes.length
    this.#lastSentUs = nowUs
    if (this.#askedUs === 0) this.#askedUs = nowUs
    return bytes
  }

  /** Queues a ping when one is due. @returns false when the edge has been silent for too long. */
  tick(nowUs: number, uptimeMs: number): boolean {
    if (!this.#isOpen) return true
    const { pingIntervalMs, idleTimeoutMs } = this.#limits
    if (nowUs - this.#lastReceivedUs > idleTimeoutMs * MS_US) return false
    // An edge that was restarted answers nothing on the old session, and QUIC alone notices after 30 s.
    if (this.#isAnswerDue() && nowUs - this.#askedUs > SDK_DEFAULTS.deviceAnswerTimeoutMs * MS_US) return false
    if (!this.#isWelcome || nowUs - Math.min(this.#lastSentUs, this.#lastReceivedUs) < pingIntervalMs * MS_US)
      return true
    if (this.#pings.size === 0) this.#ping(nowUs, uptimeMs)
    return true
  }

  #ping(nowUs: number, uptimeMs: number): number {
    this.#pingNumber += 1
    this.#pings.set(this.#pingNumber, nowUs)
    this.#control.push(encodeFrame({ type: 'ping', number: this.#pingNumber, uptimeMs }))
    return this.#pingNumber
  }

  #isAnswerDue(): boolean {
    if (this.#askedUs === 0) return false
    return !this.#isWelcome || this.#pings.size > 0 || this.#lanes.some(({ unackedReadings }) => unackedReadings > 0)
  }

  received(frame: Frame | IgnorableFrame, nowUs: number): DeviceEvent[] {
    this.#lastReceivedUs = nowUs
    this.#askedUs = 0
    switch (frame.type) {
      case 'welcome':
        return this.#welcome(frame)
      case 'ack':
        this.#lanes[frame.lane]?.ackedUpTo(frame.upTo)
        return [
          { type: 'acked', lane: frame.lane, upTo: frame.upTo, promise: frame.promise === 0 ? 'durable' : 'buffered' },
        ]
      case 'nack':
        return this.#refused(frame, nowUs)
      case 'alias-ok':
        this.#stands(frame.alias, nowUs)
        return []
      case 'window':
        this.#setWindow(frame)
        return []
      case 'subscribed':
        this.#subscriptions.confirm(frame)
        return [{ type: 'subscribed', subscription: frame.subscription, next: frame.next }]
      case 'message':
        return this.#subscriptions.takes(frame) ? [{ type: 'message', message: frame }] : []
      case 'end':
        return this.#ended(frame.subscription, errorOfCode(frame.code ?? 0, ''))
      case 'pong':
        return this.#pong(frame)
      case 'bye':
        return [{ type: 'bye', error: errorOfCode(frame.code, frame.uri ?? ''), pauseMs: pauseOf(frame.pauseMs) }]
      case 'error':
        return this.#error(frame)
      default:
        return []
    }
  }

  // ---- answers -----------------------------------------------------------------------------------------------------------

  #welcome(frame: Frame<'welcome'>): DeviceEvent[] {
    this.#isWelcome = true
    this.#limits = { ...DEFAULT_LIMITS, ...frame.limits }
    this.#windows = windowsOf(this.#limits)
    const events: DeviceEvent[] = [{ type: 'welcome', session: frame.session, limits: this.#limits }]
    for (const { lane, sequence } of frame.lanes) {
      const queue = this.#lanes[lane]
      if (queue === undefined) continue
      const before = queue.acked
      queue.resume(sequence)
      // What is kept was stored before the link broke: its acknowledgement was lost on the way. An edge that does not say
      // how far it is on stable storage promises no more than that it is written.
      const told = frame.durable?.find((one) => one.lane === lane)?.sequence ?? 0
      const durable = Math.min(told, sequence)
      if (durable > before) events.push({ type: 'acked', lane, upTo: durable, promise: 'durable' })
      if (sequence > Math.max(before, durable))
        events.push({ type: 'acked', lane, upTo: sequence, promise: 'buffered' })
    }
    return events
  }

  #refused(frame: Frame<'nack'>, nowUs: number): DeviceEvent[] {
    const queue = this.#lanes[frame.lane]
    if (queue === undefined) return []
    if (frame.retryMs !== null) {
      queue.rewindTo(frame.first)
      queue.holdUntilUs = nowUs + pauseOf(frame.retryMs) * MS_US
      queue.heldAlias = frame.code === EDGE_CODES.notFound.code ? queue.aliasAt(frame.first) : null
      if (queue.heldAlias !== null) this.#declareAgain(queue.heldAlias)
      return []
    }
    const error = errorOfCode(frame.code, frame.text ?? '') ?? new EdgeError('EDGE_INTERNAL', `code ${frame.code}`)
    if (frame.first === queue.acked + 1) queue.ackedUpTo(frame.first + frame.count - 1)
    return [{ type: 'refused', lane: frame.lane, first: frame.first, count: frame.count, error }]
  }

  /** Its topic may not have been there before: what waits for it need not wait longer. */
  #stands(alias: number, nowUs: number): void {
    const lane = this.#lanes[this.#aliases[alias]?.lane ?? -1]
    if (lane?.heldAlias === alias) lane.holdUntilUs = Math.min(lane.holdUntilUs, nowUs + AFTER_ALIAS_MS * MS_US)
  }

  /** The name may be another topic's by now, which promises less: only a new declaration accepts that. */
  #declareAgain(alias: number): void {
    this.#control.push(encodeFrame(this.#aliasOf(alias).frame))
  }

  #setWindow(frame: Frame<'window'>): void {
    const window = { bytes: frame.bytes, readings: frame.readings }
    if (frame.lane === LANES.alarm) this.#windows.alarm = window
    else this.#windows.shared = window
  }

  #pong(frame: Frame<'pong'>): DeviceEvent[] {
    const sentUs = this.#pings.get(frame.number)
    this.#pings.delete(frame.number)
    this.#subscriptions.answered(frame.number)
    return sentUs === undefined || frame.time === null ? [] : [{ type: 'time', time: frame.time, sentUs }]
  }

  #error({ code, text = '', of, ref }: Frame<'error'>): DeviceEvent[] {
    const error = errorOfCode(code, text)
    if (error === null) return []
    const subscription = of === FRAMES.subscribe.number && ref !== null ? Number(ref) : undefined
    // Of one that was confirmed it tells what is missing, and goes on. Another will never bring a message.
    if (subscription === undefined || !this.#subscriptions.isUnanswered(subscription)) return [{ type: 'error', error }]
    return this.#ended(subscription, error)
  }

  #ended(subscription: number, error: EdgeError | null): DeviceEvent[] {
    this.#subscriptions.ended(subscription)
    return [{ type: 'subscription-ended', subscription, error }]
  }

  // ---- sending -----------------------------------------------------------------------------------------------------------

  #hello(uptimeMs: number): Frame<'hello'> {
    const { name, auth, epoch, boot, firmware } = this.#options.identity
    const lanes = this.#lanes.filter((lane) => lane.acked > 0).map(({ lane, acked }) => ({ lane, sequence: acked }))
    return {
      type: 'hello',
      minVersion: PROTOCOL_VERSION,
      maxVersion: PROTOCOL_VERSION,
      name,
      auth,
      epoch,
      lanes,
      options: {
        ...(boot === undefined ? {} : { boot }),
        uptimeMs,
        maxFrameBytes: this.#options.maxFrameBytes,
        ...(firmware === undefined ? {} : { firmware }),
      },
    }
  }

  #takeReading(nowUs: number): Uint8Array | null {
    for (const queue of this.#lanes) {
      if (queue.holdUntilUs > nowUs) continue
      const entry = queue.takeNext(
        (sizeBytes, count) =>
          this.#fitsFlight(sizeBytes) && fitsWindow(this.#windows, this.#lanes, queue, sizeBytes, count),
      )
      if (entry !== null) return entry.frameBytes ?? skipFrame(queue.lane, entry)
    }
    return null
  }

  /** Before `welcome` the edge keeps no more than one small flight of us. */
  #fitsFlight(sizeBytes: number): boolean {
    return this.#isWelcome || this.#flightBytes + sizeBytes <= FIRST_FLIGHT_BYTES
  }

  #aliasOf(alias: number): Alias {
    const declared = this.#aliases[alias]
    if (declared === undefined) throw new EdgeError('EDGE_READING_INVALID', `alias ${alias} was not declared`)
    return declared
  }

  #queueOf(alias: number): LaneQueue {
    const queue = this.#lanes[this.#aliasOf(alias).lane]
    if (queue === undefined)
      throw new EdgeError('EDGE_READING_INVALID', `alias ${alias} names a lane above ${LANE_COUNT - 1}`)
    return queue
  }
}

const pauseOf = (askedMs: number): number => Math.min(SDK_DEFAULTS.devicePauseMaxMs, askedMs)

function skipFrame(lane: number, entry: LaneEntry): Uint8Array {
  return encodeFrame({ type: 'skip', lane, first: entry.first, count: entry.count, why: entry.why })
}

/** @returns null for a normal end. */
function errorOfCode(code: number, text: string): EdgeError | null {
  const traits = traitsOfCode(code)
  if (traits?.edgeError === null) return null
  const meaning = traits?.meaning ?? `code ${code} of a later version`
  const details = { edgeCode: code }
  return new EdgeError(traits?.edgeError ?? 'EDGE_INTERNAL', text === '' ? meaning : `${meaning}: ${text}`, { details })
}
