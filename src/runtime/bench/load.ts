/**
 * The load generator: N connections, each with one request in flight. Frames of sends are encoded once a partition. It
 * belongs into a process of its own, so that the server has its core.
 */
import { EdgeError } from '../../errors.ts'
import type { ConnectionCredentials, Dial } from '../../sdk/index.ts'
import { CODE } from '../../sdk/wire/codes.ts'
import { encodeRecords } from '../../sdk/wire/messages.ts'
import { Latencies } from './latencies.ts'
import { frameOf, loginFrame, RawClient } from './raw-client.ts'

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

export interface LoadTarget {
  readonly dial: Dial
  readonly credentials: ConnectionCredentials
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
/** Where the count of messages stands in a poll's answer, behind partition and current offset. */
const POLL_COUNT_AT = 12

/** @throws {EdgeError} what the server refuses, EDGE_UPSTREAM_TIMEOUT when it no longer answers, EDGE_SHUTTING_DOWN. */
export async function runLoad(order: LoadOrder, target: LoadTarget, hooks: LoadHooks = {}): Promise<LoadResult> {
  const { signal = new AbortController().signal } = hooks
  const interrupted = () => new EdgeError('EDGE_SHUTTING_DOWN', 'interrupted')
  if (signal.aborted) throw interrupted()
  const clients: RawClient[] = []
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
async function connectAll(clients: RawClient[], count: number, target: LoadTarget, signal: AbortSignal): Promise<void> {
  const login = loginFrame(target.credentials)
  while (clients.length < count) {
    const client = await RawClient.open(target.dial, signal)
    clients.push(client)
    signal.throwIfAborted()
    await client.ask(login)
  }
}

class Load {
  readonly #order: LoadOrder
  readonly #onMeasuring: () => void
  readonly #latencies = new Latencies()
  readonly #sendFrames = new Map<number, Uint8Array>()
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

  async run(clients: readonly RawClient[]): Promise<LoadResult> {
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

  async #keepAsking(client: RawClient, partitionId: number): Promise<void> {
    const send = this.#order.kind === 'send' ? this.#sendFrame(partitionId) : null
    let offset = 0n
    while (this.#asked < this.#order.requests && performance.now() < this.#endMs) {
      const askedMs = performance.now()
      if (!this.#isWarm && (askedMs >= this.#warmMs || this.#asked >= this.#warmRequests)) this.#begin()
      this.#asked++
      const answer = await client.ask(send ?? pollFrame(this.#order, partitionId, offset))
      this.#latencies.add((performance.now() - askedMs) * 1000)
      const count = send === null ? messageCountOf(answer) : this.#order.batch
      // At the end of the partition: again from its beginning.
      offset = count === 0 ? 0n : offset + BigInt(count)
      this.#messages += count
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

  #sendFrame(partitionId: number): Uint8Array {
    const known = this.#sendFrames.get(partitionId)
    if (known !== undefined) return known
    const frame = sendFrame(this.#order, partitionId)
    this.#sendFrames.set(partitionId, frame)
    return frame
  }
}

/** Payloads of printable text that compresses as little readings would. */
function sendFrame(order: LoadOrder, partitionId: number): Uint8Array {
  const payload = new Uint8Array(order.payloadBytes)
  for (let i = 0; i < payload.length; i++) payload[i] = 32 + ((i * 7 + partitionId) % 90)
  const message = { originUs: BigInt(Date.now()) * 1000n, payload }
  const batch = encodeRecords(Array.from({ length: order.batch }, () => message))
  const partitioning = { kind: 'partition', partitionId } as const
  return frameOf({ code: CODE.sendMessages, body: { stream: order.stream, topic: order.topic, partitioning, batch } })
}

function pollFrame(order: LoadOrder, partitionId: number, offset: bigint): Uint8Array {
  const body = {
    consumer: { kind: 'consumer', id: 1 },
    stream: order.stream,
    topic: order.topic,
    partitionId,
    strategy: { kind: 'offset', offset },
    count: order.batch,
    autoCommit: false,
  } as const
  return frameOf({ code: CODE.pollMessages, body })
}

function messageCountOf(pollAnswer: Uint8Array): number {
  return new DataView(pollAnswer.buffer, pollAnswer.byteOffset).getUint32(POLL_COUNT_AT, true)
}
