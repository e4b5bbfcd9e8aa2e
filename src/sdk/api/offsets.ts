/** How far a consumer or a group has come, stored by the server per partition. */
import { CODE } from '../wire/codes.ts'
import { ACK_QUORUM } from '../wire/commands/offsets.ts'
import type { Consumer, Identifier } from '../wire/primitives.ts'
import type { Requester } from './requester.ts'

export interface StoredOffset {
  readonly partitionId: number
  /** Offset of the newest message. */
  readonly currentOffset: bigint
  readonly storedOffset: bigint
}

export class OffsetsApi {
  readonly #requester: Requester

  constructor(requester: Requester) {
    this.#requester = requester
  }

  /** @returns null when nothing is stored. */
  async get(
    consumer: Consumer,
    stream: Identifier,
    topic: Identifier,
    partitionId: number,
  ): Promise<StoredOffset | null> {
    return await this.#requester.request(CODE.getConsumerOffset, { consumer, stream, topic, partitionId })
  }

  /** @param offset of the last message that is done with. */
  async store(
    consumer: Consumer,
    stream: Identifier,
    topic: Identifier,
    partitionId: number,
    offset: bigint,
  ): Promise<void> {
    const body = { consumer, stream, topic, partitionId, offset, ack: ACK_QUORUM }
    await this.#requester.request(CODE.storeConsumerOffset, body)
  }

  /** @throws {EdgeError} EDGE_OFFSET_NOT_FOUND. */
  async delete(consumer: Consumer, stream: Identifier, topic: Identifier, partitionId: number): Promise<void> {
    const body = { consumer, stream, topic, partitionId, ack: ACK_QUORUM }
    await this.#requester.request(CODE.deleteConsumerOffset, body)
  }
}
