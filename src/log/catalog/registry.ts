/**
 * Streams and topics in memory: what the catalog answers from. Pure. Knows names and ids and that siblings differ in both;
 * never what is on the disk.
 */
import { assert } from '../../assert.ts'
import type { Partition, Stream, Topic, TopicOptions } from '../api.ts'
import type { PartitionDescriptor, TopicDescriptor } from './descriptor.ts'
import { IdPool } from './id-pool.ts'

/** As in Iggy's ids and far above what memory bears: there are no more of either than `max_partitions`. */
export const MAX_STREAMS = 1_048_576
export const MAX_TOPICS_PER_STREAM = 4096

export class TopicEntry implements Topic {
  readonly id: number
  readonly streamId: number
  readonly createdAtUs: bigint
  name: string
  options: TopicOptions
  /** What the descriptor says of each partition; `partitions` are the same ones, opened. */
  partitionDescriptors: readonly PartitionDescriptor[]
  partitions: readonly Partition[] = []

  constructor(streamId: number, id: number, descriptor: TopicDescriptor) {
    this.id = id
    this.streamId = streamId
    this.createdAtUs = descriptor.createdAtUs
    this.name = descriptor.name
    this.options = descriptor.options
    this.partitionDescriptors = descriptor.partitions
  }

  descriptor(): TopicDescriptor {
    const { name, createdAtUs, options, partitionDescriptors } = this
    return { name, createdAtUs, options, partitions: partitionDescriptors }
  }
}

export class StreamEntry implements Stream {
  readonly id: number
  readonly createdAtUs: bigint
  readonly topics: ReadonlyMap<number, TopicEntry>
  readonly #siblings = new Siblings<TopicEntry>()
  name: string

  constructor(id: number, name: string, createdAtUs: bigint) {
    this.id = id
    this.name = name
    this.createdAtUs = createdAtUs
    this.topics = this.#siblings.byId
  }

  topic(id: number | string): TopicEntry | undefined {
    return this.#siblings.find(id)
  }

  /** Never gives this id: a folder that is no topic of ours lies at its place. */
  blockTopicId(id: number): void {
    this.#siblings.block(id)
  }

  lowestTopicId(): number {
    return this.#siblings.lowestId()
  }

  addTopic(topic: TopicEntry): void {
    this.#siblings.add(topic)
  }

  renameTopic(topic: TopicEntry, name: string): void {
    this.#siblings.rename(topic, name)
  }

  removeTopic(topic: TopicEntry): void {
    this.#siblings.remove(topic)
  }
}

export class Registry {
  readonly streams: ReadonlyMap<number, StreamEntry>
  readonly #siblings = new Siblings<StreamEntry>()

  constructor() {
    this.streams = this.#siblings.byId
  }

  stream(id: number | string): StreamEntry | undefined {
    return this.#siblings.find(id)
  }

  lowestStreamId(): number {
    return this.#siblings.lowestId()
  }

  addStream(stream: StreamEntry): void {
    this.#siblings.add(stream)
  }

  renameStream(stream: StreamEntry, name: string): void {
    this.#siblings.rename(stream, name)
  }

  removeStream(stream: StreamEntry): void {
    this.#siblings.remove(stream)
  }

  *topics(): Generator<TopicEntry> {
    for (const stream of this.streams.values()) yield* stream.topics.values()
  }
}

/** Entries under one parent: unique by id and by name, listed by id. */
class Siblings<Entry extends { readonly id: number; name: string }> {
  readonly byId = new Map<number, Entry>()
  readonly #byName = new Map<string, Entry>()
  readonly #blockedIds = new Set<number>()
  readonly #ids = new IdPool({ has: (id) => this.byId.has(id) || this.#blockedIds.has(id) })
  #highestId = -1

  find(id: number | string): Entry | undefined {
    return typeof id === 'number' ? this.byId.get(id) : this.#byName.get(id)
  }

  lowestId(): number {
    return this.#ids.lowest()
  }

  block(id: number): void {
    this.#blockedIds.add(id)
  }

  add(entry: Entry): void {
    assert(!this.byId.has(entry.id), `id ${entry.id} is free`)
    assert(!this.#byName.has(entry.name), `name ${JSON.stringify(entry.name)} is free`)
    this.byId.set(entry.id, entry)
    this.#byName.set(entry.name, entry)
    if (entry.id < this.#highestId) this.#sort()
    else this.#highestId = entry.id
  }

  rename(entry: Entry, name: string): void {
    this.#byName.delete(entry.name)
    assert(!this.#byName.has(name), `name ${JSON.stringify(name)} is free`)
    entry.name = name
    this.#byName.set(name, entry)
  }

  remove(entry: Entry): void {
    this.byId.delete(entry.id)
    this.#byName.delete(entry.name)
    this.#ids.free(entry.id)
  }

  /** A map lists in order of insertion; an id that was free in the middle has to move there. Holders keep the same map. */
  #sort(): void {
    const entries = [...this.byId].sort(([a], [b]) => a - b)
    this.byId.clear()
    for (const [id, entry] of entries) this.byId.set(id, entry)
  }
}
