/**
 * Streams, topics and partitions: the log's `Catalog`, and the engine's `DescriptorStore`.
 *
 * The order of every change is what makes it survive a crash. Making: keys below a durable floor; the folder complete in
 * `staging/`, then renamed to its place; SQLite's copy; memory. Deleting: the folder renamed to `trash/`; memory in the same
 * turn; both parents synced; SQLite. A stop between any two steps leaves the state before or after, never half of it.
 */
import { assert } from '../../assert.ts'
import type { Clock } from '../../clock.ts'
import { EdgeError } from '../../errors.ts'
import type { Catalog, Durability, Partition, Stream, Topic, TopicOptions } from '../api.ts'
import { NO_ID } from '../metadata/log-tables.ts'
import { topicText } from '../place-text.ts'
import type { DescriptorStore, PartitionHost, PartitionSpec } from '../ports.ts'
import { Adoption } from './adoption.ts'
import { CatalogSteps, type CatalogStepsParts } from './catalog-steps.ts'
import { ChangeQueue } from './change-queue.ts'
import { formatStream, formatTopic, type PartitionDescriptor, type TopicDescriptor } from './descriptor.ts'
import type { KeyAllocator } from './key-allocator.ts'
import {
  partitionFolder,
  STREAM_FILE,
  STREAMS,
  streamFile,
  streamFolder,
  TOPIC_FILE,
  topicFile,
  topicFolder,
  topicsFolder,
} from './layout.ts'
import { isNameValid } from './name.ts'
import { checkPartitionCount } from './partition-count.ts'
import { MAX_STREAMS, MAX_TOPICS_PER_STREAM, type Registry, StreamEntry, TopicEntry } from './registry.ts'

export interface StoreCatalogParts extends CatalogStepsParts {
  readonly clock: Clock
  readonly registry: Registry
  readonly keys: KeyAllocator
  readonly seedOf: (key: number) => bigint
  readonly maxPartitions: number
}

/** Made by `openCatalog`. */
export class StoreCatalog implements Catalog, DescriptorStore {
  readonly #parts: StoreCatalogParts
  readonly #registry: Registry
  readonly #steps: CatalogSteps
  readonly #adoption: Adoption
  readonly #queue = new ChangeQueue()
  readonly #listeners = new Set<() => void>()
  #host: PartitionHost | null = null
  #partitionCount = 0

  constructor(parts: StoreCatalogParts) {
    this.#parts = parts
    this.#registry = parts.registry
    this.#steps = new CatalogSteps(parts)
    this.#adoption = new Adoption(parts, this.#steps)
    for (const topic of parts.registry.topics()) this.#partitionCount += topic.partitionDescriptors.length
  }

  get storeId(): Uint8Array {
    return this.#parts.keys.store.storeId
  }

  get streams(): ReadonlyMap<number, Stream> {
    return this.#registry.streams
  }

  stream(id: number | string): Stream | undefined {
    return this.#registry.stream(id)
  }

  topic(streamId: number, id: number | string): Topic | undefined {
    return this.#registry.streams.get(streamId)?.topic(id)
  }

  onChanged(callback: () => void): () => void {
    this.#listeners.add(callback)
    return () => this.#listeners.delete(callback)
  }

