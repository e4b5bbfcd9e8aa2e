/** Opens the catalog: finds or makes the store, reads and mends the descriptors, brings SQLite's copy up to them. */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { Written } from '../core/flash-budget.ts'
import { listTold } from '../folder-trouble.ts'
import { type FileSystem, listGiven } from '../io/file-system.ts'
import { type DescriptorCopy, type DescriptorPlace, NO_ID } from '../metadata/log-tables.ts'
import type { SqliteMetadata } from '../metadata/metadata-store.ts'
import type { ReportFinding } from '../ports.ts'
import { QUARANTINE, type Quarantine } from '../quarantine.ts'
import type { Scheduler } from '../scheduler.ts'
import { LOG_SETTINGS } from '../settings.ts'
import { StoreCatalog } from './catalog.ts'
import {
  formatStore,
  formatStream,
  formatTopic,
  type PartitionDescriptor,
  parseStore,
  parseTopic,
  type StoreDescriptor,
} from './descriptor.ts'
import { DescriptorFiles } from './descriptor-files.ts'
import { FIRST_KEY, KeyAllocator } from './key-allocator.ts'
import { STAGING, STORE_FILE, STREAMS, TRASH, topicFolder } from './layout.ts'
import { Registry, StreamEntry, TopicEntry } from './registry.ts'
import { removeTemporaries, type ScannedStream, type ScannedTopic, scanDescriptors } from './scan.ts'
import { type StoreState, soundOr } from './store-state.ts'
import { Trash } from './trash.ts'

const STORE_ID_BYTES = 16
/** Skipped when the key floor is lost: keys of deleted partitions may have been that far above the highest one left. */
const LOST_KEYS_GAP = 65_536

export interface CatalogOptions {
  readonly fileSystem: FileSystem
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly report: ReportFinding
  readonly metadata: SqliteMetadata
  readonly quarantine: Quarantine
  /** What `inspectStore` found, before SQLite was opened. */
  readonly state: StoreState
  /** What journal headers say of the store, for when `store.json` and its copy are gone. */
  readonly journalWitness?: () => { readonly storeId: Uint8Array; readonly nextKey: number } | undefined
  readonly maxPartitions?: number
  readonly written: Written
  /** What the store is to note of the encryption keys in use; null or left out: none is. */
  readonly keyCheck?: string | null
}

/**
 * The catalog answers reads at once; `attach` gives it the engine, and only then it takes changes.
 *
 * @throws {EdgeError} EDGE_STORE_NEWER, EDGE_DISK_FULL, EDGE_IO.
 */
export async function openCatalog(options: CatalogOptions): Promise<StoreCatalog> {
  const { fileSystem, metadata, quarantine, report } = options
  const files = new DescriptorFiles(fileSystem, options.written)
  const copies = metadata.copies.all()
  await makeFolders(fileSystem)
  const store = await noteKeys(await openStore(options, files, copies), options.keyCheck ?? null, files)
  const seedOf = (key: number) => seedFor(store.storeId, key)
  const nowUs = options.clock.wallUs()
  const keys = new KeyAllocator(store, files, metadata.copies)
  const topicLost = () => keys.namesLost()
  const scanned = await scanDescriptors({ fileSystem, files, copies, quarantine, report, nowUs, seedOf, topicLost })
  removeTemporaries(fileSystem, scanned)

  const registry = new Registry()
  const trash = new Trash({ fileSystem, scheduler: options.scheduler, report })
  fill(registry, scanned, report)
  await discardLeftovers({ fileSystem, report }, trash, scanned)
  if (scanned.some(({ topics }) => topics.some(({ origin }) => origin === 'copy'))) keys.copiedUpTo(highestOf(copies))
  updateCopies(metadata, registry, keys.store, copies)
  await keys.skipTo(highestKey(registry) + 1)
  const maxPartitions = options.maxPartitions ?? LOG_SETTINGS.max_partitions.default
  return new StoreCatalog({ ...options, files, registry, trash, keys, seedOf, maxPartitions })
}

async function makeFolders(fileSystem: FileSystem): Promise<void> {
  const present = new Set(fileSystem.list('').map(({ name }) => name))
  const missing = [STREAMS, STAGING, TRASH, QUARANTINE].filter((folder) => !present.has(folder))
  for (const folder of missing) fileSystem.makeDirectory(folder)
  if (missing.length > 0) await fileSystem.syncDirectory('')
}

