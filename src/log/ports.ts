/**
 * What the two halves of the log ask of each other: the *engine* (journal, segments, recovery) and the *catalog* (names,
 * descriptors, SQLite). `log.ts` wires them; nothing else imports this file.
 */
import type { Catalog, Durability, LogFinding, Partition, ProducerTag, TopicOptions } from './api.ts'
import type { Hole } from './core/holes.ts'

/** A problem worth telling. With a `series` it tells the same trouble as the one before, which it takes the place of. */
export type NewFinding = Omit<LogFinding, 'atUs'> & { readonly series?: string }

/** Takes a problem worth telling; whoever owns the list of findings adds the time and logs it. */
export type ReportFinding = (finding: NewFinding) => void

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
  /**
   * Its batches in the journal are forgotten, its files closed, nothing is written for it any more. The catalog has moved
   * its folder to the trash in the same turn: if that fails, the partition stays whole.
   */
  removePartition(key: number): void
  /** The topic's options changed: expiry, size, overflow (durability is fixed at creation). */
  updateOptions(key: number, options: TopicOptions): void
}

/** A segment as retention sees it. Times and counts may be read from its file when they are asked for. */
export interface SealedSegment {
  readonly baseOffset: bigint
  /** Exclusive: where the next segment begins. */
  readonly endOffset: bigint
  /** Physical bytes. */
  readonly sizeBytes: number
  /** What of it comes free on the disk with it: messages that lie in the journal leave its files as large as they are. */
  readonly fileBytes: number
  readonly messageCount: number
  /** Append time of its last batch, µs since the Unix epoch. */
  readonly lastAppendUs: bigint
  /** False when that time came from a clock not to be trusted: it expires with the first one behind it that has one. */
  readonly isClockTrusted: boolean
}

/** What was dropped of one partition: a run of segments at its old end. */
export interface DroppedSegments {
  readonly count: number
  readonly fromOffset: bigint
  /** Exclusive. */
  readonly endOffset: bigint
  readonly messageCount: number
  readonly sizeBytes: number
}

/** The engine's side, for retention. */
export interface SegmentHost {
  /** Oldest first, without gaps in order, the one that still grows left out; empty for unknown keys. */
  sealedSegments(key: number): readonly SealedSegment[]
  /**
   * Closed ones behind them whose messages still lie in the journal. The first includes the file that still grows, if there
   * is one, so nobody drops that one beside them.
   */
  journalSegments(key: number): readonly SealedSegment[]
  /** Whether batches that still belong to the journal lie in files of their own. */
  hasLargeBatches(key: number): boolean
  /** The one that still grows, if any. */
  activeSegment(key: number): SealedSegment | null
  /** It grows no more: the next messages go into another. */
  sealActive(key: number): Promise<void>
  /**
   * Drops at most `count` closed segments, the oldest first and none with an offset above `lastOffset` (null: no bound).
   * @returns what was dropped, if anything was.
   */
  dropOldest(key: number, count: number, lastOffset: bigint | null): Promise<DroppedSegments | undefined>
  /** Bytes of everything: segments, journal, reserves, SQLite, quarantine, trash. */
  diskUsedBytes(): number
}

/** The oldest messages of one partition that lie in the journal, in the file that has to come free first. */
export interface JournalHead {
  readonly fromOffset: bigint
  /** Exclusive. */
  readonly endOffset: bigint
  readonly messageCount: number
  readonly sizeBytes: number
}

/** The engine's side, for retention: a journal that waits for room on a full disk. */
export interface StuckJournalHost {
  /** What has to go, by partition key, so that a file comes free; empty as long as anything can be moved into segments. */
  heads(): ReadonlyMap<number, JournalHead>
  /** Gives up everything below, if the journal is still stuck. @returns whether it did. @throws EDGE_DISK_FULL, EDGE_IO. */
  drop(key: number, endOffset: bigint): Promise<boolean>
}

/** Retention's side, for the engine: asked at every append, so it is one look into a map. */
export interface AppendGate {
  /** Why a topic takes nothing now: over its size or the disk budget, and not allowed to drop what it has. */
  refusal(key: number): 'reject' | 'drop-newest' | null
  /** Counts messages that a full `drop-newest` topic did not take; `nextOffset` is where they would have gone. */
  droppedNewest(key: number, nextOffset: bigint, messageCount: number, sizeBytes: number): void
  /** A segment was sealed, or one may have ended in the journal, a repack ended, or the disk is full: look at sizes soon. */
  segmentsChanged(): void
}

/** The catalog's side, for the engine. */
export interface DescriptorStore extends Pick<Catalog, 'streams'> {
  /** All partitions of all readable descriptors. */
  specs(): readonly PartitionSpec[]
  /** Bytes of deleted folders that wait for their removal, as far as they are known. */
  readonly trashBytes: number
  /** Lowest key that was never given. */
  readonly nextKey: number
  /** Batches in the journal with an unknown key below it belong to deleted topics, others to topics whose names are lost. */
  readonly firstLostKey: number
  /**
   * Makes a topic for a partition at or above `firstLostKey` that only the journal knows: its descriptor and the copy are lost.
   * In memory only, so that recovery goes on.
   */
  adopt(key: number, durability: Durability): PartitionSpec
  /** Makes adopted ones durable: before anything of the journal may be recycled. @throws EDGE_DISK_FULL, EDGE_IO. */
  keepAdopted(): Promise<void>
  /** Makes higher floors, by key, durable before the first file below is unlinked. One file holds those of a topic. */
  raiseFloors(floors: ReadonlyMap<number, bigint>): Promise<void>
}

/**
 * SQLite rows that spare a scan, or outlive the file that tells the same; all may be missing or old. Only ever used to raise
 * a next offset or to skip work.
 */
export interface HintStore {
  hint(key: number): PartitionHint | undefined
  setHints(hints: ReadonlyMap<number, PartitionHint>): void
  /** Generations of the journal's files when they last changed; empty when nothing is noted. */
  journalFiles(): readonly number[]
  setJournalFiles(generations: readonly number[], isDurable: boolean): void
  /** Offsets that partitions go on above, by key, as they were last kept. */
  owedOffsets(): ReadonlyMap<number, bigint>
  /** Durable when this returns, in place of those before. @throws EDGE_DISK_FULL, EDGE_IO. */
  keepOwedOffsets(owed: ReadonlyMap<number, bigint>): void
  /** Offsets that partitions left out, by key, as they were last kept. */
  jumps(): ReadonlyMap<number, readonly Jump[]>
  /** Durable when this returns, in place of those before. @throws EDGE_DISK_FULL, EDGE_IO. */
  keepJumps(jumps: ReadonlyMap<number, readonly Jump[]>): void
}

export type Jump = Omit<Hole, 'reason'>

export interface PartitionHint {
  readonly nextOffset: bigint
  readonly segmentEnd: bigint
  readonly messageCount: number
}

/** Checkpoint of the producer table, written before the journal file that holds the same facts is recycled. */
export interface ProducerStore {
  loadDevices(): readonly { device: number; name: string }[]
  addDevice(device: number, name: string): void
  /** With its sequences; durable when it returns. */
  removeDevice(device: number): void
  loadSequences(): readonly ProducerSequence[]
  /** Durable (`synchronous=FULL`) when it returns. */
  saveSequences(changed: readonly ProducerSequence[], removed: readonly ProducerSequence[]): void
}

export interface ProducerSequence extends Pick<ProducerTag, 'device' | 'epoch' | 'lane'> {
  readonly have: number
  readonly seenAtUs: bigint
}

export type { Durability }
