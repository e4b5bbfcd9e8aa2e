/**
 * Looks at a `metadata.sqlite` that is not open without changing it: SQLite writes beside a file even when it only reads
 * (recovery of the write-ahead log), so a copy is looked at.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { messageOf } from '../../errors.ts'
import { refuseOtherThanFile } from '../../file-kind.ts'
import { SQLITE_ENDINGS } from '../catalog/layout.ts'
import { columnFrom } from './consumer-column.ts'
import { parseJournalFiles } from './log-tables.ts'
import { findStrangeTable, isOurLayout } from './migrations.ts'
import { GENERATION_SETTING, JOURNAL_FILES_SETTING, SCHEMA_VERSION } from './schema.ts'

export interface DatabaseReport {
  /** What is wrong; empty when it is sound. */
  readonly problems: readonly string[]
  /** Layout above ours: written by a newer release. */
  readonly isNewer: boolean
  readonly version: number
  /** Copies of the descriptors, as far as they read. */
  readonly descriptors: readonly { readonly streamId: number; readonly topicId: number; readonly body: string }[]
  /** As far as they read; the offset trail may have newer ones. */
  readonly consumerOffsets: readonly StoredOffset[]
  /** Which rows of the offset trail are newer than this database; undefined when it does not say. */
  readonly offsetGeneration: number | undefined
  /** By partition key: an offset below which everything had been synced. */
  readonly syncedEnds: ReadonlyMap<number, bigint>
  /** Generations of the journal's files when they last changed. */
  readonly journalFiles: readonly number[]
}

export interface StoredOffset {
  readonly partitionKey: number
  /** Kind and id of the consumer: `consumer-column.ts`. */
  readonly column: number
  readonly offset: bigint
}

/** Of a database of which nothing reads, or which is not there. */
export const NO_DATABASE: DatabaseReport = {
  problems: [],
  isNewer: false,
  version: 0,
  descriptors: [],
  consumerOffsets: [],
  offsetGeneration: undefined,
  syncedEnds: new Map(),
  journalFiles: [],
}

/** Lines of SQLite's own check that are kept. */
const MAX_PROBLEMS = 20

/** @param path of the file; its `-wal` is taken along. */
export function inspectDatabase(path: string, nativeBinding?: string): DatabaseReport {
  let folder: string | undefined
  try {
    folder = mkdtempSync(join(tmpdir(), 'iggy-edge-check-'))
    const copy = join(folder, 'metadata.sqlite')
    for (const ending of SQLITE_ENDINGS) refuseOtherThanFile(path + ending)
    copyFileSync(path, copy)
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`)
    return inspectCopy(copy, nativeBinding)
  } catch (error) {
    return { ...NO_DATABASE, problems: [messageOf(error)] }
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
}

function inspectCopy(path: string, nativeBinding?: string): DatabaseReport {
  const database = new Database(path, nativeBinding === undefined ? {} : { nativeBinding })
  try {
    const version = Number(database.pragma('user_version', { simple: true }))
    const verdicts = database.prepare<[], string>(`PRAGMA integrity_check(${MAX_PROBLEMS})`).pluck().all()
    const generation = readSetting(database, GENERATION_SETTING)
    return {
      problems: [...verdicts.filter((verdict) => verdict !== 'ok'), ...layoutProblems(database, version)],
      isNewer: version > SCHEMA_VERSION && !isOurLayout(database),
      version,
      descriptors: readDescriptors(database),
      consumerOffsets: readOffsets(database),
      offsetGeneration: generation === undefined ? undefined : Number(generation),
      syncedEnds: readSyncedEnds(database),
      journalFiles: parseJournalFiles(readSetting(database, JOURNAL_FILES_SETTING)),
    }
  } finally {
    database.close()
  }
}

/** Pages may be sound and what they hold is not ours: the next start finds the same. */
function layoutProblems(database: Database.Database, version: number): string[] {
  if (version !== SCHEMA_VERSION && isOurLayout(database))
    return [`names layout ${version}, its tables are those of layout ${SCHEMA_VERSION}: the next start puts it right`]
  if (version <= 0) return [`has layout ${version}, which no release wrote`]
  if (version !== SCHEMA_VERSION) return []
  const strangeTable = findStrangeTable(database)
  return strangeTable === null ? [] : [`table ${strangeTable} is not as its layout says`]
}

function readDescriptors(database: Database.Database): DatabaseReport['descriptors'] {
  try {
    return database
      .prepare<[], { streamId: number; topicId: number; body: string }>(
        'SELECT stream_id AS streamId, topic_id AS topicId, body FROM descriptors',
      )
      .all()
  } catch {
    // Damaged or not there: the descriptor files say the same.
    return []
  }
}

function readOffsets(database: Database.Database): StoredOffset[] {
  const offsets: StoredOffset[] = []
  try {
    const rows = database
      .prepare<[], { partition_key: bigint; kind: bigint; consumer_id: bigint; offset: bigint }>(
        'SELECT * FROM consumer_offsets',
      )
      .safeIntegers()
    for (const { partition_key, kind, consumer_id, offset } of rows.iterate()) {
      const column = columnFrom(Number(kind), Number(consumer_id))
      if (column !== undefined) offsets.push({ partitionKey: Number(partition_key), column, offset })
    }
  } catch {
    // The rest lies on a damaged page, which the problems name.
  }
  return offsets
}

function readSetting(database: Database.Database, name: string): string | undefined {
  try {
    return database.prepare<[string], string>('SELECT value FROM settings WHERE name = ?').pluck().get(name)
  } catch {
    return undefined
  }
}

function readSyncedEnds(database: Database.Database): Map<number, bigint> {
  const ends = new Map<number, bigint>()
  try {
    const rows = database
      .prepare<[], { key: bigint; end: bigint }>('SELECT partition_key AS key, next_offset AS end FROM hints')
      .safeIntegers()
    for (const { key, end } of rows.iterate()) ends.set(Number(key), end)
  } catch {
    // As above.
  }
  return ends
}
