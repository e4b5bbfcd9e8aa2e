/**
 * One connection of the load, in either generation of the protocol. The older one is spoken with frames that were encoded
 * beforehand, so that what is measured is the server; the newer one numbers and checks each frame, and the work of that is
 * in the figures.
 */
import { systemClock } from '../../clock.ts'
import { EdgeError } from '../../errors.ts'
import { randomId } from '../../random-id.ts'
import { Connection, type ConnectionCredentials, type Dial, fixedPatience } from '../../sdk/index.ts'
import type { RecordBatch } from '../../sdk/wire/batch.ts'
import { CODE } from '../../sdk/wire/codes.ts'
import type { Dialect } from '../../sdk/wire/dialect.ts'
import { frameOf, loginFrame, RawClient } from './raw-client.ts'

export interface LoadTarget {
  readonly dial: Dial
  readonly credentials: ConnectionCredentials
  readonly dialect: Dialect
}

/** What one send or poll is about. */
export interface LoadPlace {
  readonly stream: string
  readonly topic: string
  readonly partitionId: number
}

export interface LoadClient {
  /** Resolves when the server acknowledged it. */
  send(place: LoadPlace, batch: RecordBatch): Promise<void>
  /** @returns how many messages came. */
  poll(place: LoadPlace, offset: bigint, count: number): Promise<number>
  /** Gives up at once; whoever waits gets `reason`. */
  abort(reason: EdgeError): void
  close(): void
}

const CONNECT_TIMEOUT_MS = 15_000
/** The load has a limit of its own for answers that do not come. */
const NO_TIMEOUT_MS = 3_600_000
/** Where the count of messages stands in a poll's answer of the older generation, behind partition and current offset. */
const POLL_COUNT_AT = 12

/** Logged in. @throws {EdgeError} what dialling and login throw. */
export async function openLoadClient(target: LoadTarget, signal: AbortSignal): Promise<LoadClient> {
  if (target.dialect === 'vsr') return await openNewer(target, signal)
  const client = await RawClient.open(target.dial, signal)
  const stop = () => client.abort(new EdgeError('EDGE_SHUTTING_DOWN', 'interrupted'))
  signal.addEventListener('abort', stop)
  try {
    await client.ask(loginFrame(target.credentials))
    return new OlderClient(client)
  } catch (error) {
    client.close()
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

class OlderClient implements LoadClient {
  readonly #client: RawClient
  readonly #frames = new Map<RecordBatch, Uint8Array>()

  constructor(client: RawClient) {
    this.#client = client
  }

  async send(place: LoadPlace, batch: RecordBatch): Promise<void> {
    await this.#client.ask(this.#sendFrame(place, batch))
  }

  async poll(place: LoadPlace, offset: bigint, count: number): Promise<number> {
    const answer = await this.#client.ask(frameOf({ code: CODE.pollMessages, body: pollBody(place, offset, count) }))
    return new DataView(answer.buffer, answer.byteOffset).getUint32(POLL_COUNT_AT, true)
  }

  abort(reason: EdgeError): void {
    this.#client.abort(reason)
  }

  close(): void {
    this.#client.close()
  }

  /** A client sends one batch again and again. */
  #sendFrame(place: LoadPlace, batch: RecordBatch): Uint8Array {
    const known = this.#frames.get(batch)
    if (known !== undefined) return known
    const frame = frameOf({ code: CODE.sendMessages, body: sendBody(place, batch) })
    this.#frames.set(batch, frame)
    return frame
  }
}

async function openNewer({ dial, credentials }: LoadTarget, signal: AbortSignal): Promise<LoadClient> {
  const connection = await Connection.open(
    {
      dial,
      generation: 'vsr',
      credentials,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      patience: fixedPatience(NO_TIMEOUT_MS),
      heartbeatIntervalMs: 0,
      maxInFlight: 1,
      clock: systemClock,
      randomU128: randomId,
    },
    signal,
  )
  return {
    async send(place, batch) {
      await connection.request(CODE.sendMessages, sendBody(place, batch))
    },
    async poll(place, offset, count) {
      const { batches } = await connection.request(CODE.pollMessages, pollBody(place, offset, count))
      return batches.reduce((sum, { take }) => sum + take, 0)
    },
    abort: (reason) => connection.abort(reason),
    close: () => void connection.close(),
  }
}

const sendBody = ({ stream, topic, partitionId }: LoadPlace, batch: RecordBatch) =>
  ({ stream, topic, partitioning: { kind: 'partition', partitionId }, batch }) as const

const pollBody = ({ stream, topic, partitionId }: LoadPlace, offset: bigint, count: number) =>
  ({
    consumer: { kind: 'consumer', id: 1 },
    stream,
    topic,
    partitionId,
    strategy: { kind: 'offset', offset },
    count,
    autoCommit: false,
  }) as const
