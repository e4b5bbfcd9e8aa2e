/** Segment files and their writers as tests want them: plain, with small caches. */
import { systemClock } from '../../src/clock.ts'
import { plainCodec } from '../../src/log/io/block-codec.ts'
import { bodyChecksum } from '../../src/log/io/checksum.ts'
import type { FileSystem } from '../../src/log/io/file-system.ts'
import { Refusals } from '../../src/log/io/refusals.ts'
import type { Segment } from '../../src/log/io/segment.ts'
import { SegmentFiles } from '../../src/log/io/segment-files.ts'
import { SegmentWriter, type SegmentWriterOptions } from '../../src/log/io/segment-writer.ts'
import { noKeys } from '../../src/log/io/store-keys.ts'
import { systemScheduler } from '../../src/log/scheduler.ts'

export const plainSegmentFiles = (fileSystem: FileSystem): SegmentFiles =>
  new SegmentFiles({
    fileSystem,
    scheduler: systemScheduler,
    checksum: bodyChecksum,
    codec: plainCodec,
    decodedBlocks: 4,
    maxOpenFiles: 4,
    maxIndexBytes: 1024 * 1024,
    refusals: new Refusals(systemClock, 0),
  })

/** Of one partition; what is given replaces the options of a writer that goes on behind `active`. */
export const plainSegmentWriter = (
  given: Pick<SegmentWriterOptions, 'fileSystem' | 'files' | 'directory' | 'nextRunNumber'>,
  active: Segment | undefined,
): SegmentWriter =>
  new SegmentWriter(
    {
      storeIdBytes: new Uint8Array(16),
      keys: noKeys,
      checksum: bodyChecksum,
      key: 1,
      refuge: 'refuge/1',
      leftovers: new Set(),
      limits: { sizeBytes: 1024 * 1024, maxAgeUs: 1_000_000n },
      randomU32: () => 7,
      nowUs: 0n,
      ...given,
    },
    active,
  )
