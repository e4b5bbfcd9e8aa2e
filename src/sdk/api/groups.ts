/** Consumer groups: their members share the partitions of a topic. `Consumer` joins and follows them by itself. */
import { CODE } from '../wire/codes.ts'
import type { Identifier } from '../wire/primitives.ts'
import type { GroupDetails, GroupRecord } from '../wire/records.ts'
import type { Requester } from './requester.ts'

export interface Assignment {
  /** Rises with each change. */
  readonly generation: bigint
  readonly partitions: readonly number[]
}

export class GroupsApi {
  readonly #requester: Requester

  constructor(requester: Requester) {
    this.#requester = requester
  }

  async list(stream: Identifier, topic: Identifier): Promise<readonly GroupRecord[]> {
    return (await this.#requester.request(CODE.getConsumerGroups, { stream, topic })).groups
  }

  async get(stream: Identifier, topic: Identifier, group: Identifier): Promise<GroupDetails | null> {
    return await this.#requester.request(CODE.getConsumerGroup, { stream, topic, group })
  }

  /** @throws {EdgeError} EDGE_GROUP_NAME_TAKEN. */
  async create(stream: Identifier, topic: Identifier, name: string): Promise<GroupRecord> {
    return await this.#requester.request(CODE.createConsumerGroup, { stream, topic, name })
  }

  async delete(stream: Identifier, topic: Identifier, group: Identifier): Promise<void> {
    await this.#requester.request(CODE.deleteConsumerGroup, { stream, topic, group })
  }

  /** Makes this connection a member; joining twice is harmless. */
  async join(stream: Identifier, topic: Identifier, group: Identifier): Promise<void> {
    await this.#requester.request(CODE.joinConsumerGroup, { stream, topic, group })
  }

  async leave(stream: Identifier, topic: Identifier, group: Identifier): Promise<void> {
    await this.#requester.request(CODE.leaveConsumerGroup, { stream, topic, group })
  }

  /** Newer generation: which partitions this member may poll now. @returns null when it is no member. */
  async sync(stream: Identifier, topic: Identifier, group: Identifier): Promise<Assignment | null> {
    return await this.#requester.request(CODE.syncConsumerGroup, { stream, topic, group })
  }
}
