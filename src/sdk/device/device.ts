/**
 * A device that publishes readings to an edge and takes messages from it, over WebTransport: keeps a session up, resends
 * what was not acknowledged, and settles each publish once the edge has promised to keep it.
 */
import { type Clock, systemClock, US_MS } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { MAX_TIMER_MS } from '../../long-timer.ts'
import { Backoff } from '../client/retry.ts'
import { SDK_DEFAULTS } from '../defaults.ts'
import { sleep } from '../sleep.ts'
import type { TransportEvents } from '../transport/transport.ts'
import type { WebTransportSession } from '../transport/webtransport.ts'
import {
  type Auth,
  decodeFrame,
  EdgeFrameAssembler,
  type Frame,
  MAX_FRAME_BYTES,
  type StartFrom,
  type Value,
} from '../wire/edge/index.ts'
import { type AliasKind, DeviceCore, type DeviceEvent, type OverflowPolicy } from './device-core.ts'

export type DialDevice = (events: TransportEvents, signal: AbortSignal) => Promise<WebTransportSession>

export interface DeviceOptions {
  readonly name: string
  readonly auth: Auth
  readonly dial: DialDevice
  /** Whether QUIC gets through now: asked while a session had to take HTTP/2, which is left as soon as it does. */
  readonly probeQuic?: (signal: AbortSignal) => Promise<boolean>
  readonly probeIntervalMs?: number
  readonly overflow?: OverflowPolicy
  readonly maxQueuedReadings?: number
  readonly maxQueuedBytes?: number
  readonly firmware?: string
  readonly clock?: Clock
  readonly random?: () => number
  /** Told of what the edge says outside of answers: refused aliases, ends of sessions. */
  readonly onEvent?: (event: DeviceEvent) => void
}

export interface Published {
  readonly lane: number
  readonly sequence: number
  /** `durable`: on stable storage of the edge; `buffered`: written there, synced soon. */
  readonly promise: 'durable' | 'buffered'
}

export type DeviceMessage = Frame<'message'>

interface Waiting {
  readonly lane: number
  readonly first: number
  readonly last: number
  resolve(published: Published): void
  reject(error: EdgeError): void
}

interface Inbox {
  readonly queue: DeviceMessage[]
  wake: (() => void) | null
  isOver: boolean
  error: EdgeError | null
}

const TICK_MS = 250
const PROBE_INTERVAL_MS = 60_000

export class Device implements AsyncDisposable {
  readonly #options: DeviceOptions
  readonly #clock: Clock
  readonly #core: DeviceCore
  readonly #backoff: Backoff
  readonly #abort = new AbortController()
  readonly #waiting: Waiting[] = []
  readonly #inboxes = new Map<number, Inbox>()
  #session: WebTransportSession | null = null
  #isWritable = false
  #upSinceUs = 0
  #pauseMs = 0
  #timer: ReturnType<typeof setTimeout> | null = null
  #isClosed = false
  #running: Promise<void> | null = null

