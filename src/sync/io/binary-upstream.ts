/** A central server over Iggy's binary protocol, both generations, over TCP, TLS or WebTransport. */
import { type Clock, US_MS } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { randomId } from '../../random-id.ts'
import { Connection, type ConnectionTarget, dialOf } from '../../sdk/index.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { CODE, type CommandCode } from '../../sdk/wire/codes.ts'
import type { RequestBody, ResponseBody } from '../../sdk/wire/commands/index.ts'
import { RecordCursor } from '../../sdk/wire/kernel/record-cursor.ts'
import { NO_OPTIONS } from '../../sdk/wire/options.ts'
import { failureKindOf } from '../core/classify.ts'
import type { Exchange, LinkPace } from '../core/link-pace.ts'
import type { TopicName } from '../core/route.ts'
import type { TailMessage, TailPage, TailRequest } from '../core/tail.ts'
import { Heartbeat } from './heartbeat.ts'
import { contentInBatches } from './record-contents.ts'
import { TopicRegistry } from './topic-registry.ts'
import type { Turns } from './turns.ts'
import type { Upstream } from './upstream.ts'

export interface BinaryUpstreamSettings {
  readonly target: ConnectionTarget
  readonly clock: Clock
  /** Outlives the connection: what was learned of the link holds for the next one. */
  readonly pace: LinkPace
  readonly connectTimeoutMs: number
  readonly heartbeatIntervalMs: number
  readonly maxInFlight: number
}

const PING: Exchange = { kind: 'session', upBytes: 0, downBytes: 0 }
const TOPIC: Exchange = { kind: 'topic', upBytes: 0, downBytes: 0 }
/** Never stores an offset, so the number names nobody. */
const TAIL_READER = { kind: 'consumer', id: 1 } as const

/** @throws {EdgeError} what dialling and login throw. */
export async function openBinaryUpstream(
  settings: BinaryUpstreamSettings,
  signal: AbortSignal,
  turns: Turns,
): Promise<Upstream> {
  const { target, clock, pace, connectTimeoutMs, maxInFlight } = settings
  pace.begin()
  const connection = await Connection.open(
    {
      dial: dialOf({ ...target, options: { ...target.options, connectTimeoutMs } }),
      generation: target.options.generation,
      credentials: target.credentials,
      connectTimeoutMs,
      patience: pace.patienceFor('session'),
      heartbeatIntervalMs: 0,
      maxInFlight,
      clock,
      randomU128: randomId,
    },
    signal,
  )
  return new BinaryUpstream(connection, settings, turns)
}

class BinaryUpstream implements Upstream {
  readonly protocol: 'classic' | 'vsr'
  readonly peer: string
  readonly closed: Promise<EdgeError>
  readonly #connection: Connection
  readonly #settings: BinaryUpstreamSettings
  readonly #heartbeat: Heartbeat
  readonly #topics: TopicRegistry

