/**
 * The load generator: N connections, each with one request in flight. What is sent is made once a partition. It
 * belongs into a process of its own, so that the server has its core.
 */
import { EdgeError } from '../../errors.ts'
import type { RecordBatch } from '../../sdk/wire/batch.ts'
import { encodeRecords } from '../../sdk/wire/messages.ts'
import { Latencies } from './latencies.ts'
import { type LoadClient, type LoadTarget, openLoadClient } from './load-client.ts'

export interface LoadOrder {
  readonly connections: number
  readonly partitions: number
  readonly kind: 'send' | 'poll'
  /** Messages a request. */
  readonly batch: number
  readonly payloadBytes: number
  /** Ends after this many requests over all connections, warming up included, or after `seconds`, whichever comes first. */
  readonly requests: number
  readonly seconds: number
  /** Load before the measurement begins, so that no server is measured while it compiles or allocates. */
  readonly warmUpSeconds?: number
  readonly stream: string
  readonly topic: string
}

export interface LoadResult {
  readonly requests: number
  readonly messages: number
  readonly seconds: number
  readonly messagesPerSecond: number
  readonly p50Us: number
  readonly p99Us: number
  /** The bound of requests was reached before the time was over. */
  readonly isCutShort: boolean
}

export interface LoadHooks {
  /** Warming up is over. */
  readonly onMeasuring?: () => void
  /** Ends it at once, with EDGE_SHUTTING_DOWN. */
  readonly signal?: AbortSignal
}

/** Of the bound of requests: what is left must be enough to measure. */
const WARM_UP_SHARE = 0.25
/** Longer than a server waits for room in its log before it answers. */
const ANSWER_TIMEOUT_MS = 30_000

/** @throws {EdgeError} what the server refuses, EDGE_UPSTREAM_TIMEOUT when it no longer answers, EDGE_SHUTTING_DOWN. */
export async function runLoad(order: LoadOrder, target: LoadTarget, hooks: LoadHooks = {}): Promise<LoadResult> {
  const { signal = new AbortController().signal } = hooks
  const interrupted = () => new EdgeError('EDGE_SHUTTING_DOWN', 'interrupted')
  if (signal.aborted) throw interrupted()
  const clients: LoadClient[] = []
  const abort = (reason: EdgeError): void => {
    for (const client of clients) client.abort(reason)
  }
  const stop = () => abort(interrupted())
  signal.addEventListener('abort', stop)
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    await connectAll(clients, order.connections, target, signal)
    const timeoutMs = (order.seconds + (order.warmUpSeconds ?? 0)) * 1000 + ANSWER_TIMEOUT_MS
    const late = () => new EdgeError('EDGE_UPSTREAM_TIMEOUT', `no answer within ${ANSWER_TIMEOUT_MS / 1000} s`)
    timer = setTimeout(() => abort(late()), timeoutMs)
    return await new Load(order, hooks.onMeasuring ?? (() => {})).run(clients)
  } catch (error) {
    throw signal.aborted ? interrupted() : error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    for (const client of clients) client.close()
  }
}

/** One after the other: a login costs the server as much as thousands of messages. */
async function connectAll(
  clients: LoadClient[],
  count: number,
  target: LoadTarget,
  signal: AbortSignal,
): Promise<void> {
  while (clients.length < count) {
    clients.push(await openLoadClient(target, signal))
    signal.throwIfAborted()
  }
}

class Load {
  readonly #order: LoadOrder
  readonly #onMeasuring: () => void
  readonly #latencies = new Latencies()
  readonly #batches = new Map<number, RecordBatch>()
  readonly #warmMs: number
  readonly #warmRequests: number
  #asked = 0
  #messages = 0
  #isWarm = false
  #startedMs: number
  #endMs: number

  constructor(order: LoadOrder, onMeasuring: () => void) {
    const { warmUpSeconds = 0 } = order
    this.#order = order
    this.#onMeasuring = onMeasuring
    this.#warmMs = performance.now() + warmUpSeconds * 1000
    this.#warmRequests = warmUpSeconds === 0 ? 0 : Math.floor(order.requests * WARM_UP_SHARE)
    this.#startedMs = this.#warmMs
    this.#endMs = this.#warmMs + order.seconds * 1000
  }

  async run(clients: readonly LoadClient[]): Promise<LoadResult> {
    await Promise.all(clients.map((client, index) => this.#keepAsking(client, index % this.#order.partitions)))
    const endedMs = performance.now()
    const seconds = (endedMs - this.#startedMs) / 1000
    const [p50Us, p99Us] = this.#latencies.percentilesUs([0.5, 0.99])
    return {
      requests: this.#latencies.count,
      messages: this.#messages,
      seconds,
      messagesPerSecond: this.#messages / seconds,
      p50Us,
      p99Us,
      isCutShort: endedMs < this.#endMs,
    }
  }

  async #keepAsking(client: LoadClient, partitionId: number): Promise<void> {
    const { kind, stream, topic, batch: count } = this.#order
    const place = { stream, topic, partitionId }
    const batch = kind === 'send' ? this.#batchFor(partitionId) : null
    let offset = 0n
    while (this.#asked < this.#order.requests && performance.now() < this.#endMs) {
      const askedMs = performance.now()
      if (!this.#isWarm && (askedMs >= this.#warmMs || this.#asked >= this.#warmRequests)) this.#begin()
      this.#asked++
      const moved = batch === null ? await client.poll(place, offset, count) : count
      if (batch !== null) await client.send(place, batch)
      this.#latencies.add((performance.now() - askedMs) * 1000)
      // At the end of the partition: again from its beginning.
      offset = moved === 0 ? 0n : offset + BigInt(moved)
      this.#messages += moved
    }
  }

  #begin(): void {
    this.#isWarm = true
    this.#latencies.clear()
    this.#messages = 0
    this.#startedMs = performance.now()
    this.#endMs = this.#startedMs + this.#order.seconds * 1000
    this.#onMeasuring()
  }

  #batchFor(partitionId: number): RecordBatch {
    const known = this.#batches.get(partitionId)
    if (known !== undefined) return known
    const batch = batchOf(this.#order, partitionId)
    this.#batches.set(partitionId, batch)
    return batch
  }
}

/** Payloads of printable text that compresses as little readings would. */
function batchOf(order: LoadOrder, partitionId: number): RecordBatch {
  const payload = new Uint8Array(order.payloadBytes)
  for (let i = 0; i < payload.length; i++) payload[i] = 32 + ((i * 7 + partitionId) % 90)
  const message = { originUs: BigInt(Date.now()) * 1000n, payload }
  return encodeRecords(Array.from({ length: order.batch }, () => message))
}
