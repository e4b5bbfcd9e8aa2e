/** Segment files as tests of their writers and removers want them: plain, with small caches. */
import { plainCodec } from '../../src/log/io/block-codec.ts'
import { bodyChecksum } from '../../src/log/io/checksum.ts'
import type { FileSystem } from '../../src/log/io/file-system.ts'
import { SegmentFiles } from '../../src/log/io/segment-files.ts'
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
  })