/** The store as it was, from the first witness that still knows it; a new one only when there is none. */
async function openStore(
  options: CatalogOptions,
  files: DescriptorFiles,
  copies: readonly DescriptorCopy[],
): Promise<StoreDescriptor> {
  const { state, report } = options
  if (state.kind === 'existing') return state.store
  if (state.kind === 'lost' && state.isDamaged) options.quarantine.take(STORE_FILE, options.clock.wallUs())
  const copy = copies.find(({ streamId }) => streamId === NO_ID)
  const restored = copy === undefined ? null : soundOr(`copy of ${STORE_FILE}`, parseStore(copy.body))
  const store = restored ?? fromJournal(options) ?? newStore(options, state.kind === 'lost' && hasStreams(options))
  await files.write(STORE_FILE, formatStore(store))
  if (restored !== null) {
    const text = `${STORE_FILE} was damaged or missing and is restored from the copy in SQLite`
    report({ event: 'log.descriptor.restored', level: 'warn', text, fields: { store_id: store.storeId.toHex() } })
  } else if (hasStreams(options)) {
    const text = `${STORE_FILE} and its copy are gone: made anew from what the journal and the folders tell`
    report({ event: 'log.store.recovered', level: 'error', text, fields: { store_id: store.storeId.toHex() } })
  }
  return store
}

/** Durable before the first file is sealed: from then on a wrong key is told before anything is opened. */
async function noteKeys(
  store: StoreDescriptor,
  keyCheck: string | null,
  files: DescriptorFiles,
): Promise<StoreDescriptor> {
  if (store.keyCheck === keyCheck) return store
  const noted = { ...store, keyCheck }
  await files.write(STORE_FILE, formatStore(noted))
  return noted
}

function fromJournal(options: CatalogOptions): StoreDescriptor | null {
  const witness = options.journalWitness?.()
  if (witness === undefined) return null
  return {
    storeId: witness.storeId,
    createdAtUs: options.clock.wallUs(),
    nextKeyFloor: Math.max(FIRST_KEY, witness.nextKey),
    keyCheck: null,
    isRebuilt: true,
  }
}

function newStore(options: CatalogOptions, isLost: boolean): StoreDescriptor {
  const storeId = Uint8Array.from(randomBytes(STORE_ID_BYTES))
  const nextKeyFloor = isLost ? FIRST_KEY + LOST_KEYS_GAP : FIRST_KEY
  return { storeId, createdAtUs: options.clock.wallUs(), nextKeyFloor, keyCheck: null, isRebuilt: isLost }
}

function hasStreams(options: CatalogOptions): boolean {
  return (listGiven(options.fileSystem, STREAMS) ?? []).length > 0
}

/** As good as random, and found again when the descriptor is lost: ids derived from it stay the same. */
function seedFor(storeId: Uint8Array, key: number): bigint {
  const place = new Uint8Array(4)
  new DataView(place.buffer).setUint32(0, key, true)
  return createHash('sha256').update(storeId).update(place).digest().readBigUInt64LE(0)
}

/** What its file says keeps its name; what had to be mended gives way to it. */
function fill(registry: Registry, scanned: readonly ScannedStream[], report: ReportFinding): void {
  const usedKeys = new Set<number>()
  for (const found of originFirst(scanned)) {
    const name = freeName(found.descriptor.name, (candidate) => registry.stream(candidate) !== undefined)
    const stream = new StreamEntry(found.id, name, found.descriptor.createdAtUs)
    registry.addStream(stream)
    for (const topic of originFirst(found.topics)) addTopic(stream, topic, usedKeys, report)
    if (name !== found.descriptor.name) reportRenamed(report, `stream ${found.id}`, found.descriptor.name, name)
  }
}

function addTopic(stream: StreamEntry, found: ScannedTopic, usedKeys: Set<number>, report: ReportFinding): void {
  // By its number: a copied folder holds the name of another.
  const place = `topic ${found.id} of stream ${JSON.stringify(stream.name)}`
  const twice = found.descriptor.partitions.find(({ key }) => usedKeys.has(key))
  if (twice !== undefined) {
    const text = `${place} claims partition key ${twice.key}, which another topic has: left out (was its folder copied?)`
    report({ event: 'log.descriptor.key_twice', level: 'error', text, fields: { key: twice.key } })
    stream.blockTopicId(found.id)
    return
  }
  for (const { key } of found.descriptor.partitions) usedKeys.add(key)
  const name = freeName(found.descriptor.name, (candidate) => stream.topic(candidate) !== undefined)
  stream.addTopic(new TopicEntry(stream.id, found.id, { ...found.descriptor, name }))
  if (name !== found.descriptor.name) reportRenamed(report, place, found.descriptor.name, name)
}