  /** One change of names: one after the other, told when done; also one that fails at its end, as it may have taken effect. */
  async #change<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await this.#queue.run(work)
    } finally {
      for (const listener of this.#listeners) listener()
    }
  }

  // ---- for the engine ------------------------------------------------------------------------------------------------

  get nextKey(): number {
    return this.#parts.keys.nextKey
  }

  get firstLostKey(): number {
    return this.#parts.keys.firstLostKey
  }

  get trashBytes(): number {
    return this.#parts.trash.sizeBytes
  }

  specs(): readonly PartitionSpec[] {
    return [...this.#registry.topics()].flatMap((topic) =>
      topic.partitionDescriptors.map((descriptor, partitionId) => specOf(topic, descriptor, partitionId)),
    )
  }

  adopt(key: number, durability: Durability): PartitionSpec {
    const topic = this.#adoption.adopt(key, durability)
    this.#partitionCount++
    const [descriptor] = topic.partitionDescriptors
    assert(descriptor !== undefined, 'an adopted topic has one partition')
    return specOf(topic, descriptor, 0)
  }

  keepAdopted(): Promise<void> {
    return this.#queue.run(() => this.#adoption.keep())
  }

  /**
   * Ties the catalog to the engine, once, when recovery is done.
   *
   * @param opened partitions the engine made from `specs`; the others are added now.
   */
  attach(host: PartitionHost, opened: (key: number) => Partition | undefined): void {
    assert(this.#host === null, 'the catalog is attached once')
    this.#host = host
    for (const topic of this.#registry.topics()) {
      topic.partitions = topic.partitionDescriptors.map(
        (descriptor, partitionId) =>
          opened(descriptor.key) ?? host.addPartition(specOf(topic, descriptor, partitionId)),
      )
    }
    this.#parts.trash.startRemoval()
  }

  raiseFloors(floors: ReadonlyMap<number, bigint>): Promise<void> {
    return this.#queue.run(async () => {
      const isRaised = ({ key, floorOffset }: PartitionDescriptor): boolean => (floors.get(key) ?? 0n) > floorOffset
      for (const topic of [...this.#registry.topics()].filter((each) => each.partitionDescriptors.some(isRaised))) {
        const partitions = topic.partitionDescriptors.map((partition) =>
          isRaised(partition) ? { ...partition, floorOffset: floors.get(partition.key) ?? 0n } : partition,
        )
        await this.#writeTopic(topic, { ...topic.descriptor(), partitions })
        topic.partitionDescriptors = partitions
      }
    })
  }

  /** Changes under way end; the trash stops. Idempotent. */
  async close(): Promise<void> {
    await this.#queue.close()
    this.#parts.trash.close()
  }

  // ---- streams -------------------------------------------------------------------------------------------------------

  createStream(name: string): Promise<Stream> {
    return this.#change(async () => {
      checkName('stream', name)
      if (this.#registry.stream(name)) throw nameTaken('EDGE_STREAM_NAME_TAKEN', 'stream', name)
      this.#checkCount('EDGE_TOO_MANY_STREAMS', 'streams', this.#registry.streams.size)
      const id = this.#registry.lowestStreamId()
      if (id >= MAX_STREAMS)
        throw new EdgeError('EDGE_TOO_MANY_STREAMS', `no more than ${MAX_STREAMS} streams are kept`)
      const stream = new StreamEntry(id, name, this.#parts.clock.wallUs())
      const body = formatStream(stream)
      await this.#steps.make({ target: streamFolder(id), parent: STREAMS, inner: 'topics', file: STREAM_FILE, body })
      this.#steps.copy({ streamId: id, topicId: NO_ID }, body)
      this.#registry.addStream(stream)
      return stream
    })
  }

  renameStream(asked: Stream, name: string): Promise<void> {
    return this.#change(async () => {
      const stream = this.#present(asked)
      checkName('stream', name)
      if (stream.name === name) return
      if (this.#registry.stream(name)) throw nameTaken('EDGE_STREAM_NAME_TAKEN', 'stream', name)
      const body = formatStream({ name, createdAtUs: stream.createdAtUs })
      await this.#steps.rewrite(streamFile(stream.id), { streamId: stream.id, topicId: NO_ID }, body)
      this.#registry.renameStream(stream, name)
    })
  }

  deleteStream(asked: Stream): Promise<void> {
    return this.#change(async () => {
      const stream = this.#present(asked)
      this.#parts.trash.take(streamFolder(stream.id))
      const keys = [...stream.topics.values()].flatMap((topic) => this.#removePartitions(topic.partitionDescriptors))
      this.#registry.removeStream(stream)
      await this.#steps.settle(STREAMS, { streamId: stream.id, topicId: NO_ID }, keys)
    })
  }

  // ---- topics --------------------------------------------------------------------------------------------------------

  createTopic(asked: Stream, spec: { name: string; partitionCount: number; options: TopicOptions }): Promise<Topic> {
    return this.#change(async () => {
      const stream = this.#present(asked)
      const { id: streamId } = stream
      checkName('topic', spec.name)
      if (stream.topic(spec.name)) throw nameTaken('EDGE_TOPIC_NAME_TAKEN', 'topic', spec.name)
      const id = stream.lowestTopicId()
      if (id >= MAX_TOPICS_PER_STREAM) {
        throw new EdgeError('EDGE_TOO_MANY_TOPICS', `stream ${streamId} has ${MAX_TOPICS_PER_STREAM} topics already`)
      }
      this.#checkCount('EDGE_TOO_MANY_TOPICS', 'topics', [...this.#registry.topics()].length)
      this.#checkRoomFor(spec.partitionCount, 0)
      // Rows of an earlier topic of that id, if their removal failed: they must not become this one's.
      if (this.#parts.metadata.hasGroupRows(streamId, id)) this.#parts.metadata.forget([{ streamId, topicId: id }], [])
      const partitions = await this.#newPartitions(spec.partitionCount)
      const createdAtUs = this.#parts.clock.wallUs()
      const topic = new TopicEntry(streamId, id, { name: spec.name, createdAtUs, options: spec.options, partitions })
      const body = formatTopic(topic.descriptor())
      const [target, parent] = [topicFolder(streamId, id), topicsFolder(streamId)]
      await this.#steps.make({ target, parent, inner: null, file: TOPIC_FILE, body })
      this.#steps.copy({ streamId, topicId: id }, body)
      await this.#openPartitions(topic, partitions)
      stream.addTopic(topic)
      return topic
    })
  }

  updateTopic(asked: Topic, change: { name?: string; options?: TopicOptions }): Promise<void> {
    return this.#change(async () => {
      const { stream, topic } = this.#presentTopic(asked)
      const { name = topic.name, options = topic.options } = change
      checkName('topic', name)
      if (name !== topic.name && stream.topic(name)) throw nameTaken('EDGE_TOPIC_NAME_TAKEN', 'topic', name)
      if (options.durability !== topic.options.durability) {
        throw new EdgeError(
          'EDGE_OPTION_INVALID',
          `durability of ${topicText(this, topic)} is fixed since its creation`,
        )
      }
      await this.#writeTopic(topic, { ...topic.descriptor(), name, options })
      if (name !== topic.name) stream.renameTopic(topic, name)
      topic.options = options
      for (const { key } of topic.partitionDescriptors) this.#attachedHost().updateOptions(key, options)
    })
  }

  deleteTopic(asked: Topic): Promise<void> {
    return this.#change(async () => {
      const { stream, topic } = this.#presentTopic(asked)
      const { streamId, id: topicId } = topic
      this.#parts.trash.take(topicFolder(streamId, topicId))
      const keys = this.#removePartitions(topic.partitionDescriptors)
      stream.removeTopic(topic)
      await this.#steps.settle(topicsFolder(streamId), { streamId, topicId }, keys)
    })
  }

  addPartitions(asked: Topic, count: number): Promise<void> {
    return this.#change(async () => {
      const { topic } = this.#presentTopic(asked)
      this.#checkRoomFor(count, 1)
      const added = await this.#newPartitions(count)
      const partitions = [...topic.partitionDescriptors, ...added]
      await this.#writeTopic(topic, { ...topic.descriptor(), partitions })
      topic.partitionDescriptors = partitions
      await this.#openPartitions(topic, added)
    })
  }

  removePartitions(asked: Topic, count: number): Promise<void> {
    return this.#change(async () => {
      const { topic } = this.#presentTopic(asked)
      const present = topic.partitionDescriptors.length
      checkPartitionCount(count, 1)
      if (count > present) {
        const text = `${topicText(this, topic)} has ${present} partitions, ${count} were to be removed`
        throw new EdgeError('EDGE_PARTITION_COUNT_INVALID', text, { details: { present, count } })
      }
      await this.#shrink(topic, present - count)
    })
  }

  // ---- steps ---------------------------------------------------------------------------------------------------------

  /** Cuts a topic to its first `count` partitions: copy and descriptor first, so that a folder left behind is known as an orphan. */
  async #shrink(topic: TopicEntry, count: number): Promise<void> {
    const removed = topic.partitionDescriptors.slice(count)
    const partitions = topic.partitionDescriptors.slice(0, count)
    const descriptor = { ...topic.descriptor(), partitions }
    const { streamId, id: topicId } = topic
    let failure: unknown
    try {
      await this.#steps.rewriteSmaller(topicFile(streamId, topicId), { streamId, topicId }, formatTopic(descriptor))
    } catch (error) {
      if (!this.#isWritten(topic, descriptor)) {
        this.#steps.copy({ streamId, topicId }, formatTopic(topic.descriptor()))
        throw error
      }
      // In place but perhaps not for good: what the next start may drop must not take another message.
      failure = error
    }
    topic.partitionDescriptors = partitions
    topic.partitions = topic.partitions.slice(0, count)
    for (const { key } of removed) this.#steps.takeLater(partitionFolder(streamId, topicId, key))
    const keys = this.#removePartitions(removed)
    await this.#steps.settle(topicFolder(streamId, topicId), null, keys)
    if (failure !== undefined) throw failure
  }

  async #newPartitions(count: number): Promise<readonly PartitionDescriptor[]> {
    const keys = await this.#parts.keys.take(count)
    const createdAtUs = this.#parts.clock.wallUs()
    return keys.map((key) => ({ key, idSeed: this.#parts.seedOf(key), createdAtUs, floorOffset: 0n }))
  }

  /** Opens the topic's new partitions, the last of its descriptors. @throws what the engine throws: all are taken back. */
  async #openPartitions(topic: TopicEntry, added: readonly PartitionDescriptor[]): Promise<void> {
    const host = this.#attachedHost()
    const firstId = topic.partitionDescriptors.length - added.length
    const opened: Partition[] = []
    try {
      for (const [index, descriptor] of added.entries()) {
        opened.push(host.addPartition(specOf(topic, descriptor, firstId + index)))
      }
    } catch (error) {
      await this.#takeBack(topic, added.slice(0, opened.length), firstId)
      throw error
    }
    topic.partitions = [...topic.partitions, ...opened]
    this.#partitionCount += added.length
  }

  async #takeBack(topic: TopicEntry, opened: readonly PartitionDescriptor[], count: number): Promise<void> {
    for (const { key } of opened) this.#attachedHost().removePartition(key)
    const { streamId, id: topicId } = topic
    if (this.#registry.streams.get(streamId)?.topics.get(topicId) === topic) {
      const partitions = topic.partitionDescriptors.slice(0, count)
      topic.partitionDescriptors = partitions
      await this.#writeTopic(topic, { ...topic.descriptor(), partitions })
      return
    }
    this.#steps.takeLater(topicFolder(streamId, topicId))
    await this.#steps.settle(topicsFolder(streamId), { streamId, topicId }, [])
  }

  #removePartitions(removed: readonly PartitionDescriptor[]): number[] {
    const host = this.#attachedHost()
    for (const { key } of removed) host.removePartition(key)
    this.#partitionCount -= removed.length
    return removed.map(({ key }) => key)
  }

  async #writeTopic(topic: TopicEntry, descriptor: TopicDescriptor): Promise<void> {
    const { streamId, id: topicId } = topic
    await this.#steps.rewrite(topicFile(streamId, topicId), { streamId, topicId }, formatTopic(descriptor))
  }

  #isWritten({ streamId, id }: TopicEntry, descriptor: TopicDescriptor): boolean {
    const found = this.#parts.files.read(topicFile(streamId, id))
    return found.kind === 'sound' && found.body === formatTopic(descriptor)
  }

  // ---- checks --------------------------------------------------------------------------------------------------------

  #attachedHost(): PartitionHost {
    assert(this.#host !== null, 'the catalog is attached before it is changed')
    return this.#host
  }

  /** @throws EDGE_STREAM_NOT_FOUND also when another stream has its id by now. */
  #present(asked: Stream): StreamEntry {
    const stream = this.#registry.streams.get(asked.id)
    if (stream !== undefined && stream === asked) return stream
    throw new EdgeError('EDGE_STREAM_NOT_FOUND', `stream ${JSON.stringify(asked.name)} (${asked.id}) was deleted`)
  }

  /** @throws EDGE_TOPIC_NOT_FOUND also when another topic has its id by now. */
  #presentTopic(asked: Topic): { stream: StreamEntry; topic: TopicEntry } {
    const stream = this.#registry.streams.get(asked.streamId)
    const topic = stream?.topics.get(asked.id)
    if (stream !== undefined && topic !== undefined && topic === asked) return { stream, topic }
    const text = `topic ${JSON.stringify(asked.name)} (${asked.streamId}/${asked.id}) was deleted`
    throw new EdgeError('EDGE_TOPIC_NOT_FOUND', text)
  }

  /** Streams without topics, and topics without partitions, take memory too. */
  #checkCount(code: 'EDGE_TOO_MANY_STREAMS' | 'EDGE_TOO_MANY_TOPICS', what: string, present: number): void {
    const { maxPartitions } = this.#parts
    if (present < maxPartitions) return
    const text = `${present} ${what} exist and no more than ${maxPartitions} are allowed: delete some, or raise log.max_partitions`
    throw new EdgeError(code, text, { details: { present, maxPartitions } })
  }

  #checkRoomFor(count: number, min: 0 | 1): void {
    checkPartitionCount(count, min)
    const { maxPartitions } = this.#parts
    if (this.#partitionCount + count <= maxPartitions) return
    const text = `${this.#partitionCount} partitions exist and ${maxPartitions} are allowed, ${count} more were asked for: delete topics, or raise log.max_partitions`
    throw new EdgeError('EDGE_TOO_MANY_PARTITIONS', text, { details: { present: this.#partitionCount, maxPartitions } })
  }
}

function specOf(topic: TopicEntry, descriptor: PartitionDescriptor, partitionId: number): PartitionSpec {
  return {
    ...descriptor,
    streamId: topic.streamId,
    topicId: topic.id,
    partitionId,
    directory: partitionFolder(topic.streamId, topic.id, descriptor.key),
    options: topic.options,
  }
}

function checkName(kind: string, name: string): void {
  if (!isNameValid(name)) throw new EdgeError('EDGE_NAME_INVALID', `a ${kind} name is 1..255 bytes of UTF-8`)
}

function nameTaken(code: 'EDGE_STREAM_NAME_TAKEN' | 'EDGE_TOPIC_NAME_TAKEN', kind: string, name: string): EdgeError {
  return new EdgeError(code, `${kind} ${JSON.stringify(name)} exists already`, { details: { name } })
}
