/** A data folder with a catalog in it, and an engine that only makes folders. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EdgeError } from '../../src/errors.ts'
import type { Partition, TopicOptions } from '../../src/log/api.ts'
import type { StoreCatalog } from '../../src/log/catalog/catalog.ts'
import { RECOVERED_OPTIONS } from '../../src/log/catalog/scan.ts'
import { FlashUse } from '../../src/log/flash-use.ts'
import type { FileSystem } from '../../src/log/io/file-system.ts'
import { createNodeFileSystem } from '../../src/log/io/node-file-system.ts'
import type { SqliteMetadata } from '../../src/log/metadata/metadata-store.ts'
import { openNames } from '../../src/log/names.ts'
import type { PartitionHost, PartitionSpec } from '../../src/log/ports.ts'
import type { Scheduler } from '../../src/log/scheduler.ts'
import { LOG_SETTINGS } from '../../src/log/settings.ts'
import { defaultsOf } from '../../src/setting.ts'
import { streamAt } from './by-number.ts'

export const OPTIONS: TopicOptions = {
  ...RECOVERED_OPTIONS,
  messageExpiryUs: 5_000_000n,
  maxSizeBytes: 2n ** 60n,
  given: new Map([['segment_size', { kind: 3, valueBytes: Uint8Array.of(1, 2, 255) }]]),
}

/** The engine's side: makes the folders and remembers what it was told. */
export class RecordingHost implements PartitionHost {
  readonly specs = new Map<number, PartitionSpec>()
  readonly removed: number[] = []
  readonly updated: number[] = []
  failAtKey = -1
  readonly #fileSystem: FileSystem

  constructor(fileSystem: FileSystem) {
    this.#fileSystem = fileSystem
  }

  addPartition(spec: PartitionSpec): Partition {
    if (spec.key === this.failAtKey) throw new EdgeError('EDGE_DISK_FULL', 'no room')
    this.#fileSystem.makeDirectory(spec.directory)
    this.specs.set(spec.key, spec)
    return { ...spec } as unknown as Partition
  }

  removePartition(key: number): void {
    this.removed.push(key)
    this.specs.delete(key)
  }

  updateOptions(key: number): void {
    this.updated.push(key)
  }
}

export interface OpenCatalog {
  catalog: StoreCatalog
  metadata: SqliteMetadata
  host: RecordingHost
  close(): Promise<void>
}

/** One temporary folder; made before and removed after each test. */
export class CatalogWorld {
  folder = ''
  nowUs = 1_700_000_000_000_000n
  findings: string[] = []
  tasks: (() => void)[] = []
  readonly opened: OpenCatalog[] = []

  create(): void {
    this.folder = mkdtempSync(join(tmpdir(), 'edge-catalog-'))
    this.findings = []
    this.tasks = []
  }

  async destroy(): Promise<void> {
    for (const store of this.opened.splice(0)) await store.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  fileSystem(): FileSystem {
    return createNodeFileSystem(this.folder)
  }

  async open(fileSystem: FileSystem = this.fileSystem(), maxPartitions = 5000): Promise<OpenCatalog> {
    const { catalog, metadata, close } = await openNames({
      fileSystem,
      metadataPath: join(this.folder, 'metadata.sqlite'),
      clock: { wallUs: () => this.nowUs++, monotonicUs: () => 0 },
      scheduler: this.#scheduler(),
      report: (finding) => this.findings.push(finding.event),
      settings: { ...defaultsOf(LOG_SETTINGS), max_partitions: maxPartitions },
      flash: new FlashUse(0, { wallUs: () => 0n, monotonicUs: () => 0 }),
      expectExisting: false,
    })
    const host = new RecordingHost(fileSystem)
    catalog.attach(host, () => undefined)
    const store = { catalog, metadata, host, close }
    this.opened.push(store)
    return store
  }

  async reopen(store: OpenCatalog): Promise<OpenCatalog> {
    await store.close()
    return this.open()
  }

  /** Runs what waits, as often as it asks for more. */
  drain(): void {
    for (let turn = 0; turn < 1000 && this.tasks.length > 0; turn++) this.tasks.shift()?.()
  }

  /** Nothing runs by itself. */
  #scheduler(): Scheduler {
    return {
      nextTurn: (task) => void this.tasks.push(task),
      after: (_delay, task) => {
        this.tasks.push(task)
        return () => {
          this.tasks = this.tasks.filter((other) => other !== task)
        }
      },
    }
  }
}

export const isCode = (code: string) => (error: unknown) => error instanceof EdgeError && error.code === code

/** Everything a user can see, as plain data. */
export function seen(catalog: StoreCatalog) {
  return [...catalog.streams.values()].map(({ id, name, createdAtUs, topics }) => ({
    id,
    name,
    createdAtUs,
    topics: [...topics.values()].map((topic) => ({
      id: topic.id,
      name: topic.name,
      createdAtUs: topic.createdAtUs,
      options: topic.options,
      partitions: topic.partitions.map(({ key, partitionId, idSeed, createdAtUs: at }) => ({
        key,
        partitionId,
        idSeed,
        at,
      })),
    })),
  }))
}

/** Two streams, three topics, partition keys 1 to 4. */
export async function fillStore(store: OpenCatalog): Promise<void> {
  await store.catalog.createStream('plant')
  await store.catalog.createStream('öfen / "3"')
  await store.catalog.createTopic(streamAt(store.catalog, 0), {
    name: 'temperature',
    partitionCount: 3,
    options: OPTIONS,
  })
  await store.catalog.createTopic(streamAt(store.catalog, 0), {
    name: '../../escape',
    partitionCount: 1,
    options: OPTIONS,
  })
  await store.catalog.createTopic(streamAt(store.catalog, 1), {
    name: 'temperature',
    partitionCount: 0,
    options: OPTIONS,
  })
}
