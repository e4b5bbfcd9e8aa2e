/**
 * Reads all descriptors at open and mends what is damaged: first everything is read (a newer format stops the start before
 * a byte is changed), then the missing is restored from SQLite's copy, and what neither holds gets a name of its own.
 */
import type { TopicOptions } from '../api.ts'
import { listTold } from '../folder-trouble.ts'
import { type FileSystem, isDone, isRefused, listGiven } from '../io/file-system.ts'
import { type DescriptorCopy, NO_ID } from '../metadata/log-tables.ts'
import type { ReportFinding } from '../ports.ts'
import type { Quarantine } from '../quarantine.ts'
import {
  formatStream,
  formatTopic,
  type Parsed,
  type PartitionDescriptor,
  parseStream,
  parseTopic,
  type StreamDescriptor,
  type TopicDescriptor,
} from './descriptor.ts'
import { type DescriptorFiles, isTemporary } from './descriptor-files.ts'
import { numberOf, STREAMS, streamFile, streamFolder, topicFile, topicFolder, topicsFolder } from './layout.ts'
import { MAX_STREAMS, MAX_TOPICS_PER_STREAM } from './registry.ts'
import { soundOr } from './store-state.ts'

export interface ScanOptions {
  readonly fileSystem: FileSystem
  readonly files: DescriptorFiles
  readonly copies: readonly DescriptorCopy[]
  readonly quarantine: Quarantine
  readonly report: ReportFinding
  readonly nowUs: bigint
  readonly seedOf: (key: number) => bigint
  /** Before a topic is made of which nothing is left but its folder: the journal may hold partitions of it. */
  readonly topicLost: () => Promise<void>
}

/** Where a descriptor came from: its file, SQLite's copy, or nowhere (a name was made up). */
export type Origin = 'file' | 'copy' | 'made'

export interface ScannedTopic {
  readonly id: number
  readonly origin: Origin
  readonly descriptor: TopicDescriptor
  /** Keys of folders that no descriptor names: partitions whose removal was cut short. */
  readonly orphanKeys: readonly number[]
}

export interface ScannedStream {
  readonly id: number
  readonly origin: Origin
  readonly descriptor: StreamDescriptor
  readonly topics: readonly ScannedTopic[]
}

/** What a topic without any descriptor gets: keeps everything, promises the most. */
export const RECOVERED_OPTIONS: TopicOptions = {
  durability: 'durable',
  overflow: 'drop-oldest',
  messageExpiryUs: null,
  maxSizeBytes: null,
  segmentSizeBytes: null,
  compression: 'none',
  replicationFactor: 1,
  dedupWindow: null,
  retainLast: false,
  given: new Map(),
}

interface Read<T> {
  readonly id: number
  readonly value: T | null
  readonly isDamaged: boolean
}

interface ReadTopic extends Read<TopicDescriptor> {
  readonly folderKeys: readonly number[]
}

interface ReadStream extends Read<StreamDescriptor> {
  readonly topics: readonly ReadTopic[]
}

/** @throws {EdgeError} EDGE_STORE_NEWER, EDGE_DISK_FULL; EDGE_IO where the machine is short of something. */
export async function scanDescriptors(options: ScanOptions): Promise<readonly ScannedStream[]> {
  const ids = foldersIn(options, STREAMS, MAX_STREAMS) ?? knownStreams(options)
  const read = ids.map((id) => readStream(options, id))
  const streams: ScannedStream[] = []
  for (const stream of read) {
    const mended = await mend(options, {
      read: stream,
      place: { streamId: stream.id, topicId: NO_ID },
      path: streamFile(stream.id),
      parse: parseStream,
      format: formatStream,
      make: () => ({ name: `recovered-stream-${stream.id}`, createdAtUs: options.nowUs }),
    })
    const topics: ScannedTopic[] = []
    for (const topic of stream.topics) topics.push(await mendTopic(options, stream.id, topic))
    streams.push({ id: stream.id, ...mended, topics })
  }
  return streams
}

function readStream(options: ScanOptions, id: number): ReadStream {
  const topicIds = foldersIn(options, topicsFolder(id), MAX_TOPICS_PER_STREAM) ?? knownTopics(options, id)
  return {
    id,
    ...readDescriptor(options, streamFile(id), parseStream),
    topics: topicIds.map((topicId) => ({
      id: topicId,
      ...readDescriptor(options, topicFile(id, topicId), parseTopic),
      // Of one that cannot be listed none is taken for a leftover.
      folderKeys: foldersIn(options, topicFolder(id, topicId), Number.POSITIVE_INFINITY) ?? [],
    })),
  }
}

/** By SQLite's copies; what is not there any more was deleted, and its copy is old. */
export function knownStreams({ files, copies }: Pick<ScanOptions, 'files' | 'copies'>): number[] {
  const ids = new Set(copies.map(({ streamId }) => streamId).filter((id) => id !== NO_ID))
  return inOrder([...ids].filter((id) => files.read(streamFile(id)).kind !== 'missing'))
}

export function knownTopics({ files, copies }: Pick<ScanOptions, 'files' | 'copies'>, streamId: number): number[] {
  const topics = copies.filter((copy) => copy.streamId === streamId && copy.topicId !== NO_ID)
  const ids = topics.map(({ topicId }) => topicId)
  return inOrder(ids.filter((id) => files.read(topicFile(streamId, id)).kind !== 'missing'))
}

const inOrder = (numbers: readonly number[]): number[] => [...numbers].sort((a, b) => a - b)

