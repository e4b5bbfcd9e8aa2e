/**
 * Sends messages of one topic in order, in batches, over lost connections: a bounded buffer takes what cannot be sent now,
 * in memory and, with a spool, on disk as well.
 *
 * One batch is on its way at a time, so order holds. A batch whose answer was lost is sent again with the same ids: it may
 * then be stored twice, unless the topic recognises ids (at least once).
 *
 * With a spool a message is sent once it is on disk, and leaves it when the server has taken it or refuses it for what it
 * holds. Whatever else goes wrong is told to the caller and tried again: what comes behind it waits, so that order holds.
 */
import { US_MS } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { setLongTimeout } from '../../long-timer.ts'
import { randomId } from '../../random-id.ts'
import type { MessagesApi } from '../api/messages.ts'
import { SDK_DEFAULTS } from '../defaults.ts'
import { sleep } from '../sleep.ts'
import type { SendConfirmation } from '../wire/commands/messages.ts'
import type { Identifier, Partitioning } from '../wire/primitives.ts'
import type { Client } from './client.ts'
import { type OutgoingMessage, packMessages, refuseUnsendable } from './messages.ts'
import { countOfNextBatch, sizeOf } from './next-batch.ts'
import { Backoff } from './retry.ts'
import { sequelOf } from './send-failure.ts'

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
  /** Attempts after the first; null = as long as the producer lives. With a spool callers are told then, and it goes on. */
  readonly retries?: number | null
  /** Keeps unsent messages over a restart of the program; see `openSpoolFile`. */
  readonly spool?: Spool
  /** Told of each message that left the spool since the server refuses what it holds; of an earlier run nobody else would be. */
  readonly onRefused?: (message: SpooledMessage, error: EdgeError) => void
}

/** Where unsent messages are kept beside memory. */
export interface Spool {
  /** Messages that an earlier run did not get acknowledged, oldest first; those that are done with since leave it. */
  readonly pending: readonly SpooledMessage[]
  /** Found damaged when it was opened; the messages that lay there are lost. */
  readonly damagedBytes?: number
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
  readonly number: number
  readonly sizeBytes: number
  enter(): void
}

interface Entry {
  /** In the order of the calls. */
  readonly number: number
  readonly message: SpooledMessage
  readonly sizeBytes: number
  /** Resolves when the spool has it; null without one, and for what it had before. */
  readonly spooling: Promise<void> | null
  /** Not before the spool has it. */
  isSendable: boolean
  resolve(confirmation: SendConfirmation | null): void
  reject(error: EdgeError): void
}

export class Producer implements AsyncDisposable {
  readonly #client: Client
  readonly #messages: MessagesApi
  readonly #options: ProducerOptions
  readonly #backoff: Backoff
  readonly #queue: Entry[] = []
  /** First come, first served. */
  readonly #roomWaiters: RoomWaiter[] = []
  readonly #flushers: (() => void)[] = []
  readonly #abort = new AbortController()
  #bufferedBytes = 0
  #inFlightCount = 0
  #isSending = false
  #stopLinger: (() => void) | null = null
  #isClosing = false
  #closing: Promise<void> | undefined
  #droppedCount = 0
  #refusedCount = 0
  #heldUpBy: EdgeError | null = null
  /** Of the newest message. */
  #lastNumber = 0
  /** Nothing up to this one waits for company. */
  #flushUpTo = 0
  /** Callers up to this one know that the spool keeps what the server did not take. */
  #toldUpTo = 0
  /** A batch has no more messages while the server refuses or does not get larger ones. */
  #mostCount = Number.POSITIVE_INFINITY
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
    for (const message of options.spool?.pending ?? []) this.#push(message, ++this.#lastNumber, null, nobody)
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

  /** Spooled messages that left the spool since the server refuses what they hold. */
  get refusedCount(): number {
    return this.#refusedCount
  }

