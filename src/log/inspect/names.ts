/** Names of streams and topics as the descriptor files say them, or SQLite's copies, or nobody. Nothing is mended. */
import type { PartitionDescriptor, TopicDescriptor } from '../catalog/descriptor.ts'
import { type Parsed, parseStream, parseTopic } from '../catalog/descriptor.ts'
import { DescriptorFiles } from '../catalog/descriptor-files.ts'
import {
  numberOf,
  partitionFolder,
  STREAMS,
  streamFile,
  topicFile,
  topicFolder,
  topicsFolder,
} from '../catalog/layout.ts'
import { knownStreams, knownTopics } from '../catalog/scan.ts'
import { soundOr } from '../catalog/store-state.ts'
import { type DirectoryEntry, type FileSystem, listGiven } from '../io/file-system.ts'
import type { DatabaseReport } from '../metadata/integrity.ts'
import { NO_ID } from '../metadata/log-tables.ts'

export interface InspectedPartition {
  readonly partitionId: number
  readonly key: number
  readonly idSeed: bigint
  /** Offsets below it were given up; 0 when no descriptor says. */
  readonly floorOffset: bigint
  /** A descriptor names it, or SQLite's copy of one. */
  readonly isDescribed: boolean
  readonly directory: string
}

export interface InspectedTopic {
  readonly streamId: number
  readonly streamName: string
  readonly topicId: number
  readonly topicName: string
  readonly partitions: readonly InspectedPartition[]
}

export type Tell = (level: 'error' | 'warn', path: string, text: string) => void

interface Sources {
  readonly fileSystem: FileSystem
  readonly files: DescriptorFiles
  readonly copies: DatabaseReport['descriptors']
  readonly tell: Tell
}

/** @throws {EdgeError} EDGE_STORE_NEWER, EDGE_IO. */
export function readNames(
  fileSystem: FileSystem,
  copies: DatabaseReport['descriptors'],
  tell: Tell,
): readonly InspectedTopic[] {
  const sources: Sources = { fileSystem, files: new DescriptorFiles(fileSystem), copies, tell }
  return (foldersIn(sources, STREAMS) ?? knownStreams(sources)).flatMap((streamId) => {
    const stream = readDescriptor(sources, { streamId, topicId: NO_ID }, streamFile(streamId), parseStream)
    const streamName = stream?.name ?? `recovered-stream-${streamId}`
    const topicIds = foldersIn(sources, topicsFolder(streamId)) ?? knownTopics(sources, streamId)
    return topicIds.map((topicId) => readTopic(sources, { streamId, streamName, topicId }))
  })
}

function readTopic(
  sources: Sources,
  place: { readonly streamId: number; readonly streamName: string; readonly topicId: number },
): InspectedTopic {
  const { streamId, topicId } = place
  const topic = readDescriptor(sources, { streamId, topicId }, topicFile(streamId, topicId), parseTopic)
  const keys = foldersIn(sources, topicFolder(streamId, topicId)) ?? []
  const descriptors = topic === null ? keys.map(withoutDescriptor) : withFolders(topic, keys)
  const described = new Set(topic?.partitions.map(({ key }) => key))
  const partitions = descriptors.map(({ key, idSeed, floorOffset }, partitionId) => {
    const directory = partitionFolder(streamId, topicId, key)
    return { partitionId, key, idSeed, floorOffset, isDescribed: described.has(key), directory }
  })
  return { ...place, topicName: topic?.name ?? `recovered-${keys[0] ?? topicId}`, partitions }
}

/** Folders that no descriptor names come behind: of a partition whose removal was cut short, or of a lost descriptor. */
function withFolders(topic: TopicDescriptor, keys: readonly number[]): readonly PartitionDescriptor[] {
  const known = new Set(topic.partitions.map(({ key }) => key))
  return [...topic.partitions, ...keys.filter((key) => !known.has(key)).map(withoutDescriptor)]
}

/** Without a seed, ids that were derived from it cannot be told; the records can. */
const withoutDescriptor = (key: number): PartitionDescriptor => ({ key, idSeed: 0n, createdAtUs: 0n, floorOffset: 0n })

function readDescriptor<T>(
  { files, copies, tell }: Sources,
  place: { readonly streamId: number; readonly topicId: number },
  path: string,
  parse: (body: string) => Parsed<T>,
): T | null {
  const found = files.read(path)
  const value = found.kind === 'sound' ? soundOr(path, parse(found.body)) : null
  if (value !== null) return value
  const copy = copies.find(({ streamId, topicId }) => streamId === place.streamId && topicId === place.topicId)
  const restored = copy === undefined ? null : soundOr(`copy of ${path}`, parse(copy.body))
  const state = found.kind === 'missing' ? 'is missing' : 'is damaged'
  if (restored === null) tell('error', path, `${state} and SQLite has no copy: a name is made up at the next start`)
  else tell('warn', path, `${state} and is restored from SQLite's copy at the next start`)
  return restored
}

function foldersIn(sources: Sources, path: string): number[] | undefined {
  const numbers = listed(sources, path)?.map(({ name, isDirectory }) => (isDirectory ? numberOf(name) : null))
  return numbers?.filter((number) => number !== null).sort((a, b) => a - b)
}

/** What lies in a folder; undefined where it cannot be listed, which is told. */
export function listed(
  { fileSystem, tell }: Pick<Sources, 'fileSystem' | 'tell'>,
  path: string,
): readonly DirectoryEntry[] | undefined {
  return listGiven(fileSystem, path, ({ message }) => {
    tell('error', path, `cannot be listed, what lies there is not looked at: ${message}`)
  })
}