  constructor(connection: Connection, settings: BinaryUpstreamSettings, turns: Turns) {
    this.#connection = connection
    this.#settings = settings
    this.protocol = connection.dialect
    this.peer = connection.peer
    this.closed = connection.closed
    this.#heartbeat = new Heartbeat({
      intervalMs: settings.heartbeatIntervalMs,
      clock: settings.clock,
      turns,
      // Behind a large send it would be late, and nothing to worry about.
      ping: async () => {
        if (connection.inFlight === 0) await this.#request(CODE.ping, null, PING)
      },
    })
    void this.closed.then(() => this.#heartbeat.close())
    this.#topics = new TopicRegistry({
      find: async ({ streamName: stream, topicName: topic }) => {
        const found = await this.#request(CODE.getTopic, { stream, topic }, TOPIC)
        return found && { partitionCount: found.partitionsCount, incarnation: `${found.createdAtUs}` }
      },
      createStream: async (name) => {
        await this.#request(CODE.createStream, { name, options: NO_OPTIONS }, TOPIC)
      },
      createTopic: async ({ streamName: stream, topicName: name }, partitionsCount) => {
        const body = { stream, name, partitionsCount, replicationFactor: 0, options: NO_OPTIONS }
        await this.#request(CODE.createTopic, body, TOPIC)
      },
      addPartitions: async ({ streamName: stream, topicName: topic }, count) => {
        await this.#request(CODE.createPartitions, { stream, topic, count }, TOPIC)
      },
    })
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
    const { streamName: stream, topicName } = topic
    const strategy =
      request.kind === 'last' ? { kind: 'last' as const } : { kind: 'offset' as const, offset: request.offset }
    const { count, expectedBytes: downBytes } = request
    const body = { consumer: TAIL_READER, stream, topic: topicName, partitionId, strategy, count, autoCommit: false }
    const exchange = { kind: 'look', upBytes: 0, downBytes } as const
    const polled = await this.#forTopic(topic, this.#request(CODE.pollMessages, body, exchange, sizeOfPage))
    const { currentOffset, batches } = polled
    const contentAt = (offset: bigint) => contentInBatches(batches, offset)
    return { currentOffset, messages: batches.flatMap(idsOf), sizeBytes: sizeOfPage(polled), contentAt }
  }

  async send(topic: TopicName, partitionId: number, batch: StoredBatch): Promise<bigint | null> {
    const { streamName: stream, topicName } = topic
    const body = { stream, topic: topicName, partitioning: { kind: 'partition' as const, partitionId }, batch }
    const exchange = { kind: 'send', upBytes: batch.recordsView.length, downBytes: 0 } as const
    const sent = await this.#forTopic(topic, this.#request(CODE.sendMessages, body, exchange))
    return sent.confirmations[0]?.baseOffset ?? null
  }

  abort(error: EdgeError): void {
    this.#connection.abort(error)
  }

  async #request<C extends CommandCode>(
    code: C,
    body: RequestBody<C>,
    exchange: Exchange,
    downBytesOf: (answer: ResponseBody<C>) => number = () => 0,
  ): Promise<ResponseBody<C>> {
    const { clock, pace } = this.#settings
    const { kind, upBytes } = exchange
    const startUs = clock.monotonicUs()
    this.#heartbeat.sent()
    const limits = { patience: pace.patienceFor(kind), transferMs: pace.transferUs(exchange) / US_MS }
    try {
      const answer = await this.#connection.request(code, body, limits)
      pace.carried({ upBytes, downBytes: downBytesOf(answer) }, clock.monotonicUs() - startUs)
      return answer
    } catch (cause) {
      const error = toEdgeError(cause)
      if (error.code === 'EDGE_UPSTREAM_TIMEOUT') pace.timedOut(exchange)
      // The session is of no use any more, although the connection may be: begin anew, with a login.
      if (failureKindOf(error) === 'lost') this.#connection.abort(error)
      throw error
    }
  }

  async #forTopic<T>(topic: TopicName, work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      if (error instanceof EdgeError && failureKindOf(error) === 'missing') this.#topics.forget(topic)
      throw error
    }
  }
}

function sizeOfPage({ batches }: ResponseBody<typeof CODE.pollMessages>): number {
  return batches.reduce((sum, { recordsView }) => sum + recordsView.length, 0)
}

/** Offsets and ids of a polled batch, without copying what they belong to. */
function idsOf(batch: StoredBatch): TailMessage[] {
  const cursor = new RecordCursor(batch.recordsView, batch.baseOriginUs)
  const view = new DataView(batch.recordsView.buffer, batch.recordsView.byteOffset, batch.recordsView.byteLength)
  const found: TailMessage[] = []
  for (let index = 0; index < batch.skip + batch.take && cursor.next(); index++) {
    if (index < batch.skip) continue
    const { idAt } = cursor
    const id = idAt < 0 ? 0n : (view.getBigUint64(idAt + 8, true) << 64n) | view.getBigUint64(idAt, true)
    found.push({ offset: batch.baseOffset + BigInt(index), id })
  }
  return found
}
