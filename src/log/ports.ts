/**
 * What the two halves of the log ask of each other: the *engine* (journal, segments, recovery) and the *catalog* (names,
 * descriptors, SQLite). `log.ts` wires them; nothing else imports this file.
 */
import type { Durability, Partition, ProducerTag, TopicOptions } from './api.ts'

/** One partition incarnation as its topic descriptor knows it. */
export interface PartitionSpec {
  readonly key: number
  readonly streamId: number
  readonly topicId: number
  readonly partitionId: number
  readonly createdAtUs: bigint
  readonly idSeed: bigint
  /** Folder of its segments, relative to the data folder. */
  readonly directory: string
  /** Everything below is gone for good: purged, or emptied by retention. */
  readonly floorOffset: bigint
  readonly options: TopicOptions
}

/** The engine's side: partitions come and go with the catalog. */
export interface PartitionHost {
  /** Makes a partition usable at once: its folder exists and is durable. */
  addPartition(spec: PartitionSpec): Partition
  /** Its batches in the journal are forgotten, its files closed; the catalog then moves the folder to the trash. */
  removePartition(key: number): void
  /** The topic's options changed: expiry, size, overflow (durability is fixed at creation). */
  updateOptions(key: number, options: TopicOptions): void
}

/** The catalog's side, for the engine. */
export interface DescriptorStore {
  /** All partitions of all readable descriptors. */
  specs(): readonly PartitionSpec[]
  /** Lowest key that was never given: batches in the journal with an unknown key below it belong to deleted topics. */
  readonly nextKey: number
  /** Makes a higher floor durable before the first file below it is unlinked. */
  raiseFloor(key: number, floorOffset: bigint): Promise<void>
}

/** SQLite rows that spare a scan; all may be missing or old. Only ever used to raise a next offset or to skip work. */
export interface HintStore {
  hint(key: number): PartitionHint | undefined
  setHints(hints: ReadonlyMap<number, PartitionHint>): void
}

export interface PartitionHint {
  readonly nextOffset: bigint
  readonly segmentEnd: bigint
  readonly messageCount: number
}

/** Checkpoint of the producer table, written before the journal file that holds the same facts is recycled. */
export interface ProducerStore {
  loadDevices(): readonly { device: number; name: string }[]
  addDevice(device: number, name: string): void
  loadSequences(): readonly ProducerSequence[]
  /** Durable (`synchronous=FULL`) when it returns. */
  saveSequences(changed: readonly ProducerSequence[], removed: readonly ProducerSequence[]): void
}

export interface ProducerSequence extends Pick<ProducerTag, 'device' | 'epoch' | 'lane'> {
  readonly have: number
  readonly seenAtUs: bigint
}

export type { Durability }
