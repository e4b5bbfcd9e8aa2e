/** Single sends and polls. `Producer` and `Consumer` are built on them. */
import { randomId } from '../../random-id.ts'
import { type OutgoingMessage, type PolledMessage, packMessages, unpackMessages } from '../client/messages.ts'
import type { RecordBatch } from '../wire/batch.ts'
import { CODE } from '../wire/codes.ts'
import type { SendConfirmation } from '../wire/commands/messages.ts'
import type { Consumer, Identifier, Partitioning, PollingStrategy } from '../wire/primitives.ts'
import type { Requester } from './requester.ts'

export interface PollOptions {
  /** Default: consumer 1. */
  readonly consumer?: Consumer
  /** null: partition 0 for a single consumer, the server's choice for a group (older generation). */
  readonly partitionId?: number | null
  /** Default: next. */
  readonly strategy?: PollingStrategy
  readonly count?: number
  readonly autoCommit?: boolean
}

export interface Polled {
  readonly partitionId: number
  /** Offset of the newest message of the partition; 0 when it is empty. */
  readonly currentOffset: bigint
  readonly messages: readonly PolledMessage[]
}

const DEFAULT_CONSUMER: Consumer = { kind: 'consumer', id: 1 }
const DEFAULT_COUNT = 100

export class MessagesApi {
  readonly #requester: Requester

  constructor(requester: Requester) {
    this.#requester = requester
  }

  /**
   * Sends messages as one batch, which is stored whole or not at all.
   *
   * @param partitioning `{ kind: 'balanced' }`, `{ kind: 'partition', partitionId }` or `{ kind: 'key', keyView }`.
   * @returns where they lie, when the server tells (newer generation).
   * @throws {EdgeError} EDGE_STREAM_NOT_FOUND, EDGE_TOPIC_NOT_FOUND, EDGE_MESSAGE_TOO_LARGE, EDGE_BATCH_INVALID (origin
   *   times more than 71 minutes apart, newer generation) ..; EDGE_CONNECTION_LOST and
   *   EDGE_UPSTREAM_TIMEOUT leave open whether they were stored.
   */
  async send(
    stream: Identifier,
    topic: Identifier,
    partitioning: Partitioning,
    messages: readonly OutgoingMessage[],
  ): Promise<SendConfirmation | null> {
    // The newer generation stores an id of zero as it comes; the older one replaces it.
    const newId = this.#requester.dialect === 'classic' ? null : randomId
    return await this.sendBatch(
      stream,
      topic,
      partitioning,
      packMessages(messages, this.#requester.clock.wallUs(), newId),
    )
  }

  /** As `send`, for records that are packed already; a stored batch goes with the ids derived from its offsets. */
  async sendBatch(
    stream: Identifier,
    topic: Identifier,
    partitioning: Partitioning,
    batch: RecordBatch,
    timeoutMs?: number,
  ): Promise<SendConfirmation | null> {
    const options = timeoutMs === undefined ? {} : { timeoutMs }
    const body = { stream, topic, partitioning, batch }
    const { confirmations } = await this.#requester.request(CODE.sendMessages, body, options)
    return confirmations[0] ?? null
  }

  /**
   * @throws {EdgeError} EDGE_STREAM_NOT_FOUND, EDGE_TOPIC_NOT_FOUND, EDGE_PARTITION_NOT_FOUND; EDGE_FRAME_TOO_LARGE, and with it
   *   the connection, for an answer of more than 64 MiB: ask for fewer messages.
   */
  async poll(stream: Identifier, topic: Identifier, options: PollOptions = {}): Promise<Polled> {
    const polled = await this.#requester.request(CODE.pollMessages, {
      consumer: options.consumer ?? DEFAULT_CONSUMER,
      stream,
      topic,
      partitionId: options.partitionId ?? null,
      strategy: options.strategy ?? { kind: 'next' },
      count: options.count ?? DEFAULT_COUNT,
      autoCommit: options.autoCommit ?? false,
    })
    const { partitionId, currentOffset, batches } = polled
    return { partitionId, currentOffset, messages: batches.flatMap(unpackMessages) }
  }

  /** Older generation only. @throws {EdgeError} EDGE_FEATURE_UNAVAILABLE on newer servers. */
  async flush(stream: Identifier, topic: Identifier, partitionId: number, isFsync: boolean): Promise<void> {
    await this.#requester.request(CODE.flushUnsavedBuffer, { stream, topic, partitionId, isFsync })
  }
}
