/**
 * Sends messages of one topic in order, in batches, over lost connections: a bounded buffer takes what cannot be sent now,
 * in memory and, with a spool, on disk as well.
 *
 * One batch is on its way at a time, so order holds. A batch whose answer was lost is sent again with the same ids: it may
 * then be stored twice, unless the topic recognises ids (at least once).
 */
import { US_MS } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { randomId } from '../../random-id.ts'
import type { MessagesApi } from '../api/messages.ts'
import { SDK_DEFAULTS } from '../defaults.ts'
import { sleep } from '../sleep.ts'
import type { SendConfirmation } from '../wire/commands/messages.ts'
import type { Identifier, Partitioning } from '../wire/primitives.ts'
import { MAX_ORIGIN_SPAN_US } from '../wire/record-slice.ts'
import type { Client } from './client.ts'
import { type OutgoingMessage, packMessages, refuseUnsendable } from './messages.ts'
import { Backoff } from './retry.ts'

export interface ProducerOptions {
  readonly stream: Identifier
  readonly topic: Identifier
  /** Default: balanced over the partitions. */
  readonly partitioning?: Partitioning
  readonly batchCount?: number
  readonly batchBytes?: number
  /** How long a message waits for company. */
  readonly lingerMs?: number
  readonly bufferBytes?: number
  /** What a full buffer does: makes the caller wait, refuses the message, or gives up the oldest one. Default: wait. */
  readonly overflow?: 'wait' | 'reject' | 'drop-oldest'
  /** Attempts after the first; null = as long as the producer lives. */
  readonly retries?: number | null
  /** Keeps unsent messages over a restart of the program; see `openSpoolFile`. */
  readonly spool?: Spool
}

/** Where unsent messages are kept beside memory. */
export interface Spool {
  /** Messages that an earlier run did not get acknowledged, oldest first; those that are done with since leave it. */
  readonly pending: readonly SpooledMessage[]
  /** Resolves when the message is on disk. */
  append(message: SpooledMessage): Promise<void>
  /** The oldest `count` messages are done with. */
  acknowledged(count: number): Promise<void>
  /** The message behind the oldest `aheadCount` was given up. */
  gaveUp(aheadCount: number): Promise<void>
  close(): Promise<void>
}

export interface SpooledMessage extends OutgoingMessage {
  readonly id: bigint
  readonly originUs: bigint
}

/** A caller whose message has no room yet. */
interface RoomWaiter {
  readonly sizeBytes: number
  enter(): void
}

interface Entry {
  readonly message: SpooledMessage
  readonly sizeBytes: number
  /** Whether the spool has it; null without one. */
  readonly spooled: Promise<boolean> | null
  resolve(confirmation: SendConfirmation | null): void
  reject(error: EdgeError): void
}

const MESSAGE_OVERHEAD_BYTES = 64

export class Producer implements AsyncDisposable {
  readonly #client: Client
  readonly #messages: MessagesApi
  readonly #options: ProducerOptions
  readonly #backoff: Backoff
  readonly #queue: Entry[] = []
  /** First come, first served. */
  readonly #roomWaiters: RoomWaiter[] = []
  readonly #idleWaiters: (() => void)[] = []
  readonly #abort = new AbortController()
  #bufferedBytes = 0
  #inFlightCount = 0
  /** How many of those the spool has. */
  #spooledAhead = Promise.resolve(0)
  #isSending = false
  #timer: ReturnType<typeof setTimeout> | null = null
  #isClosing = false
  #closing: Promise<void> | undefined
  #droppedCount = 0
  /** What the spool was told last: it counts from the oldest, so it is told one after the other. */
  #spoolTold: Promise<void> = Promise.resolve()

