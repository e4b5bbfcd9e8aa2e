/** What a run of `log-world.ts` is asked for, and what it counts. */
import type { EngineRules } from '../../src/log/engine-options.ts'
import type { StoreKeys } from '../../src/log/io/store-keys.ts'

export interface WorldOptions {
  readonly rules?: EngineRules
  /** Bits flip on a disk that is otherwise sound; off to look at crashes alone. */
  readonly isRotting?: boolean
  /** Part of the steps in which damage comes beside that, where no sync fails. */
  readonly rotRate?: number
  /** Part of the steps in which the folder of a partition begins or ends to refuse files. */
  readonly refusalRate?: number
  /** What lies in such a folder is immutable as well. */
  readonly areFilesRefusing?: boolean
  /** Part of the power cuts after which a large batch comes first and is refused. */
  readonly refusedLargeRate?: number
  /** Part of the steps in which the device begins to refuse all reads for a while. */
  readonly outageRate?: number
  /** Part of the batches that are larger than the journal takes, beside those drawn. */
  readonly largeRate?: number
  /** Part of the steps in which a partition is purged, beside those drawn. */
  readonly purgeRate?: number
  /** Part of the syncs that fail, instead of one drawn. */
  readonly syncFailureRate?: number
  /** Keys of the next open; plain when left out. */
  readonly keys?: () => StoreKeys
}

export interface WorldCounts {
  steps: number
  kills: number
  cuts: number
  acks: number
  rots: number
  /** Folders that were found to take no files. */
  refusals: number
  failures: number
  /** Times at which the device gave nothing for a while. */
  outages: number
}
