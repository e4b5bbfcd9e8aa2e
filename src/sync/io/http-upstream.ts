/**
 * A central server over Iggy's REST API, where nothing but HTTP gets through. Times of origin are stamped anew by the
 * server, so ours travels in a header of the record. Exact numbers: ids have 39 digits, which plain JSON parsing rounds.
 */
import { type Clock, US_MS } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { type ConnectionTarget, unpackMessages } from '../../sdk/index.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { failureKindOf } from '../core/classify.ts'
import type { LinkPace } from '../core/link-pace.ts'
import { withOrigin } from '../core/origin-header.ts'
import type { RequestKind } from '../core/round-trip.ts'
import type { TopicName } from '../core/route.ts'
import type { TailPage, TailRequest } from '../core/tail.ts'
import { ConnectionEnds } from './connection-ends.ts'
import { type HttpCall, HttpClient } from './http-client.ts'
import { contentOfJson, type JsonMessage } from './record-contents.ts'
import { Slots } from './slots.ts'
import { TopicRegistry } from './topic-registry.ts'
import type { Turns } from './turns.ts'
import type { Upstream } from './upstream.ts'

export interface HttpUpstreamSettings {
  readonly target: ConnectionTarget
  readonly clock: Clock
  /** Outlives the link: what was learned of it holds for the next one. */
  readonly pace: LinkPace
  readonly connectTimeoutMs: number
  readonly maxInFlight: number
  readonly httpCheckIntervalMs: number
}

/** Servers without these two take 0 for their default. */
const NEW_TOPIC = { compression_algorithm: 'none', message_expiry: 0, max_topic_size: 0 }

/** Connects by logging in. @throws {EdgeError} EDGE_CREDENTIALS_INVALID, EDGE_UPSTREAM_UNREACHABLE, EDGE_UPSTREAM_TIMEOUT. */
export async function openHttpUpstream(
  settings: HttpUpstreamSettings,
  signal: AbortSignal,
  turns: Turns,
): Promise<Upstream> {
  settings.pace.begin()
  const upstream = new HttpUpstream(settings, signal, turns)
  try {
    await upstream.login()
    return upstream
  } catch (cause) {
    // Nobody would end its connections.
    const error = toEdgeError(cause)
    upstream.abort(error)
    throw error
  }
}

class HttpUpstream implements Upstream {
  readonly protocol = 'http'
  readonly peer: string
  readonly closed: Promise<EdgeError>
  readonly #settings: HttpUpstreamSettings
  readonly #http: HttpClient
  readonly #slots: Slots
  readonly #turns: Turns
  readonly #topics: TopicRegistry
  readonly #settleClosed: (error: EdgeError) => void
  #token: string | null = null
  #timer: ReturnType<typeof setInterval> | null = null
  #isChecking = false
  #isClosed = false
  #process: string | null = null