  /** Use `client.producer`. */
  constructor(client: Client, options: ProducerOptions) {
    this.#client = client
    this.#messages = client.messages
    this.#options = options
    this.#backoff = new Backoff(
      {
        minDelayUs: SDK_DEFAULTS.producerRetryDelayMinMs * US_MS,
        maxDelayUs: SDK_DEFAULTS.producerRetryDelayMaxMs * US_MS,
      },
      client.random,
    )
    const nobody = { resolve: () => {}, reject: () => {} }
    for (const message of options.spool?.pending ?? []) this.#push(message, Promise.resolve(true), nobody)
    this.#schedule()
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes
  }

  get bufferedCount(): number {
    return this.#queue.length
  }

  /** Messages given up by `drop-oldest`. */
  get droppedCount(): number {
    return this.#droppedCount
  }

  /**
   * Queues a message.
   *
   * @returns when the server has taken it, with its place where the server tells (newer generation).
   * @throws {EdgeError} EDGE_BACKPRESSURE (buffer full, or dropped for newer ones), EDGE_MESSAGE_TOO_LARGE and what else no
   *   server takes, the server's refusal, EDGE_SHUTTING_DOWN.
   */
  async send(message: OutgoingMessage): Promise<SendConfirmation | null> {
    refuseUnsendable(message)
    const spooled: SpooledMessage = {
      ...message,
      id: message.id || randomId(),
      originUs: message.originUs ?? this.#client.clock.wallUs(),
    }
    const sizeBytes = sizeOf(spooled)
    if ((this.#options.overflow ?? 'wait') === 'wait') {
      if (this.#roomWaiters.length > 0 || !this.#hasRoom(sizeBytes)) return await this.#enterLater(spooled, sizeBytes)
    } else {
      while (!this.#hasRoom(sizeBytes)) await this.#makeRoom(sizeBytes)
    }
    return await this.#enter(spooled)
  }

  /** Queues it within the turn of the call. */
  async #enter(message: SpooledMessage): Promise<SendConfirmation | null> {
    if (this.#isClosing) throw new EdgeError('EDGE_SHUTTING_DOWN', 'the producer was closed')
    const { promise, ...caller } = Promise.withResolvers<SendConfirmation | null>()
    const spooling = this.#options.spool?.append(message)
    const isSpooled = spooling?.then(
      () => true,
      () => false,
    )
    this.#push(message, isSpooled ?? null, caller)
    this.#schedule()
    promise.catch(() => {}) // told below, unless the spool fails first
    await spooling
    return await promise
  }

  /** Resolves when everything queued so far has been taken or given up. */
  async flush(): Promise<void> {
    this.#sendNow()
    while (this.#queue.length > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
  }

  /** Flushes within `timeoutMs` (0: sends nothing more), then gives up what is left; a spool keeps it. A second call waits for the first. */
  close(timeoutMs = 5000): Promise<void> {
    this.#closing ??= this.#close(timeoutMs)
    return this.#closing
  }

  async #close(timeoutMs: number): Promise<void> {
    this.#isClosing = true
    this.#letIn()
    if (timeoutMs > 0) {
      const timer = setTimeout(() => this.#abort.abort(), timeoutMs)
      await Promise.race([this.flush(), aborted(this.#abort.signal)])
      clearTimeout(timer)
    }
    this.#abort.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
    const error = new EdgeError('EDGE_SHUTTING_DOWN', 'the producer was closed before the server took the message')
    for (const entry of this.#queue.splice(0)) entry.reject(error)
    await this.#spoolTold
    await this.#options.spool?.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // ---- buffer ------------------------------------------------------------------------------------------------------------

  #push(message: SpooledMessage, spooled: Entry['spooled'], caller: Pick<Entry, 'resolve' | 'reject'>): void {
    const sizeBytes = sizeOf(message)
    this.#queue.push({ message, sizeBytes, spooled, ...caller })
    this.#bufferedBytes += sizeBytes
  }

  /** One message always has room, however large, so that nothing waits for ever. */
  #hasRoom(sizeBytes: number): boolean {
    const limit = this.#options.bufferBytes ?? SDK_DEFAULTS.producerBufferBytes
    return this.#isClosing || this.#queue.length === 0 || this.#bufferedBytes + sizeBytes <= limit
  }

  #enterLater(message: SpooledMessage, sizeBytes: number): Promise<SendConfirmation | null> {
    if (this.#roomWaiters.length >= SDK_DEFAULTS.producerMaxWaiting) {
      const text = `buffer: ${this.#roomWaiters.length} messages wait for room already, expected that some of them are awaited`
      return Promise.reject(new EdgeError('EDGE_BACKPRESSURE', text))
    }
    return new Promise((resolve) => {
      this.#roomWaiters.push({ sizeBytes, enter: () => resolve(this.#enter(message)) })
    })
  }

  /** As many as there is room for: who is told later would find it taken by who comes anew. */
  #letIn(): void {
    for (let [first] = this.#roomWaiters; first !== undefined; [first] = this.#roomWaiters) {
      if (!this.#hasRoom(first.sizeBytes)) return
      this.#roomWaiters.shift()
      first.enter()
    }
  }

  async #makeRoom(sizeBytes: number): Promise<void> {
    if (this.#options.overflow === 'reject' || this.#queue.length <= this.#inFlightCount) {
      const message = `buffer: ${this.#bufferedBytes} bytes wait already, no room for ${sizeBytes} more`
      throw new EdgeError('EDGE_BACKPRESSURE', message)
    }
    const [oldest] = this.#queue.splice(this.#inFlightCount, 1)
    if (oldest === undefined) return
    this.#bufferedBytes -= oldest.sizeBytes
    this.#droppedCount += 1
    oldest.reject(new EdgeError('EDGE_BACKPRESSURE', 'given up to make room for newer messages'))
    // A server that is away for days holds up the batch on its way for as long: nobody keeps what goes behind it.
    if (oldest.spooled !== null) await this.#gaveUp(oldest.spooled, this.#spooledAhead)
  }

  // ---- sending -----------------------------------------------------------------------------------------------------------

  #schedule(): void {
    if (this.#isSending || this.#queue.length === 0) return
    const isFull =
      this.#queue.length >= (this.#options.batchCount ?? SDK_DEFAULTS.producerBatchCount) ||
      this.#bufferedBytes >= (this.#options.batchBytes ?? SDK_DEFAULTS.producerBatchBytes)
    const lingerMs = this.#options.lingerMs ?? SDK_DEFAULTS.producerLingerMs
    if (isFull || lingerMs === 0) this.#sendNow()
    else this.#timer ??= setTimeout(() => this.#sendNow(), lingerMs)
  }

  #sendNow(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (!this.#isSending) void this.#drain()
  }

  async #drain(): Promise<void> {
    this.#isSending = true
    while (this.#queue.length > 0 && !this.#abort.signal.aborted) {
      const batch = this.#nextBatch()
      this.#inFlightCount = batch.length
      this.#spooledAhead = spooledOf(batch)
      await this.#sendBatch(batch)
    }
    this.#isSending = false
    for (const wake of this.#idleWaiters.splice(0)) wake()
  }

  #nextBatch(): Entry[] {
    const maxCount = this.#options.batchCount ?? SDK_DEFAULTS.producerBatchCount
    const maxBytes = this.#options.batchBytes ?? SDK_DEFAULTS.producerBatchBytes
    const batch: Entry[] = []
    let sizeBytes = 0
    const origins = new OriginSpan()
    for (const entry of this.#queue) {
      if (batch.length === maxCount || (batch.length > 0 && sizeBytes + entry.sizeBytes > maxBytes)) break
      if (!origins.takes(entry.message.originUs)) break
      batch.push(entry)
      sizeBytes += entry.sizeBytes
    }
    return batch
  }

  async #sendBatch(batch: readonly Entry[]): Promise<void> {
    const { stream, topic, partitioning = { kind: 'balanced' }, retries = SDK_DEFAULTS.producerRetries } = this.#options
    for (let attempt = 0; ; attempt++) {
      try {
        const messages = batch.map((entry) => entry.message)
        const records = packMessages(messages, 0n, null)
        const confirmation = await this.#messages.sendBatch(stream, topic, partitioning, records)
        this.#backoff.reset()
        await this.#settle(batch, (entry, index) => {
          const baseOffset = confirmation === null ? 0n : confirmation.baseOffset + BigInt(index)
          entry.resolve(confirmation === null ? null : { ...confirmation, baseOffset })
        })
        return
      } catch (cause) {
        const error = toEdgeError(cause)
        const isOver = !error.isRetryable || (retries !== null && attempt >= retries) || this.#abort.signal.aborted
        if (isOver) {
          await this.#settle(batch, (entry) => entry.reject(error))
          return
        }
        await sleep(this.#backoff.nextDelayUs() / US_MS, this.#abort.signal)
      }
    }
  }

  async #settle(batch: readonly Entry[], settle: (entry: Entry, index: number) => void): Promise<void> {
    this.#queue.splice(0, batch.length)
    this.#inFlightCount = 0
    for (const entry of batch) this.#bufferedBytes -= entry.sizeBytes
    batch.forEach(settle)
    this.#letIn()
    const done = this.#doneWith(this.#spooledAhead)
    this.#spooledAhead = Promise.resolve(0)
    await done
  }

  // ---- spool -------------------------------------------------------------------------------------------------------------

  /** Were it not written, the messages would be sent once more after a restart: their ids tell. */
  #doneWith(batch: Promise<number>): Promise<void> {
    return this.#tellSpool(async (spool) => {
      const count = await batch
      if (count > 0) await spool.acknowledged(count)
    })
  }

  #gaveUp(isSpooled: Promise<boolean>, ahead: Promise<number>): Promise<void> {
    return this.#tellSpool(async (spool) => {
      if (await isSpooled) await spool.gaveUp(await ahead)
    })
  }

  #tellSpool(tell: (spool: Spool) => Promise<void>): Promise<void> {
    const { spool } = this.#options
    if (spool === undefined) return Promise.resolve()
    this.#spoolTold = this.#spoolTold.then(() => tell(spool)).catch(() => {})
    return this.#spoolTold
  }
}

/** @returns how many of them the spool has; it keeps nothing of the messages. */
async function spooledOf(entries: readonly Entry[]): Promise<number> {
  const spooled = await Promise.all(entries.map((entry) => entry.spooled))
  return spooled.filter(Boolean).length
}

/** Origin times of one batch lie within 71 minutes: the newer generation holds their distance as u32 of µs. */
class OriginSpan {
  #leastUs: bigint | null = null
  #mostUs = 0n

  takes(originUs: bigint): boolean {
    const leastUs = this.#leastUs === null || originUs < this.#leastUs ? originUs : this.#leastUs
    const mostUs = this.#leastUs === null || originUs > this.#mostUs ? originUs : this.#mostUs
    if (mostUs - leastUs > MAX_ORIGIN_SPAN_US) return false
    this.#leastUs = leastUs
    this.#mostUs = mostUs
    return true
  }
}

function sizeOf(message: SpooledMessage): number {
  const headersBytes = (message.headers ?? []).reduce(
    (sum, { key, value }) => sum + key.bytes.length + value.bytes.length + 10,
    0,
  )
  return MESSAGE_OVERHEAD_BYTES + message.payload.length + headersBytes
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
