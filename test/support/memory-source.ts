/** A local log and its cursors in memory, as sync sees them. */
import { packMessages } from '../../src/sdk/index.ts'
import type { StoredBatch } from '../../src/sdk/wire/batch.ts'
import type { Cursor, CursorStore, LogSource, SourcePartition, SourceRead, SourceTopic } from '../../src/sync/ports.ts'

export class MemoryPartition implements SourcePartition {
  readonly key: number
  readonly partitionId: number
  logStartOffset = 0n
  durableEnd = 0n
  foundEnd = 0n
  readonly #batches: StoredBatch[] = []
  readonly #callbacks = new Set<() => void>()

  constructor(key: number, partitionId: number) {
    this.key = key
    this.partitionId = partitionId
  }

  append(...payloads: readonly string[]): void {
    const nowUs = BigInt(Date.now()) * 1000n
    const batch = packMessages(
      payloads.map((text) => ({ payload: new TextEncoder().encode(text), id: 77n })),
      nowUs,
      null,
    )
    const place = { baseOffset: this.durableEnd, appendTimeUs: nowUs, idSeed: 1n }
    this.#batches.push({ ...batch, ...place, skip: 0, take: batch.count, isClockTrusted: true })
    this.durableEnd += BigInt(batch.count)
    for (const callback of this.#callbacks) callback()
  }

  /** As if an older copy of it had been restored: ends with the batch that ends there. */
  restore(end: bigint): void {
    while ((this.#batches.at(-1)?.baseOffset ?? -1n) >= end) this.#batches.pop()
    this.durableEnd = end
  }

  read(fromOffset: bigint, maxCount: number, maxBytes: number): SourceRead {
    const batches: StoredBatch[] = []
    let next = fromOffset
    let left = maxCount
    let sizeBytes = 0
    for (const batch of this.#batches) {
      const end = batch.baseOffset + BigInt(batch.count)
      if (end <= next || left === 0 || (batches.length > 0 && sizeBytes >= maxBytes)) continue
      const skip = Number(next - batch.baseOffset)
      const take = Math.min(batch.count - skip, left)
      batches.push({ ...batch, skip, take })
      next += BigInt(take)
      left -= take
      sizeBytes += batch.recordsView.length
    }
    return { batches, nextOffset: next, messageCount: maxCount - left }
  }

  onAppended(callback: () => void): () => void {
    this.#callbacks.add(callback)
    return () => this.#callbacks.delete(callback)
  }
}

export class MemorySource implements LogSource, CursorStore {
  readonly storeId = crypto.getRandomValues(new Uint8Array(16))
  readonly cursors = new Map<string, Cursor>()
  readonly #topics: { streamName: string; topicName: string; partitions: MemoryPartition[] }[] = []
  readonly #callbacks = new Set<() => void>()
  #nextKey = 1

  addTopic(streamName: string, topicName: string, partitionCount: number): readonly MemoryPartition[] {
    const topic = { streamName, topicName, partitions: [] as MemoryPartition[] }
    for (let id = 0; id < partitionCount; id++) topic.partitions.push(new MemoryPartition(this.#nextKey++, id))
    this.#topics.push(topic)
    for (const callback of this.#callbacks) callback()
    return topic.partitions
  }

  addPartition(topicName: string): MemoryPartition {
    const topic = this.#topics.find((one) => one.topicName === topicName)
    if (topic === undefined) throw new Error(`no topic ${topicName}`)
    const partition = new MemoryPartition(this.#nextKey++, topic.partitions.length)
    topic.partitions.push(partition)
    for (const callback of this.#callbacks) callback()
    return partition
  }

  topics(): readonly SourceTopic[] {
    return this.#topics
  }

  onTopicsChanged(callback: () => void): () => void {
    this.#callbacks.add(callback)
    return () => this.#callbacks.delete(callback)
  }

  cursor(route: string, partitionKey: number): Cursor | undefined {
    return this.cursors.get(`${route} ${partitionKey}`)
  }

  setCursor(route: string, partitionKey: number, cursor: Cursor): void {
    this.cursors.set(`${route} ${partitionKey}`, cursor)
  }
}