function originFirst<T extends { readonly origin: string }>(found: readonly T[]): readonly T[] {
  return [...found.filter(({ origin }) => origin === 'file'), ...found.filter(({ origin }) => origin !== 'file')]
}

function freeName(name: string, isTaken: (name: string) => boolean): string {
  if (!isTaken(name)) return name
  for (let number = 2; ; number++) {
    const candidate = `recovered-${number}-${name.slice(0, 32)}`.toWellFormed()
    if (!isTaken(candidate)) return candidate
  }
}

function reportRenamed(report: ReportFinding, place: string, from: string, to: string): void {
  const text = `${place} is called ${JSON.stringify(to)}: ${JSON.stringify(from)} is the name of another`
  report({ event: 'log.descriptor.renamed', level: 'warn', text, fields: { name: to } })
}

/** Half-made streams and topics, and partitions whose removal was cut short. */
async function discardLeftovers(
  { fileSystem, report }: Pick<CatalogOptions, 'fileSystem' | 'report'>,
  trash: Trash,
  scanned: readonly ScannedStream[],
): Promise<void> {
  const parents = new Set<string>()
  const discard = (parent: string, name: string | number) => {
    trash.take(`${parent}/${name}`)
    parents.add(parent)
  }
  for (const { name } of listTold({ fileSystem, report }, STAGING) ?? []) discard(STAGING, name)
  for (const stream of scanned) {
    for (const topic of stream.topics) {
      for (const key of topic.orphanKeys) discard(topicFolder(stream.id, topic.id), key)
    }
  }
  if (parents.size > 0) await trash.settle([...parents])
}

/** Files are the truth: copies that differ are replaced, copies of what is gone are forgotten with all their rows. */
function updateCopies(
  metadata: SqliteMetadata,
  registry: Registry,
  store: StoreDescriptor,
  copies: readonly DescriptorCopy[],
): void {
  const wanted = new Map<string, DescriptorCopy>()
  const want = (copy: DescriptorCopy) => wanted.set(placeOf(copy), copy)
  want({ streamId: NO_ID, topicId: NO_ID, body: formatStore(store) })
  for (const stream of registry.streams.values())
    want({ streamId: stream.id, topicId: NO_ID, body: formatStream(stream) })
  for (const topic of registry.topics()) {
    want({ streamId: topic.streamId, topicId: topic.id, body: formatTopic(topic.descriptor()) })
  }
  const present = new Map(copies.map((copy) => [placeOf(copy), copy]))
  const gone = copies.filter((copy) => !wanted.has(placeOf(copy)))
  const changed = [...wanted.values()].filter((copy) => present.get(placeOf(copy))?.body !== copy.body)
  // A topic that was deleted and made again while SQLite missed both: its groups belong to the one that is gone.
  const replaced = changed.filter((copy) => isOtherIncarnation(copy, present.get(placeOf(copy))))
  if (gone.length + replaced.length > 0) metadata.forget([...gone, ...replaced], [])
  if (changed.length > 0) metadata.copies.put(changed)
  const keys = new Set<number>()
  for (const topic of registry.topics()) for (const { key } of topic.partitionDescriptors) keys.add(key)
  metadata.useTopicKeys((streamId, topicId) => {
    const topic = registry.streams.get(streamId)?.topics.get(topicId)
    return topic === undefined ? [] : topic.partitionDescriptors.map(({ key }) => key)
  })
  metadata.forgetUnknown(
    (streamId, topicId) => registry.streams.get(streamId)?.topics.has(topicId) === true,
    (key) => keys.has(key),
  )
}

function isOtherIncarnation(copy: DescriptorCopy, before: DescriptorCopy | undefined): boolean {
  if (before === undefined || copy.topicId === NO_ID) return false
  return createdAtOf(copy.body) !== createdAtOf(before.body)
}

function createdAtOf(body: string): string | undefined {
  return /"createdAtUs":"([0-9]+)"/.exec(body)?.[1]
}

function placeOf({ streamId, topicId }: DescriptorPlace): string {
  return `${streamId}/${topicId}`
}

function highestKey(registry: Registry): number {
  return highestIn([...registry.topics()].flatMap(({ partitionDescriptors }) => partitionDescriptors))
}

/** Of the partitions that the copies know. */
function highestOf(copies: readonly DescriptorCopy[]): number {
  const topics = copies.filter(({ topicId }) => topicId !== NO_ID)
  return highestIn(topics.flatMap(({ body }) => soundOr('copy of a topic', parseTopic(body))?.partitions ?? []))
}

const highestIn = (partitions: readonly PartitionDescriptor[]): number =>
  partitions.reduce((highest, { key }) => Math.max(highest, key), FIRST_KEY - 1)
