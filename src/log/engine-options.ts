/** What the engine is given; types only. */
import type { Clock } from '../clock.ts'
import type { ScanRules } from './core/journal-scan.ts'
import type { FlashUse } from './flash-use.ts'
import type { BlockCodec } from './io/block-codec.ts'
import type { FileSystem } from './io/file-system.ts'
import type { JournalRules } from './io/journal-options.ts'
import type { RepackRules } from './io/repacker.ts'
import type { StoreKeys } from './io/store-keys.ts'
import type { DescriptorStore, HintStore, ProducerStore, ReportFinding } from './ports.ts'
import type { RecoveryRules } from './recovery.ts'
import type { Scheduler } from './scheduler.ts'
import type { LogSettings } from './settings.ts'

/** Rules that a test leaves out, to see that the simulation notices. */
export interface EngineRules extends ScanRules, JournalRules, RepackRules, RecoveryRules {
  readonly isHoldIgnored?: boolean
  readonly isPrepareOrderIgnored?: boolean
  readonly isUnlinkedBeforeFloor?: boolean
}

export interface EngineOptions {
  readonly fileSystem: FileSystem
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly report: ReportFinding
  readonly settings: LogSettings
  readonly flash: FlashUse
  readonly storeIdBytes: Uint8Array
  readonly bootId: string
  readonly descriptors: DescriptorStore
  readonly hints: HintStore
  readonly producerStore: ProducerStore
  readonly randomU64: () => bigint
  readonly isClockTrusted?: () => boolean
  readonly codec?: BlockCodec
  /** Of sealed files; none when left out. All that the store has in use must be there. */
  readonly keys?: StoreKeys
  /** Keeps bytes that cannot be used and may be rescued; `origin` is the file they lie in. */
  readonly setAside?: (origin: string, bytesView: Uint8Array) => void
  /** Where hot batches are read to; at least the largest batch. */
  readonly readBuffer?: Uint8Array
  /** Bytes of a journal file that a repack looks at together; a usual size when left out. */
  readonly repackWindowSize?: number
  /** Of the indexes of segments that stay in memory; a usual size when left out. */
  readonly maxIndexBytes?: number
  readonly rules?: EngineRules
}
