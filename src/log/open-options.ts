/** What the log is opened with. Types only. */
import type { Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import type { Cron } from './cron.ts'
import type { EncryptionSettings } from './encryption-settings.ts'
import type { EngineRules } from './engine-options.ts'
import type { BlockCodec } from './io/block-codec.ts'
import type { FileSystem } from './io/file-system.ts'
import type { RetentionSettings } from './retention-settings.ts'
import type { Scheduler } from './scheduler.ts'
import type { LogSettings } from './settings.ts'

export interface OpenLogOptions {
  /** The data folder; made when it is not there, unless `expectExisting`. */
  readonly path: string
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: LogSettings
  /** The defaults when left out. */
  readonly retention?: RetentionSettings
  /** Plain when left out. */
  readonly encryption?: EncryptionSettings
  /** The folder held a store before: an empty one is a disk that was not mounted. */
  readonly expectExisting?: boolean
  /** Whether wall time can be trusted now; true when left out. */
  readonly isClockTrusted?: () => boolean
  /** Called with each file and folder that is looked at, also later: the start goes on. Must not throw, nor take long. */
  readonly onProgress?: () => void
  /** SQLite's native addon when it does not lie in `node_modules`. */
  readonly nativeBinding?: string

  // Simulated in tests; the machine's when left out.
  /** Tells one machine start from another. */
  readonly bootId?: string
  readonly fileSystem?: FileSystem
  readonly scheduler?: Scheduler
  readonly cron?: Cron
  readonly randomU64?: () => bigint
  /** `:memory:` for a log that lives on a simulated disk. */
  readonly metadataPath?: string
  readonly codec?: BlockCodec
  /** Rules to leave out, to see that a test notices. */
  readonly rules?: EngineRules
}
