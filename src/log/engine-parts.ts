/**
 * The parts of the engine, each made from the engine's options and what it needs of the others. What a part asks of one that
 * is made after it comes as a function: nothing is called before all of them are there.
 */
import type { EdgeError } from '../errors.ts'
import { sharedKernel } from '../sdk/wire/kernel/shared-kernel.ts'
import { MAX_BATCH_SIZE } from './append-path.ts'
import { bootNumber, hashBootId, isSameBoot } from './core/boot.ts'
import type { Written } from './core/flash-budget.ts'
import type { RollLimits } from './core/repack-plan.ts'
import type { DiskTrouble } from './disk-trouble.ts'
import type { EngineOptions } from './engine-options.ts'
import { listTold } from './folder-trouble.ts'
import { zstdCodec } from './io/block-codec.ts'
import { bodyChecksum } from './io/checksum.ts'
import { Journal } from './io/journal.ts'
import { JournalFiles, type JournalFilesOptions } from './io/journal-files.ts'
import { JournalReader } from './io/journal-reader.ts'
import type { FoundJournal } from './io/journal-recovery.ts'
import { LargeBatches, type LargeBatchesOptions } from './io/large-batches.ts'
import { PartitionReader } from './io/partition-reader.ts'
import { REFUGE } from './io/refuge.ts'
import { Refusals } from './io/refusals.ts'
import { Repacker } from './io/repacker.ts'
import { SegmentFiles } from './io/segment-files.ts'
import { noKeys } from './io/store-keys.ts'
import { groupCommitOptions, journalBufferSize, journalSizes, lastGroup } from './journal-start.ts'
import { Maintenance, type MaintenanceOptions } from './maintenance.ts'
import type { LogPartition } from './partition.ts'
import { type Recovered, type RecoveryOptions, recoverPartitions } from './recovery.ts'
import { reportLateHeader } from './recovery-report.ts'
import { SegmentRemoval, type SegmentRemovalOptions } from './segment-removal.ts'
import type { LogSettings } from './settings.ts'

/** Of the indexes of segments that readers come back to: those of some 80,000 blocks, five gigabytes of messages. */
const MAX_INDEX_BYTES = 2 * 1024 * 1024

/** This start of the machine, against those that left the journal. */
export interface MachineStart {
  readonly bootHash: number
  /** Nothing of what was found lies in the cache alone: the machine has started since, or that rule is left out. */
  readonly isAllOnDisk: boolean
}

/** What whoever writes segments needs: numbers of runs, and whom to tell of each write. */
export interface SegmentWriting {
  readonly nextRunNumber: () => number
  readonly written: Written
  /** A file was begun in the partition's folder, or was refused there and lies in its refuge. */
  readonly placed: (partition: LogPartition, refusal: EdgeError | undefined) => void
  /** Names in the partition's folder cannot be made or taken for good. */
  readonly giveUpFolder: (partition: LogPartition, refusal: EdgeError) => void
}

export function machineStart({ bootId, rules }: EngineOptions, found: FoundJournal): MachineStart {
  const bootHash = hashBootId(new TextEncoder().encode(bootId))
  return { bootHash, isAllOnDisk: rules?.isCacheTrusted === true || !isSameBoot(found.scan.boots, bootHash) }
}

export function createSegmentFiles(options: EngineOptions): SegmentFiles {
  const { fileSystem, scheduler, clock, settings, codec = zstdCodec } = options
  return new SegmentFiles({
    refusals: new Refusals(clock, settings.append_retry),
    fileSystem,
    scheduler,
    checksum: bodyChecksum,
    codec,
    maxOpenFiles: settings.open_segments,
    decodedBlocks: settings.decoded_blocks,
    maxIndexBytes: options.maxIndexBytes ?? MAX_INDEX_BYTES,
  })
}

/** @param hadFailure an earlier process of this machine start saw a sync fail. */
export function recover(
  { fileSystem, hints, settings, report, keys = noKeys, rules = {} }: EngineOptions,
  { bootHash, isAllOnDisk }: MachineStart,
  {
    hadFailure,
    ...needs
  }: Pick<RecoveryOptions, 'journal' | 'partitions' | 'tagged' | 'lost' | 'sequenceOwner'> & {
    readonly hadFailure: boolean
  },
): Recovered {
  const { boots } = needs.journal.scan
  return recoverPartitions({
    ...needs,
    fileSystem,
    checksum: bodyChecksum,
    keys,
    hints,
    refuges: listTold({ fileSystem, report }, REFUGE) ?? [],
    journalFileSize: journalSizes(settings.journal_file_size, needs.journal, []).largestSize,
    isAllOnDisk,
    isCacheDoubtful: hadFailure && !isAllOnDisk,
    bootNumber: (highestSegmentBoot) => bootNumber(boots, bootHash, { hadFailure, highestSegmentBoot }),
    rules,
    unsound: (path, how) => reportLateHeader(path, how, report),
  })
}

export function createRemoval(
  { fileSystem, descriptors, scheduler, rules }: EngineOptions,
  needs: Pick<SegmentRemovalOptions, 'segmentFiles' | 'closedSegments' | 'exclusive' | 'makeRoom' | 'changed'>,
): SegmentRemoval {
  const isUnlinkedBeforeFloor = rules?.isUnlinkedBeforeFloor === true
  return new SegmentRemoval({ ...needs, fileSystem, descriptors, scheduler, isUnlinkedBeforeFloor })
}