  constructor(options: DeviceOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    const random = options.random ?? Math.random
    this.#core = new DeviceCore({
      identity: {
        name: options.name,
        auth: options.auth,
        epoch: Math.floor(random() * 2 ** 32),
        ...(options.firmware === undefined ? {} : { firmware: options.firmware }),
      },
      bounds: {
        maxReadings: options.maxQueuedReadings ?? SDK_DEFAULTS.deviceResendReadings,
        maxBytes: options.maxQueuedBytes ?? SDK_DEFAULTS.deviceResendBytes,
      },
      overflow: options.overflow ?? 'reject',
      maxFrameBytes: MAX_FRAME_BYTES,
    })
    this.#backoff = new Backoff(
      { minDelayUs: SDK_DEFAULTS.deviceReconnectMinMs * US_MS, maxDelayUs: SDK_DEFAULTS.deviceReconnectMaxMs * US_MS },
      random,
    )
  }

  /** Readings that wait for an acknowledgement. */
  get pendingReadings(): number {
    return this.#core.pendingReadings
  }

  get carrier(): 'quic' | 'http2' | null {
    return this.#session?.carrier ?? null
  }

  /** Keeps a session up from now on; publishing may begin at once. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** @returns an alias, good for the life of this device. */
  alias(topic: string, kind: AliasKind, options?: Parameters<DeviceCore['declare']>[2]): number {
    const alias = this.#core.declare(topic, kind, options)
    this.#flush()
    return alias
  }

  /**
   * Publishes one reading, stamped with the uptime now.
   *
   * @returns when the edge has promised to keep it, over reconnects if need be.
   * @throws {EdgeError} EDGE_BACKPRESSURE when the queue is full, EDGE_READING_INVALID for NaN and infinities, and what the edge
   *   refuses for good.
   */
  publish(alias: number, value: Value): Promise<Published> {
    const time = this.#uptimeMs()
    return this.#enqueue(alias, 1, (sequence) => ({ type: 'publish', alias, sequence, time, value }))
  }

  /** Publishes values of equal spacing in one frame; the last one is of now. */
  publishSeries(alias: number, intervalMs: number, values: readonly Value[]): Promise<Published> {
    const time = Math.max(0, this.#uptimeMs() - intervalMs * (values.length - 1))
    return this.#enqueue(alias, values.length, (sequence) => ({
      type: 'series',
      alias,
      sequence,
      time,
      intervalMs,
      values,
    }))
  }

  /** Fire and forget in a datagram: never resent. @returns false when it was not even sent. */
  publishDatagram(alias: number, value: Value): boolean {
    const bytes = this.#core.datagram(alias, this.#uptimeMs(), value)
    return bytes !== null && (this.#session?.sendDatagram(bytes) ?? false)
  }

  /**
   * Messages of a topic, newest last. Each is taken when the next one is asked for. Over a broken link it goes on behind the
   * last one that came; from `stored`, where the edge's stored offset says.
   */
  async *subscribe(
    topic: string,
    from: StartFrom,
    options?: Parameters<DeviceCore['subscribe']>[3],
  ): AsyncGenerator<DeviceMessage> {
    if (this.#isClosed) throw shutDown()
    const window = { bytes: SDK_DEFAULTS.deviceResendBytes, messages: SDK_DEFAULTS.deviceResendReadings }
    const subscription = this.#core.subscribe(topic, from, window, options)
    const inbox: Inbox = { queue: [], wake: null, isOver: false, error: null }
    this.#inboxes.set(subscription, inbox)
    this.#flush()
    try {
      for (;;) {
        const message = inbox.queue.shift()
        if (message !== undefined) {
          yield message
          this.#core.result(subscription, message.offset, 0)
          this.#flush()
        } else if (inbox.isOver) {
          if (inbox.error) throw inbox.error
          return
        } else {
          await new Promise<void>((resolve) => {
            inbox.wake = resolve
          })
        }
      }
    } finally {
      this.#inboxes.delete(subscription)
      this.#core.unsubscribe(subscription, this.#clock.monotonicUs(), this.#uptimeMs())
      this.#flush()
    }
  }

  /** Gives up what is not acknowledged and stops; a goodbye that gets lost with the session means the same. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#core.bye(0)
    this.#flush()
    this.#session?.end()
    this.#session?.abort()
    this.#abort.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
    const error = shutDown()
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error)
    for (const inbox of this.#inboxes.values()) this.#endInbox(inbox, null)
    await this.#running
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #enqueue(alias: number, count: number, build: (sequence: number) => Frame): Promise<Published> {
    if (this.#isClosed) return Promise.reject(shutDown())
    try {
      const { lane, first, dropped } = this.#core.publish(alias, count, build)
      for (const event of dropped) this.#on(event)
      const { promise, resolve, reject } = Promise.withResolvers<Published>()
      this.#waiting.push({ lane, first, last: first + count - 1, resolve, reject })
      this.#flush()
      return promise
    } catch (error) {
      return Promise.reject(toEdgeError(error))
    }
  }

  // ---- session -----------------------------------------------------------------------------------------------------------

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      const error = await this.#holdSession()
      if (this.#isClosed) return
      this.#core.closed()
      const wasStable =
        this.#upSinceUs > 0 && this.#clock.monotonicUs() - this.#upSinceUs > SDK_DEFAULTS.stableAfterMs * US_MS
      if (wasStable) this.#backoff.reset()
      this.#upSinceUs = 0
      if (error) this.#options.onEvent?.({ type: 'error', error })
      const delayMs = Math.max(this.#backoff.nextDelayUs() / US_MS, this.#pauseMs)
      this.#pauseMs = 0
      await sleep(delayMs, this.#abort.signal)
    }
  }

  /** @returns why the session ended, or did not come about. */
  async #holdSession(): Promise<EdgeError | null> {
    const { promise, resolve } = Promise.withResolvers<EdgeError | null>()
    const assembler = new EdgeFrameAssembler(MAX_FRAME_BYTES)
    const events: TransportEvents = {
      data: (bytesView) => {
        try {
          assembler.push(bytesView, (frameView) => this.#received(frameView))
        } catch (error) {
          this.#session?.abort()
          resolve(toEdgeError(error))
        }
      },
      drained: () => {
        this.#isWritable = true
        this.#flush()
      },
      closed: (error) => resolve(error),
    }
    try {
      this.#session = await this.#options.dial(events, this.#abort.signal)
    } catch (error) {
      return toEdgeError(error)
    }
    if (this.#isClosed) this.#session.abort()
    this.#isWritable = true
    this.#core.opened(this.#clock.monotonicUs(), this.#uptimeMs())
    this.#flush()
    this.#tick()
    const stopProbing = this.#leaveWhenQuicIsBack(this.#session)
    const error = await promise
    stopProbing()
    // What came before it was handed over may be what ended it.
    this.#session.abort()
    this.#session = null
    return error
  }

  /** Readings on their way are sent again on the new session; the edge knows them by their numbers. */
  #leaveWhenQuicIsBack(session: WebTransportSession): () => void {
    const { probeQuic, probeIntervalMs = PROBE_INTERVAL_MS } = this.#options
    if (session.carrier === 'quic' || probeQuic === undefined) return () => {}
    let timer: ReturnType<typeof setTimeout>
    const probeLater = (): void => {
      timer = setTimeout(
        async () => {
          const isBack = await probeQuic(this.#abort.signal).catch(() => false)
          if (this.#session !== session) return
          if (isBack) session.abort()
          else probeLater()
        },
        Math.min(MAX_TIMER_MS, probeIntervalMs),
      )
      timer.unref()
    }
    probeLater()
    return () => clearTimeout(timer)
  }

  #tick(): void {
    if (this.#session === null || this.#isClosed) return
    const isAlive = this.#core.tick(this.#clock.monotonicUs(), this.#uptimeMs())
    if (isAlive) this.#flush()
    else this.#session.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  #flush(): void {
    const session = this.#session
    while (session !== null && this.#isWritable) {
      const bytes = this.#core.take(this.#clock.monotonicUs())
      if (bytes === null) return
      this.#isWritable = session.write(bytes)
    }
  }

  #received(frameView: Uint8Array): boolean {
    const frame = decodeFrame(frameView)
    for (const event of this.#core.received(frame, this.#clock.monotonicUs())) this.#on(event)
    this.#flush()
    return true
  }

  #on(event: DeviceEvent): void {
    switch (event.type) {
      case 'welcome':
        this.#upSinceUs = this.#clock.monotonicUs()
        break
      case 'acked':
        this.#settle(
          ({ lane, last }) => lane === event.lane && last <= event.upTo,
          (one) => one.resolve({ lane: one.lane, sequence: one.first, promise: event.promise }),
        )
        break
      case 'refused':
        this.#settle(touchedBy(event), (one) => one.reject(event.error))
        break
      case 'dropped': {
        const error = new EdgeError('EDGE_BACKPRESSURE', 'given up to make room for newer readings')
        this.#settle(touchedBy(event), (one) => one.reject(error))
        break
      }
      case 'message':
        this.#deliver(event.message)
        return
      case 'subscription-ended': {
        const inbox = this.#inboxes.get(event.subscription)
        if (inbox) this.#endInbox(inbox, event.error)
        return
      }
      case 'bye':
        this.#pauseMs = event.pauseMs
        this.#session?.abort()
        break
      default:
        break
    }
    this.#options.onEvent?.(event)
  }

  #settle(isMeant: (one: Waiting) => boolean, settle: (one: Waiting) => void): void {
    for (let index = this.#waiting.length - 1; index >= 0; index--) {
      const one = this.#waiting[index]
      if (one === undefined || !isMeant(one)) continue
      this.#waiting.splice(index, 1)
      settle(one)
    }
  }

  #deliver(message: DeviceMessage): void {
    const inbox = this.#inboxes.get(message.subscription)
    if (inbox === undefined) return
    inbox.queue.push(message)
    inbox.wake?.()
    inbox.wake = null
  }

  #endInbox(inbox: Inbox, error: EdgeError | null): void {
    inbox.isOver = true
    inbox.error = error
    inbox.wake?.()
    inbox.wake = null
  }

  #uptimeMs(): number {
    return Math.round(this.#clock.monotonicUs() / US_MS)
  }
}

const shutDown = () => new EdgeError('EDGE_SHUTTING_DOWN', 'the device was closed')

/** Of a series the readings beside a refused one are kept; its publish was not what it says all the same. */
function touchedBy(range: { readonly lane: number; readonly first: number; readonly count: number }) {
  return ({ lane, first, last }: Waiting): boolean =>
    lane === range.lane && first < range.first + range.count && last >= range.first
}