  /** Why the server does not take what the spool keeps, at the last attempt; null while it does. */
  get heldUpBy(): EdgeError | null {
    return this.#heldUpBy
  }

  /**
   * Queues a message.
   *
   * @returns when the server has taken it, with its place where the server tells (newer generation).
   * @throws {EdgeError} EDGE_BACKPRESSURE (buffer full, or dropped for newer ones), EDGE_MESSAGE_TOO_LARGE and what else no
   *   server takes, the server's refusal, EDGE_SHUTTING_DOWN; EDGE_IO when the spool does not take it: it is not sent then. With
   *   `details.isKept` the spool has it: this producer goes on trying, or the next one that opens the spool does.
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
  async #enter(message: SpooledMessage, number = ++this.#lastNumber): Promise<SendConfirmation | null> {
    if (this.#isClosing || this.#abort.signal.aborted)
      throw new EdgeError('EDGE_SHUTTING_DOWN', 'the producer was closed')
    const { promise, ...caller } = Promise.withResolvers<SendConfirmation | null>()
    promise.catch(() => {}) // told below, unless the spool fails first
    const spooling = this.#options.spool?.append(message) ?? null
    const entry = this.#push(message, number, spooling, caller)
    this.#schedule()
    if (spooling !== null) await this.#spooled(entry, spooling)
    return await promise
  }

  /** @throws what the spool says: then it was not sent and will not be. */
  async #spooled(entry: Entry, spooling: Promise<void>): Promise<void> {
    try {
      await spooling
    } catch (error) {
      const index = this.#queue.lastIndexOf(entry)
      if (index >= 0) this.#remove(index, 1)
      throw error
    }
    entry.isSendable = true
    this.#schedule()
  }

  /** Resolves when everything queued so far has been taken or given up, or the spool keeps it and its callers were told why. */
  async flush(): Promise<void> {
    const number = this.#lastNumber
    this.#flushUpTo = number
    this.#schedule()
    while (!this.#isToldUpTo(number)) await new Promise<void>((resolve) => this.#flushers.push(resolve))
    await this.#spoolTold
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
      const stopTimer = setLongTimeout(() => this.#abort.abort(), timeoutMs)
      await Promise.race([this.flush(), aborted(this.#abort.signal)])
      stopTimer()
    }
    this.#end(new EdgeError('EDGE_SHUTTING_DOWN', 'the producer was closed before the server took the message'))
    await this.#spoolTold
    await this.#options.spool?.close()
  }

  /** Nothing more is sent; a spool keeps what is left. */
  #end(error: EdgeError): void {
    this.#abort.abort()
    this.#stopLinger?.()
    const told = this.#kept(error)
    for (const entry of this.#queue.splice(0)) entry.reject(told)
    this.#letIn()
    this.#wakeFlushers()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // ---- buffer ------------------------------------------------------------------------------------------------------------

  #push(
    message: SpooledMessage,
    number: number,
    spooling: Entry['spooling'],
    caller: Pick<Entry, 'resolve' | 'reject'>,
  ): Entry {
    const entry = { message, number, sizeBytes: sizeOf(message), spooling, isSendable: spooling === null, ...caller }
    this.#queue.push(entry)
    this.#bufferedBytes += entry.sizeBytes
    return entry
  }

  /** Takes entries out of the queue: what waits for room gets it, and who flushes hears of it. */
  #remove(index: number, count: number): Entry[] {
    const removed = this.#queue.splice(index, count)
    for (const { sizeBytes } of removed) this.#bufferedBytes -= sizeBytes
    this.#letIn()
    this.#wakeFlushers()
    return removed
  }

  /** One message always has room, however large, so that nothing waits for ever. */
  #hasRoom(sizeBytes: number): boolean {
    const isOver = this.#isClosing || this.#abort.signal.aborted
    return isOver || this.#queue.length === 0 || this.#fits(this.#bufferedBytes + sizeBytes)
  }

  #fits(sizeBytes: number): boolean {
    return sizeBytes <= (this.#options.bufferBytes ?? SDK_DEFAULTS.producerBufferBytes)
  }

  #enterLater(message: SpooledMessage, sizeBytes: number): Promise<SendConfirmation | null> {
    if (this.#roomWaiters.length >= SDK_DEFAULTS.producerMaxWaiting) {
      const text = `buffer: ${this.#roomWaiters.length} messages wait for room already, expected that some of them are awaited`
      return Promise.reject(new EdgeError('EDGE_BACKPRESSURE', text))
    }
    const number = ++this.#lastNumber
    return new Promise((resolve) => {
      this.#roomWaiters.push({ number, sizeBytes, enter: () => resolve(this.#enter(message, number)) })
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
    const inFlightBytes = this.#queue.slice(0, this.#inFlightCount).reduce((sum, entry) => sum + entry.sizeBytes, 0)
    // Nothing is given up for what gets no room all the same.
    const isInVain = this.#inFlightCount > 0 && !this.#fits(inFlightBytes + sizeBytes)
    if (this.#options.overflow === 'reject' || isInVain) {
      const message = `buffer: ${this.#bufferedBytes} bytes wait already, no room for ${sizeBytes} more`
      throw new EdgeError('EDGE_BACKPRESSURE', message)
    }
    const [oldest] = this.#remove(this.#inFlightCount, 1)
    if (oldest === undefined) return
    this.#droppedCount += 1
    oldest.reject(new EdgeError('EDGE_BACKPRESSURE', 'given up to make room for newer messages'))
    // A server that is away for days holds up the batch on its way for as long: nobody keeps what goes behind it.
    await this.#gaveUp(oldest.spooling, this.#inFlightCount)
  }

  // ---- flushing ----------------------------------------------------------------------------------------------------------

  #isToldUpTo(number: number): boolean {
    const oldest = this.#queue[0] ?? this.#roomWaiters[0]
    return number <= this.#toldUpTo || oldest === undefined || number < oldest.number
  }

  #wakeFlushers(): void {
    for (const wake of this.#flushers.splice(0)) wake()
  }

  // ---- sending -----------------------------------------------------------------------------------------------------------

  #schedule(): void {
    const [oldest] = this.#queue
    if (this.#isSending || oldest === undefined) return
    const isFull =
      this.#queue.length >= (this.#options.batchCount ?? SDK_DEFAULTS.producerBatchCount) ||
      this.#bufferedBytes >= (this.#options.batchBytes ?? SDK_DEFAULTS.producerBatchBytes)
    const lingerMs = this.#options.lingerMs ?? SDK_DEFAULTS.producerLingerMs
    if (isFull || lingerMs === 0 || oldest.number <= this.#flushUpTo) this.#sendNow()
    else this.#stopLinger ??= setLongTimeout(() => this.#sendNow(), lingerMs)
  }

  #sendNow(): void {
    this.#stopLinger?.()
    this.#stopLinger = null
    if (!this.#isSending) void this.#drain()
  }

  async #drain(): Promise<void> {
    this.#isSending = true
    while (!this.#abort.signal.aborted) {
      const batch = this.#nextBatch()
      this.#inFlightCount = batch.length
      if (batch.length === 0) break
      await this.#sendBatch(batch)
    }
    this.#isSending = false
  }

  #nextBatch(): Entry[] {
    const maxCount = Math.min(this.#mostCount, this.#options.batchCount ?? SDK_DEFAULTS.producerBatchCount)
    const maxBytes = this.#options.batchBytes ?? SDK_DEFAULTS.producerBatchBytes
    return this.#queue.slice(0, countOfNextBatch(this.#queue, { maxCount, maxBytes }))
  }

  async #sendBatch(whole: readonly Entry[]): Promise<void> {
    const { stream, topic, partitioning = { kind: 'balanced' }, retries = SDK_DEFAULTS.producerRetries } = this.#options
    let batch = whole
    let attempt = 0
    while (!this.#abort.signal.aborted) {
      let isPacked = false
      try {
        const messages = batch.map((entry) => entry.message)
        const records = packMessages(messages, 0n, null)
        isPacked = true
        const confirmation = await this.#messages.sendBatch(stream, topic, partitioning, records)
        this.#backoff.reset()
        await this.#settle(batch, (entry, index) => {
          const baseOffset = confirmation === null ? 0n : confirmation.baseOffset + BigInt(index)
          entry.resolve(confirmation === null ? null : { ...confirmation, baseOffset })
        })
        return
      } catch (cause) {
        const error = toEdgeError(cause)
        if (this.#client.state === 'closed') return this.#end(error)
        const hasSpool = this.#options.spool !== undefined
        const sequel = sequelOf({ error, isPacked, count: batch.length, attempt, retries, hasSpool })
        if (sequel === 'refused') return await this.#refused(batch, error)
        if (sequel === 'given-up') return await this.#settle(batch, (entry) => entry.reject(error))
        if (sequel === 'held') this.#hold(error)
        // A smaller one also gets over a link that a large one does not.
        if (sequel === 'held' || sequel === 'split') batch = this.#narrow(batch)
        if (sequel === 'split') continue
        attempt += 1
        await sleep(this.#backoff.nextDelayUs() / US_MS, this.#abort.signal)
      }
    }
  }

  async #settle(batch: readonly Entry[], settle: (entry: Entry, index: number) => void): Promise<void> {
    this.#heldUpBy = null
    this.#mostCount *= 2
    this.#inFlightCount = 0
    batch.forEach(settle)
    this.#remove(0, batch.length)
    await this.#doneWith(batch.length)
  }

  #narrow(batch: readonly Entry[]): readonly Entry[] {
    this.#mostCount = Math.ceil(batch.length / 2)
    this.#inFlightCount = this.#mostCount
    return batch.slice(0, this.#mostCount)
  }

  async #refused(batch: readonly Entry[], error: EdgeError): Promise<void> {
    const { spool, onRefused } = this.#options
    if (spool !== undefined) this.#refusedCount += batch.length
    await this.#settle(batch, (entry) => {
      entry.reject(error)
      // In a turn of its own: what it throws is none of ours.
      if (spool !== undefined && onRefused !== undefined) queueMicrotask(() => onRefused(entry.message, error))
    })
  }

  /** The spool keeps it all: who waits for one is told so, and the attempts go on. */
  #hold(error: EdgeError): void {
    this.#heldUpBy = error
    const told = this.#kept(error)
    for (const entry of this.#queue) {
      if (!entry.isSendable) break
      entry.reject(told)
      this.#toldUpTo = entry.number
    }
    this.#wakeFlushers()
  }

  #kept(error: EdgeError): EdgeError {
    if (this.#options.spool === undefined) return error
    const details = { ...error.details, isKept: true }
    return new EdgeError(error.code, `${error.message} (the spool keeps the message)`, { details, cause: error })
  }

  // ---- spool -------------------------------------------------------------------------------------------------------------

  /** Were it not written, the messages would be sent once more after a restart: their ids tell. */
  #doneWith(count: number): Promise<void> {
    return this.#tellSpool((spool) => spool.acknowledged(count))
  }

  #gaveUp(spooling: Entry['spooling'], aheadCount: number): Promise<void> {
    return this.#tellSpool(async (spool) => {
      // Of what did not come to the disk there is nothing to tell.
      await spooling
      await spool.gaveUp(aheadCount)
    })
  }

  #tellSpool(tell: (spool: Spool) => Promise<void>): Promise<void> {
    const { spool } = this.#options
    if (spool === undefined) return Promise.resolve()
    this.#spoolTold = this.#spoolTold.then(() => tell(spool)).catch(() => {})
    return this.#spoolTold
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