  constructor(settings: HttpUpstreamSettings, signal: AbortSignal, turns: Turns) {
    this.#settings = settings
    this.#turns = turns
    const { clock, target, connectTimeoutMs, maxInFlight, httpCheckIntervalMs } = settings
    const { host, port, options } = target
    this.#slots = new Slots(maxInFlight)
    this.peer = `${host}:${port}`
    const ends = new ConnectionEnds({
      clock,
      lookIntervalUs: httpCheckIntervalMs * US_MS,
      onNews: () => void this.#check(),
    })
    this.#http = new HttpClient({ host, port, ...options, connectTimeoutMs, maxSockets: maxInFlight, signal, ends })
    const { promise, resolve } = Promise.withResolvers<EdgeError>()
    this.closed = promise
    this.#settleClosed = resolve
    this.#topics = new TopicRegistry({
      find: async (topic) => {
        const asked = this.#ask({ kind: 'topic', method: 'GET', path: topicPath(topic), isLook: true })
        const found = await asked.catch((error) => {
          if (failureKindOf(toEdgeError(error)) === 'missing') return null
          throw error
        })
        const partitionCount = found?.partitions_count
        return typeof partitionCount === 'number' ? { partitionCount, incarnation: `${found?.created_at}` } : null
      },
      createStream: async (name) => {
        await this.#ask({ kind: 'topic', method: 'POST', path: '/streams', body: { name } })
      },
      createTopic: async ({ streamName, topicName }, partitionCount) => {
        const body = { name: topicName, partitions_count: partitionCount, ...NEW_TOPIC }
        await this.#ask({
          kind: 'topic',
          method: 'POST',
          path: `/streams/${encodeURIComponent(streamName)}/topics`,
          body,
        })
      },
      addPartitions: async (topic, count) => {
        const body = { partitions_count: count }
        await this.#ask({ kind: 'topic', method: 'POST', path: `${topicPath(topic)}/partitions`, body })
      },
    })
  }

  async login(): Promise<void> {
    const { credentials } = this.#settings.target
    if (credentials === null) return
    const isPassword = credentials.kind === 'password'
    const path = isPassword ? '/users/login' : '/personal-access-tokens/login'
    const body = isPassword
      ? { username: credentials.username, password: credentials.password }
      : { token: credentials.token }
    const answer = await this.#ask({ kind: 'session', method: 'POST', path, body })
    const access = answer?.access_token
    const token = typeof access === 'object' && access !== null && 'token' in access ? access.token : null
    if (typeof token !== 'string') throw new EdgeError('EDGE_FRAME_INVALID', `${this.peer}: login without a token`)
    this.#token = token
    await this.#check()
    this.#timer = setInterval(() => void this.#check(), this.#settings.httpCheckIntervalMs)
    this.#timer.unref()
  }

  /**
   * Looks whether it is still the same server process. HTTP has no connection whose end would tell, and a server that
   * started anew may have forgotten what it acknowledged: then the link begins anew, with a look at every tail.
   */
  async #check(): Promise<void> {
    // An end after our own is no news.
    if (this.#isChecking || this.#isClosed) return
    this.#isChecking = true
    try {
      const call = { kind: 'session', method: 'GET', path: '/stats', isLook: true } as const
      const stats = await this.#turns.share(() => this.#ask(call))
      const process = `${stats?.process_id} ${stats?.start_time}`
      this.#process ??= process
      if (process !== this.#process) this.abort(new EdgeError('EDGE_CONNECTION_LOST', `${this.peer}: started anew`))
    } catch {
      // Lost links were given up in `#request`; a user without the right to read statistics relies on its token's end.
    } finally {
      this.#isChecking = false
    }
  }

  ensureTopic(topic: TopicName, partitionCount: number): Promise<string> {
    return this.#topics.ensure(topic, partitionCount)
  }

  findTopic(topic: TopicName): Promise<string | null> {
    return this.#topics.find(topic)
  }

  forgetTopic(topic: TopicName): void {
    this.#topics.forget(topic)
  }

  async pollTail(topic: TopicName, partitionId: number, request: TailRequest): Promise<TailPage> {
    const query = new URLSearchParams({
      partition_id: String(partitionId),
      kind: request.kind === 'last' ? 'last' : 'offset',
      value: request.kind === 'last' ? '0' : String(request.offset),
      count: String(request.count),
      auto_commit: 'false',
    })
    const path = `${topicPath(topic)}/messages?${query}`
    const call = { kind: 'look', method: 'GET', path, downBytes: request.expectedBytes } as const
    const { answer, sizeBytes } = await this.#forTopic(topic, this.#request(call))
    const messages = Array.isArray(answer?.messages) ? answer.messages : []
    return {
      sizeBytes,
      currentOffset: exact(answer?.current_offset),
      messages: messages.map(({ header }) => ({ offset: exact(header?.offset), id: exact(header?.id) })),
      contentAt: (offset) => {
        const message = messages.find(({ header }) => exact(header?.offset) === offset)
        return message === undefined ? null : contentOfJson(message)
      },
    }
  }

  async send(topic: TopicName, partitionId: number, batch: StoredBatch): Promise<bigint | null> {
    const partition = new Uint8Array(4)
    new DataView(partition.buffer).setUint32(0, partitionId, true)
    const messages = unpackMessages(batch).map((message) => ({
      id: message.id.toString(),
      payload: message.payload.toBase64(),
      user_headers: withOrigin(message.headersBytes, message.originUs).toBase64(),
    }))
    const body = { partitioning: { kind: 'partition_id', value: partition.toBase64() }, messages }
    const answer = await this.#forTopic(
      topic,
      this.#ask({ kind: 'send', method: 'POST', path: `${topicPath(topic)}/messages`, body }),
    )
    const confirmations = Array.isArray(answer?.confirmations) ? answer.confirmations : []
    const baseOffset = confirmations[0]?.base_offset
    return baseOffset === undefined ? null : exact(baseOffset)
  }

  abort(error: EdgeError): void {
    this.#isClosed = true
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#http.close(error)
    this.#settleClosed(error)
  }

  async #ask(call: Request): Promise<HttpAnswer | null> {
    return (await this.#request(call)).answer
  }

  /** The agent does not count connections that it still waits for: what there is no slot for waits here. */
  async #request(call: Request): Promise<HttpResult> {
    await new Promise<void>((resolve) => this.#slots.acquire(resolve))
    try {
      return await this.#exchange(call)
    } finally {
      this.#slots.release()
    }
  }

  async #exchange(call: Request): Promise<HttpResult> {
    const { kind, method, path, body = null, isLook = false, downBytes = 0 } = call
    const { clock, pace } = this.#settings
    const bodyBytes = body === null ? null : new TextEncoder().encode(JSON.stringify(body))
    const exchange = { upBytes: bodyBytes?.length ?? 0, downBytes }
    const patience = pace.patienceFor(kind)
    const timeoutMs = (patience.timeoutUs + pace.transferUs(exchange)) / US_MS
    const startUs = clock.monotonicUs()
    try {
      const reply = await this.#http.request({ method, path, bodyBytes, isLook, token: this.#token, timeoutMs })
      const durationUs = clock.monotonicUs() - startUs
      patience.answered(durationUs)
      pace.carried({ ...exchange, downBytes: reply.sizeBytes }, durationUs)
      return { answer: reply.body as HttpAnswer | null, sizeBytes: reply.sizeBytes }
    } catch (cause) {
      const error = toEdgeError(cause)
      // Once, however many requests end with the link.
      if (error.code === 'EDGE_UPSTREAM_TIMEOUT' && !this.#isClosed) {
        patience.timedOut()
        pace.timedOut(exchange)
      }
      if (failureKindOf(error) === 'lost' || error.details.httpStatus === 401) this.abort(error)
      throw error
    }
  }

  async #forTopic<T>(topic: TopicName, work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      if (failureKindOf(toEdgeError(error)) === 'missing') this.#topics.forget(topic)
      throw error
    }
  }
}

interface Request extends Pick<HttpCall, 'method' | 'path'>, Partial<Pick<HttpCall, 'isLook'>> {
  readonly kind: RequestKind
  readonly body?: object
  /** Of an answer that may be large. */
  readonly downBytes?: number
}

interface HttpResult {
  readonly answer: HttpAnswer | null
  readonly sizeBytes: number
}

/** As much of the answers as is looked at; integers came in exactly. */
interface HttpAnswer {
  readonly partitions_count?: unknown
  readonly created_at?: unknown
  readonly process_id?: unknown
  readonly start_time?: unknown
  readonly access_token?: unknown
  readonly current_offset?: unknown
  readonly messages?: readonly HttpMessage[]
  readonly confirmations?: readonly { readonly base_offset?: unknown }[]
}

interface HttpMessage extends JsonMessage {
  readonly header?: { readonly offset?: unknown; readonly id?: unknown }
}

function topicPath({ streamName, topicName }: TopicName): string {
  return `/streams/${encodeURIComponent(streamName)}/topics/${encodeURIComponent(topicName)}`
}

function exact(value: unknown): bigint {
  return typeof value === 'number' || typeof value === 'bigint' ? BigInt(value) : 0n
}
