/**
 * Where things lie in the data folder. Pure. Names that people give never become paths: folders are named by numbers.
 *
 *   store.json
 *   metadata.sqlite, metadata.sqlite-offsets                SQLite, and offsets it does not have yet
 *   streams/<stream id>/stream.json
 *   streams/<stream id>/topics/<topic id>/topic.json
 *   streams/<stream id>/topics/<topic id>/<key>/            segments of one partition incarnation
 *   refuge/<key>/                                           segments of one that the folder above did not take
 *   staging/<number>/                                       a stream or topic on its way in, nameless until renamed
 *   trash/<number>/                                         a stream, topic or partition on its way out
 *   quarantine/                                             what was damaged
 */
export const STORE_FILE = 'store.json'
export const STREAM_FILE = 'stream.json'
export const TOPIC_FILE = 'topic.json'
export const STREAMS = 'streams'
export const STAGING = 'staging'
export const TRASH = 'trash'
export const METADATA_FILE = 'metadata.sqlite'
/** The database and SQLite's own side files, which are worth nothing without the database they belong to. */
export const SQLITE_ENDINGS = ['', '-wal', '-shm']
/**
 * Behind the database's name: consumer offsets that it does not have yet. No side file of SQLite's: its rows name partitions
 * by keys, which the descriptors keep, so it counts also for a database that is made anew and is never set aside with one.
 */
export const OFFSETS_ENDING = '-offsets'
export const OFFSETS_FILE = METADATA_FILE + OFFSETS_ENDING
/** Behind the database's name: the one that takes a damaged one's place. Alone, it is whole and waits for its name. */
export const REBUILT_ENDING = '-rebuilt'
/** Everything that stands for metadata in the data folder. */
export const METADATA_FILES = [...SQLITE_ENDINGS, OFFSETS_ENDING].map((ending) => METADATA_FILE + ending)

/** Ids and keys are u32. */
const NUMBER_MAX = 2 ** 32 - 1

export const streamFolder = (streamId: number): string => `${STREAMS}/${streamId}`
export const streamFile = (streamId: number): string => `${streamFolder(streamId)}/${STREAM_FILE}`
export const topicsFolder = (streamId: number): string => `${streamFolder(streamId)}/topics`
export const topicFolder = (streamId: number, topicId: number): string => `${topicsFolder(streamId)}/${topicId}`
export const topicFile = (streamId: number, topicId: number): string =>
  `${topicFolder(streamId, topicId)}/${TOPIC_FILE}`

export function partitionFolder(streamId: number, topicId: number, key: number): string {
  return `${topicFolder(streamId, topicId)}/${key}`
}

/** @returns the number a folder is named by, or null for any other name (`007`, `1.tmp`, `lost+found`). */
export function numberOf(name: string): number | null {
  if (!/^(0|[1-9][0-9]{0,9})$/.test(name)) return null
  const number = Number(name)
  return number <= NUMBER_MAX ? number : null
}
