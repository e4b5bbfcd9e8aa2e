/** Topics, their partitions and segments. */
import { EdgeError } from '../../errors.ts'
import { CODE } from '../wire/codes.ts'
import {
  type HeaderKind,
  type HeaderScalar,
  headerKindCode,
  headerScalarOf,
  headerValueOf,
} from '../wire/header-values.ts'
import type { Option } from '../wire/options.ts'
import type { Identifier } from '../wire/primitives.ts'
import type { TopicDetails, TopicRecord } from '../wire/records.ts'
import type { Requester } from './requester.ts'

export interface TopicSettings {
  /** µs; absent: as the server is configured. */
  readonly messageExpiryUs?: bigint
  /** Bytes; absent: as the server is configured. */
  readonly maxTopicSizeBytes?: bigint
  /** Stored and shown by servers, without effect. */
  readonly compression?: 'none' | 'gzip'
  /**
   * Further options of servers of the newer generation by name, such as `durability`: text goes as text, true and false as
   * a flag, a number as u32, a bigint as u64. Older servers have no place for them.
   */
  readonly options?: Readonly<Record<string, string | boolean | number | bigint>>
}

export interface NewTopic extends TopicSettings {
  /** 1 to 1000; default 1. */
  readonly partitions?: number
}

export class TopicsApi {
  readonly #requester: Requester

  constructor(requester: Requester) {
    this.#requester = requester
  }

  async list(stream: Identifier): Promise<readonly TopicRecord[]> {
    return (await this.#requester.request(CODE.getTopics, { stream })).topics
  }

  /** @returns null when there is no such topic, or stream. */
  async get(stream: Identifier, topic: Identifier): Promise<TopicDetails | null> {
    return await this.#requester.request(CODE.getTopic, { stream, topic })
  }

  /** @throws {EdgeError} EDGE_STREAM_NOT_FOUND, EDGE_TOPIC_NAME_TAKEN, EDGE_TOO_MANY_PARTITIONS, EDGE_OPTION_INVALID. */
  async create(stream: Identifier, name: string, topic: NewTopic = {}): Promise<TopicDetails> {
    return await this.#requester.request(CODE.createTopic, {
      stream,
      name,
      partitionsCount: topic.partitions ?? 1,
      replicationFactor: 0,
      options: optionsOf(topic),
    })
  }

  /** Settings that are not named stay on newer servers, and return to the server's default on older ones. */
  async update(stream: Identifier, topic: Identifier, name: string, settings: TopicSettings = {}): Promise<void> {
    const options = optionsOf(settings)
    await this.#requester.request(CODE.updateTopic, { stream, topic, name, replicationFactor: 0, options })
  }

  async delete(stream: Identifier, topic: Identifier): Promise<void> {
    await this.#requester.request(CODE.deleteTopic, { stream, topic })
  }

  /** Drops all messages, keeps the numbering. */
  async purge(stream: Identifier, topic: Identifier): Promise<void> {
    await this.#requester.request(CODE.purgeTopic, { stream, topic })
  }

  async addPartitions(stream: Identifier, topic: Identifier, count: number): Promise<void> {
    await this.#requester.request(CODE.createPartitions, { stream, topic, count })
  }

  /** Removes the highest numbers, with their messages. */
  async removePartitions(stream: Identifier, topic: Identifier, count: number): Promise<void> {
    await this.#requester.request(CODE.deletePartitions, { stream, topic, count })
  }

  /** Drops the oldest sealed segments of a partition. */
  async deleteSegments(stream: Identifier, topic: Identifier, partitionId: number, count: number): Promise<void> {
    await this.#requester.request(CODE.deleteSegments, { stream, topic, partitionId, segmentsCount: count })
  }
}

/** In ascending order of names, as other SDKs send them. */
function optionsOf(settings: TopicSettings): Option[] {
  const values: Record<string, string | boolean | number | bigint | undefined> = {
    compression_algorithm: settings.compression,
    max_topic_size: settings.maxTopicSizeBytes,
    message_expiry: settings.messageExpiryUs,
    ...settings.options,
  }
  return Object.entries(values)
    .flatMap(([key, value]) => (value === undefined ? [] : [optionOf(key, value)]))
    .sort((left, right) => (left.key < right.key ? -1 : 1))
}

const SCALAR_KINDS: Readonly<Record<string, HeaderKind>> = { bigint: 'uint64', number: 'uint32', boolean: 'bool' }

function optionOf(key: string, value: HeaderScalar): Option {
  const kind = SCALAR_KINDS[typeof value] ?? 'string'
  const encoded = typeof value === 'number' && !Number.isInteger(value) ? null : headerValueOf(kind, value)
  // What was cut to the width of its kind is not what was meant: a size of -1 would be "unlimited".
  if (encoded === null || headerScalarOf(encoded) !== value)
    throw new EdgeError('EDGE_OPTION_INVALID', `option ${key}: expected a value of ${kind}, found ${value}`)
  return { key, kind: headerKindCode(kind), valueBytes: encoded.bytes }
}
