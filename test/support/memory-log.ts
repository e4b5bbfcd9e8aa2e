/**
 * The log's contract in memory, for tests of what stands on it: offsets, visible ends and receipts behave like the real
 * one's, nothing is kept on a disk. `holdSyncs` delays receipts until `syncNow`, to look at what happens in between.
 */

import { EdgeError } from '../../src/errors.ts'
import type {
  Appended,
  Catalog,
  Log,
  Partition,
  ProducerTable,
  ReadRequest,
  ReadResult,
  Receipt,
  Stream,
  Topic,
  TopicOptions,
} from '../../src/log/api.ts'
import type { RecordBatch, StoredBatch } from '../../src/sdk/wire/batch.ts'
import { contentBytesOf } from '../../src/sdk/wire/record-content.ts'
import { MemoryMetadata } from './memory-metadata.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export class MemoryLog implements Log {
  readonly storeId = new Uint8Array(16).fill(7)
  readonly partitions = new Map<number, MemoryPartition>()
  readonly catalog = new MemoryCatalog(this)
  readonly metadata = new MemoryMetadata()
  readonly producers = noProducers
  isWritable = true
  /** What `hasRoom` answers. */
  isRoomLeft = true
  holdSyncs = false
  nowUs: () => bigint
  #waiting: (() => void)[] = []
  #unsynced: { partition: MemoryPartition; receipt: Receipt }[] = []

  constructor(nowUs: () => bigint = () => BigInt(Date.now()) * 1000n) {
    this.nowUs = nowUs
  }

  partition(key: number): MemoryPartition | undefined {
    return this.partitions.get(key)
  }

  hasRoom(): boolean {
    return this.isRoomLeft
  }

  onceRoom(callback: () => void): void {
    this.#waiting.push(callback)
  }

  /** @param isLeft false when others take it before those that wait. */
  makeRoom(isLeft = true): void {
    this.isRoomLeft = isLeft
    for (const callback of this.#waiting.splice(0)) callback()
  }

  appended(partition: MemoryPartition, receipt: Receipt): void {
    this.#unsynced.push({ partition, receipt })
    if (!this.holdSyncs) queueMicrotask(() => this.syncNow())
  }

  /** Settles everything that waits. */
  syncNow(error: EdgeError | null = null): void {
    for (const { partition, receipt } of this.#unsynced.splice(0)) {
      if (error === null) partition.visibleEnd = partition.nextOffset
      receipt.settled(error)
      partition.announce()
    }
  }

  async flush(): Promise<void> {
    this.syncNow()
  }

  stats() {
    const all = [...this.partitions.values()]
    return {
      journalFileCount: 1,
      journalUsedBytes: 0,
      segmentCount: all.length,
      diskUsedBytes: all.reduce((sum, partition) => sum + partition.sizeBytes, 0),
      diskBudgetBytes: 0,
      diskFreeBytes: 1,
      diskTotalBytes: 2,
      isOverDiskBudget: false,
      fullTopicCount: 0,
      refusingFolderCount: 0,
      appendedMessages: all.reduce((sum, partition) => sum + partition.messageCount, 0),
      appendedRecordBytes: 0,
      writtenBytes: 0,
      syncCount: 0,
      syncFailedCount: 0,
      isSyncAwaited: false,
      lastSyncUs: 0,
      droppedMessages: 0,
      flashBudgetPerDayBytes: 0,
      flashBudgetLeftBytes: 0,
    }
  }

  drops = () => ({ byReason: new Map(), recent: [] })
  findings = () => []

  async close(): Promise<void> {
    this.syncNow()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

export class MemoryPartition implements Partition {
  readonly log: MemoryLog
  readonly key: number
  readonly streamId: number
  readonly topicId: number
  readonly partitionId: number
  readonly createdAtUs: bigint
  readonly idSeed: bigint
  readonly holes = []
  readonly options: () => TopicOptions
  readonly foundEnd = 0n
  nextOffset = 0n
  logStartOffset = 0n
  visibleEnd = 0n
  segmentCount = 0
  readonly closedInJournalCount = 0
  appendedContentBytes = 0
  /** What is appended is counted and given up: a full topic that drops the newest. */
  dropsNewest = false
  /** Sealed by tests: one entry a segment, its end offset. */
  sealedEnds: bigint[] = []
  #batches: StoredBatch[] = []
  #listeners = new Set<() => void>()

  constructor(
    log: MemoryLog,
    place: Pick<Partition, 'key' | 'streamId' | 'topicId' | 'partitionId'>,
    options: () => TopicOptions,
  ) {
    this.log = log
    this.key = place.key
    this.streamId = place.streamId
    this.topicId = place.topicId
    this.partitionId = place.partitionId
    this.createdAtUs = log.nowUs()
    this.idSeed = BigInt(place.key) + 1n
    this.options = options
  }

  get durableEnd(): bigint {
    return this.visibleEnd
  }

  get messageCount(): number {
    return Number(this.visibleEnd - this.logStartOffset)
  }

  get sizeBytes(): number {
    return this.#batches.reduce((sum, batch) => sum + batch.recordsView.length, 0)
  }

  append(batch: RecordBatch, receipt: Receipt): Appended {
    if (!this.log.isWritable) throw new EdgeError('EDGE_APPEND_FAILED', 'the disk refuses')
    const baseOffset = this.nextOffset
    const appendTimeUs = this.log.nowUs()
    const appended = { baseOffset, appendTimeUs, promise: this.options().durability, isDropped: this.dropsNewest }
    this.log.appended(this, receipt)
    if (this.dropsNewest) return appended
    const { count: take } = batch
    const place = { baseOffset, appendTimeUs, idSeed: this.idSeed, skip: 0, take, isClockTrusted: true }
    this.#batches.push({ ...batch, recordsView: new Uint8Array(batch.recordsView), ...place })
    this.nextOffset += BigInt(take)
    this.appendedContentBytes += contentBytesOf(batch.recordsView)
    this.segmentCount = Math.max(1, this.segmentCount)
    return appended
  }

  read(request: ReadRequest): ReadResult {
    const batches: StoredBatch[] = []
    let nextOffset = request.fromOffset
    let messageCount = 0
    let sizeBytes = 0
    for (const batch of this.#batches) {
      const end = batch.baseOffset + BigInt(batch.count)
      if (end <= nextOffset || batch.baseOffset >= this.visibleEnd || end <= this.logStartOffset) continue
      if (messageCount >= request.maxCount || (messageCount > 0 && sizeBytes >= request.maxBytes)) break
      const skip = nextOffset > batch.baseOffset ? Number(nextOffset - batch.baseOffset) : 0
      const take = Math.min(batch.count - skip, request.maxCount - messageCount)
      batches.push({ ...batch, skip, take })
      messageCount += take
      sizeBytes += batch.recordsView.length
      nextOffset = batch.baseOffset + BigInt(skip + take)
    }
    return { batches, nextOffset, messageCount }
  }

  offsetAt(timeUs: bigint): bigint {
    return this.#batches.find((batch) => batch.appendTimeUs >= timeUs)?.baseOffset ?? this.visibleEnd
  }

  onAppended(callback: () => void): () => void {
    this.#listeners.add(callback)
    return () => this.#listeners.delete(callback)
  }

  announce(): void {
    for (const listener of this.#listeners) listener()
  }

  async purge(): Promise<void> {
    this.#batches = []
    this.logStartOffset = this.nextOffset
  }

  async deleteSegments(count: number, barrierOffset: bigint | null): Promise<number> {
    const ends = this.sealedEnds.filter((end) => barrierOffset === null || end - 1n <= barrierOffset).slice(0, count)
    const end = ends.at(-1)
    if (end === undefined) return 0
    this.logStartOffset = end
    this.#batches = this.#batches.filter((batch) => batch.baseOffset + BigInt(batch.count) > end)
    this.sealedEnds.splice(0, ends.length)
    return ends.length
  }
}

interface MemoryTopic extends Mutable<Topic> {
  partitions: MemoryPartition[]
}

interface MemoryStream extends Mutable<Stream> {
  topics: Map<number, MemoryTopic>
}

class MemoryCatalog implements Catalog {
  readonly streams = new Map<number, MemoryStream>()
  readonly log: MemoryLog
  readonly #listeners = new Set<() => void>()
  #nextKey = 1

  constructor(log: MemoryLog) {
    this.log = log
  }

  stream(id: number | string): MemoryStream | undefined {
    return byIdOrName(this.streams, id)
  }

  topic(streamId: number, id: number | string): MemoryTopic | undefined {
    const stream = this.streams.get(streamId)
    return stream && byIdOrName(stream.topics, id)
  }

  onChanged(callback: () => void): () => void {
    this.#listeners.add(callback)
    return () => this.#listeners.delete(callback)
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }

  async createStream(name: string): Promise<Stream> {
    if (this.stream(name)) throw new EdgeError('EDGE_STREAM_NAME_TAKEN', `stream ${name}`)
    const stream = { id: lowestFree(this.streams), name, createdAtUs: this.log.nowUs(), topics: new Map() }
    insertSorted(this.streams, stream)
    this.#changed()
    return stream
  }

  async renameStream(asked: Stream, name: string): Promise<void> {
    const stream = this.#present(asked)
    const taken = this.stream(name)
    if (taken && taken !== stream) throw new EdgeError('EDGE_STREAM_NAME_TAKEN', `stream ${name}`)
    stream.name = name
    this.#changed()
  }

  async deleteStream(asked: Stream): Promise<void> {
    const stream = this.#present(asked)
    for (const topic of stream.topics.values()) await this.deleteTopic(topic)
    this.streams.delete(stream.id)
    this.#changed()
  }

  async createTopic(
    asked: Stream,
    spec: { name: string; partitionCount: number; options: TopicOptions },
  ): Promise<Topic> {
    const stream = this.#present(asked)
    const { id: streamId } = stream
    if (this.topic(streamId, spec.name)) throw new EdgeError('EDGE_TOPIC_NAME_TAKEN', `topic ${spec.name}`)
    const id = lowestFree(stream.topics)
    const { name, options } = spec
    const topic: MemoryTopic = { id, streamId, name, createdAtUs: this.log.nowUs(), options, partitions: [] }
    insertSorted(stream.topics, topic)
    await this.addPartitions(topic, spec.partitionCount)
    return topic
  }

  async updateTopic(asked: Topic, change: { name?: string; options?: TopicOptions }): Promise<void> {
    const topic = this.#presentTopic(asked)
    const taken = change.name === undefined ? undefined : this.topic(topic.streamId, change.name)
    if (taken && taken !== topic) throw new EdgeError('EDGE_TOPIC_NAME_TAKEN', `topic ${change.name}`)
    if (change.name !== undefined) topic.name = change.name
    if (change.options !== undefined) topic.options = change.options
    this.#changed()
  }

  async deleteTopic(asked: Topic): Promise<void> {
    const { streamId, id: topicId, partitions } = this.#presentTopic(asked)
    for (const partition of partitions) this.log.partitions.delete(partition.key)
    this.streams.get(streamId)?.topics.delete(topicId)
    this.log.metadata.forgetTopic(streamId, topicId)
    this.#changed()
  }

  async addPartitions(asked: Topic, count: number): Promise<void> {
    const topic = this.#presentTopic(asked)
    const { streamId, id: topicId } = topic
    for (let added = 0; added < count; added++) {
      const place = { key: this.#nextKey++, streamId, topicId, partitionId: topic.partitions.length }
      const partition = new MemoryPartition(this.log, place, () => topic.options)
      topic.partitions.push(partition)
      this.log.partitions.set(partition.key, partition)
    }
    this.#changed()
  }

  async removePartitions(asked: Topic, count: number): Promise<void> {
    for (const { key } of this.#presentTopic(asked).partitions.splice(-count)) this.log.partitions.delete(key)
    this.#changed()
  }

  #present(asked: Stream): MemoryStream {
    const stream = this.streams.get(asked.id)
    if (stream === asked) return stream
    throw new EdgeError('EDGE_STREAM_NOT_FOUND', `stream ${asked.name}`)
  }

  #presentTopic(asked: Topic): MemoryTopic {
    const topic = this.topic(asked.streamId, asked.id)
    if (topic === asked) return topic
    throw new EdgeError('EDGE_TOPIC_NOT_FOUND', `topic ${asked.name}`)
  }
}

const noProducers: ProducerTable = {
  numberOf: () => 0,
  have: () => undefined,
  lanes: () => [],
  devices: () => [],
  forget: () => 0,
  record: (_tag, receipt) => receipt.settled(null),
}

interface Named {
  readonly id: number
  readonly name: string
}

function byIdOrName<T extends Named>(all: ReadonlyMap<number, T>, id: number | string): T | undefined {
  if (typeof id === 'number') return all.get(id)
  for (const one of all.values()) if (one.name === id) return one
  return undefined
}

function lowestFree(all: ReadonlyMap<number, unknown>): number {
  let id = 0
  while (all.has(id)) id++
  return id
}

function insertSorted<T extends Named>(all: Map<number, T>, one: T): void {
  const rows = [...all.values(), one].sort((left, right) => left.id - right.id)
  all.clear()
  for (const row of rows) all.set(row.id, row)
}
