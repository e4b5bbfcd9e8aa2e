/**
 * Everything of the log but its messages, opened in the one order that is safe: look (nothing is touched when the folder is
 * of a newer release or a disk is missing), SQLite, descriptors. `log.ts` opens the engine on top and attaches it.
 */
import type { Clock } from '../clock.ts'
import type { StoreCatalog } from './catalog/catalog.ts'
import { METADATA_FILE, SQLITE_ENDINGS } from './catalog/layout.ts'
import { type CatalogOptions, openCatalog } from './catalog/open-catalog.ts'
import { inspectStore } from './catalog/store-state.ts'
import type { FlashUse } from './flash-use.ts'
import type { FileSystem } from './io/file-system.ts'
import { openMetadata, type SqliteMetadata } from './metadata/metadata-store.ts'
import type { ReportFinding } from './ports.ts'
import { Quarantine } from './quarantine.ts'
import type { Scheduler } from './scheduler.ts'
import type { LogSettings } from './settings.ts'

export interface NamesOptions {
  readonly fileSystem: FileSystem
  /** `metadata.sqlite` as SQLite opens it: an absolute path, or `:memory:` in the simulation. */
  readonly metadataPath: string
  /** SQLite's native addon when it does not lie in `node_modules`. */
  readonly nativeBinding?: string
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly report: ReportFinding
  readonly flash: Pick<FlashUse, 'written' | 'delayFactor'>
  readonly settings: Pick<
    LogSettings,
    'quarantine_size' | 'quarantine_max_age' | 'max_partitions' | 'max_consumer_offsets'
  >
  /** The folder held a store before: refuse an empty one. */
  readonly expectExisting: boolean
  /** What journal headers say of the store, for when `store.json` and its copy are gone. */
  readonly journalWitness?: NonNullable<CatalogOptions['journalWitness']>
  /** What `store.json` notes of the keys in use; nothing is sealed before it does. */
  readonly keyCheck?: string | null
}

export interface Names {
  readonly catalog: StoreCatalog
  readonly metadata: SqliteMetadata
  readonly quarantine: Quarantine
  /** After the engine: it raises floors until its end. Idempotent. */
  close(): Promise<void>
}

/** @throws {EdgeError} EDGE_STORE_MISSING, EDGE_STORE_NEWER, EDGE_STORE_IN_USE, EDGE_DISK_FULL, EDGE_IO. */
export async function openNames(options: NamesOptions): Promise<Names> {
  const { fileSystem, clock, settings } = options
  const state = inspectStore(fileSystem, options.expectExisting)
  const maxAgeUs = BigInt(settings.quarantine_max_age) * 1000n
  const quarantine = new Quarantine({ fileSystem, maxBytes: settings.quarantine_size, maxAgeUs })
  const metadata = openMetadata({
    path: options.metadataPath,
    ...(options.nativeBinding === undefined ? {} : { nativeBinding: options.nativeBinding }),
    scheduler: options.scheduler,
    report: options.report,
    setAside: () => setAside(fileSystem, quarantine, clock.wallUs()),
    maxConsumerOffsets: settings.max_consumer_offsets,
    flash: options.flash,
    isExpected: state.kind !== 'first-start' && options.metadataPath !== ':memory:',
  })
  try {
    const catalog = await openCatalog({
      ...options,
      metadata,
      quarantine,
      state,
      written: options.flash.written,
      maxPartitions: settings.max_partitions,
    })
    const close = async () => {
      await catalog.close()
      metadata.close()
    }
    return { catalog, metadata, quarantine, close }
  } catch (error) {
    metadata.close()
    throw error
  }
}

function setAside(fileSystem: FileSystem, quarantine: Quarantine, nowUs: bigint): void {
  const present = new Set(fileSystem.list('').map(({ name }) => name))
  for (const ending of SQLITE_ENDINGS) {
    if (present.has(METADATA_FILE + ending)) quarantine.take(METADATA_FILE + ending, nowUs)
  }
}