function readDescriptor<T>(options: ScanOptions, path: string, parse: (body: string) => Parsed<T>) {
  const found = options.files.read(path)
  const value = found.kind === 'sound' ? soundOr(path, parse(found.body)) : null
  return { value, isDamaged: value === null && found.kind !== 'missing' }
}

async function mendTopic(options: ScanOptions, streamId: number, read: ReadTopic): Promise<ScannedTopic> {
  const mended = await mend(options, {
    read,
    lost: options.topicLost,
    place: { streamId, topicId: read.id },
    path: topicFile(streamId, read.id),
    parse: parseTopic,
    format: formatTopic,
    make: () => recoveredTopic(options, read),
  })
  const known = new Set(mended.descriptor.partitions.map(({ key }) => key))
  const unknown = read.folderKeys.filter((key) => !known.has(key))
  if (mended.origin === 'file' || unknown.length === 0) return { id: read.id, ...mended, orphanKeys: unknown }
  // The copy may be older than the file it stands in for: what it does not name is data of a partition added since.
  const partitions = [...mended.descriptor.partitions, ...unknown.map((key) => recoveredPartition(options, key))]
  const descriptor = { ...mended.descriptor, partitions }
  await keep(options, topicFile(streamId, read.id), formatTopic(descriptor))
  return { id: read.id, origin: mended.origin, descriptor, orphanKeys: [] }
}

interface Named {
  readonly name: string
}

interface Mending<T extends Named> {
  readonly read: Read<T>
  readonly lost?: () => Promise<void>
  readonly place: { readonly streamId: number; readonly topicId: number }
  readonly path: string
  readonly parse: (body: string) => Parsed<T>
  readonly format: (descriptor: T) => string
  readonly make: () => T
}

async function mend<T extends Named>(
  options: ScanOptions,
  mending: Mending<T>,
): Promise<{ descriptor: T; origin: Origin }> {
  const { read, path, place } = mending
  if (read.value !== null) return { descriptor: read.value, origin: 'file' }
  if (read.isDamaged) isDone(() => options.quarantine.take(path, options.nowUs))
  const state = read.isDamaged ? 'damaged' : 'missing'
  const copy = options.copies.find(({ streamId, topicId }) => streamId === place.streamId && topicId === place.topicId)
  const restored = copy === undefined ? null : soundOr(`copy of ${path}`, mending.parse(copy.body))
  if (restored !== null) {
    await keep(options, path, mending.format(restored))
    const what = `${place.topicId === NO_ID ? 'stream' : 'topic'} ${JSON.stringify(restored.name)}`
    const text = `${path} was ${state}: ${what} is restored from the copy in SQLite`
    options.report({ event: 'log.descriptor.restored', level: 'warn', text, fields: fieldsOf(place) })
    return { descriptor: restored, origin: 'copy' }
  }
  await mending.lost?.()
  const made = mending.make()
  await keep(options, path, mending.format(made))
  const text = `${path} was ${state} and SQLite has no copy: its data is kept under the name ${JSON.stringify(made.name)}`
  options.report({
    event: 'log.descriptor.recovered',
    level: 'error',
    text,
    fields: { ...fieldsOf(place), name: made.name },
  })
  return { descriptor: made, origin: 'made' }
}

/** Where the folder does not take it, it counts in memory, and the next start mends it again. @throws EDGE_DISK_FULL. */
async function keep({ files, report }: ScanOptions, path: string, body: string): Promise<void> {
  try {
    await files.write(path, body)
  } catch (error) {
    if (!isRefused(error)) throw error
    const text = `${path} cannot be written, what it should say counts until the edge is stopped: ${error.message}`
    report({ event: 'log.descriptor.unwritten', level: 'error', text, fields: { path, error_code: error.code } })
  }
}

/** Keys rise with partition ids, so the folders alone give back the order. */
function recoveredTopic(options: ScanOptions, read: ReadTopic): TopicDescriptor {
  const [firstKey] = read.folderKeys
  return {
    name: firstKey === undefined ? `recovered-topic-${read.id}` : `recovered-${firstKey}`,
    createdAtUs: options.nowUs,
    options: RECOVERED_OPTIONS,
    partitions: read.folderKeys.map((key) => recoveredPartition(options, key)),
  }
}

function recoveredPartition(options: ScanOptions, key: number): PartitionDescriptor {
  return { key, idSeed: options.seedOf(key), createdAtUs: options.nowUs, floorOffset: 0n }
}

/**
 * Numbers that name the folders in a folder, ascending; all else in it is not ours and stays.
 *
 * @returns undefined where it cannot be listed, which is told.
 */
function foldersIn(options: ScanOptions, path: string, end: number): number[] | undefined {
  const numbers = listTold(options, path)?.map(({ name, isDirectory }) => (isDirectory ? numberOf(name) : null))
  return numbers && inOrder(numbers.filter((number) => number !== null).filter((number) => number < end))
}

/** Removes temporary files that a crash left beside descriptors. Run after the scan. */
export function removeTemporaries(fileSystem: FileSystem, streams: readonly ScannedStream[]): void {
  const folders = streams.flatMap(({ id, topics }) => [
    streamFolder(id),
    ...topics.map((topic) => topicFolder(id, topic.id)),
  ])
  for (const folder of ['', ...folders]) {
    for (const { name, isDirectory } of listGiven(fileSystem, folder) ?? []) {
      if (!isDirectory && isTemporary(name)) fileSystem.unlink(folder === '' ? name : `${folder}/${name}`)
    }
  }
}

function fieldsOf(place: { streamId: number; topicId: number }): Record<string, number> {
  return place.topicId === NO_ID
    ? { stream_id: place.streamId }
    : { stream_id: place.streamId, topic_id: place.topicId }
}