export function createJournalFiles(
  options: EngineOptions,
  found: FoundJournal,
  needs: Pick<JournalFilesOptions, 'fileSize' | 'nextSequence' | 'recycling'>,
): JournalFiles {
  const { fileSystem, flash, storeIdBytes, descriptors, hints, keys = noKeys, rules = {} } = options
  return new JournalFiles(
    {
      ...needs,
      fileSystem,
      storeIdBytes,
      keys,
      written: flash.written,
      randomU64: options.randomU64,
      keyFloor: () => descriptors.nextKey,
      changed: (generations, isDurable) => hints.setJournalFiles(generations, isDurable),
      isOrderIgnored: rules.isPrepareOrderIgnored === true,
    },
    found.files,
  )
}

export interface JournalNeeds {
  readonly files: JournalFiles
  readonly found: FoundJournal
  readonly recovered: Recovered
  readonly trouble: DiskTrouble
  readonly maintenance: () => Maintenance
  /** A write or sync is told. */
  readonly settled: () => void
}

export function createJournal(options: EngineOptions, start: MachineStart, needs: JournalNeeds): Journal {
  const { settings, flash, clock, scheduler, randomU64, keys = noKeys, rules = {} } = options
  const { files, found, recovered, trouble, maintenance, settled } = needs
  const isSealing = keys.currentId !== 0
  const bufferSize = journalBufferSize(settings.journal_file_size, isSealing)
  const journal: Journal = new Journal({
    files,
    start: {
      ordinal: found.scan.nextOrdinal,
      boot: recovered.boot,
      bootHash: start.bootHash,
      last: lastGroup(found, start.isAllOnDisk),
      again: recovered.again,
    },
    bufferSize,
    isSealing,
    commit: groupCommitOptions(settings, bufferSize),
    budget: flash.budget,
    retryMs: settings.append_retry,
    clock,
    scheduler,
    checksum: bodyChecksum,
    randomU64,
    events: {
      fileSealed: () => maintenance().kick(),
      fileWanted: () => maintenance().kick(),
      settled,
      startRecorded: () => trouble.startRecorded(),
      failed: (error, file) => trouble.failed(error, file, journal.refusal !== undefined),
      writableAgain: () => trouble.ended(),
    },
    rules,
  })
  return journal
}

export function createReader(
  { readBuffer }: EngineOptions,
  needs: {
    readonly journal: Journal
    readonly files: JournalFiles
    readonly segmentFiles: SegmentFiles
    readonly largestFileSize: number
  },
): PartitionReader {
  // What was written before encryption was turned on, or into larger files, may be larger than what is written now.
  const buffer = readBuffer ?? sharedKernel().reserve(journalBufferSize(needs.largestFileSize))
  return new PartitionReader(new JournalReader(needs.journal, needs.files, bodyChecksum, buffer), needs.segmentFiles)
}

export function createLargeBatches(
  options: EngineOptions,
  writing: SegmentWriting,
  needs: Pick<LargeBatchesOptions, 'journal' | 'stored' | 'entered'>,
): LargeBatches {
  const { fileSystem, scheduler, storeIdBytes, codec = zstdCodec, keys = noKeys } = options
  return new LargeBatches({
    ...writing,
    ...needs,
    fileSystem,
    scheduler,
    codec,
    checksum: bodyChecksum,
    storeIdBytes,
    keys,
    randomU32: randomU32Of(options),
    maxWaitingBytes: MAX_BATCH_SIZE,
  })
}

export function createRepacker(
  options: EngineOptions,
  writing: SegmentWriting,
  needs: { readonly segments: SegmentFiles; readonly partitions: () => Iterable<LogPartition> },
): Repacker {
  const { fileSystem, clock, scheduler, storeIdBytes, settings, codec = zstdCodec, keys = noKeys, rules = {} } = options
  const limitsOf = (partition: LogPartition): RollLimits => ({
    sizeBytes: segmentSizeOf(partition, settings),
    maxAgeUs: BigInt(settings.segment_max_age) * 1000n,
  })
  return new Repacker({
    ...writing,
    ...needs,
    fileSystem,
    codec,
    checksum: bodyChecksum,
    clock,
    scheduler,
    storeIdBytes,
    keys,
    limitsOf,
    randomU32: randomU32Of(options),
    windowSize: options.repackWindowSize,
    rules,
  })
}

/** Bytes at which the partition's segments are closed. */
export function segmentSizeOf({ options }: LogPartition, { segment_size }: LogSettings): number {
  return options.segmentSizeBytes ?? segment_size
}

export function createMaintenance(
  { fileSystem, flash, clock, scheduler, settings, report, rules }: EngineOptions,
  needs: Pick<MaintenanceOptions, 'files' | 'fileSize' | 'journal' | 'repack' | 'checkpoint' | 'changed'>,
): Maintenance {
  return new Maintenance({
    ...needs,
    fileSystem,
    clock,
    scheduler,
    fileCount: settings.journal_files,
    retryMs: settings.append_retry,
    written: flash.written,
    repackAfterUs: settings.repack_after * 1000,
    report,
    isHoldIgnored: rules?.isHoldIgnored === true,
  })
}

const randomU32Of =
  ({ randomU64 }: EngineOptions) =>
  (): number =>
    Number(randomU64() & 0xffffffffn)
