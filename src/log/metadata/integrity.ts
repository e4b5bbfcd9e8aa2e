/**
 * Looks at a `metadata.sqlite` that is not open without changing it: SQLite writes beside a file even when it only reads
 * (recovery of the write-ahead log), so a copy is looked at.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { SCHEMA_VERSION } from './schema.ts'

export interface DatabaseReport {
  /** What is wrong; empty when it is sound. */
  readonly problems: readonly string[]
  /** Layout above ours: written by a newer release. */
  readonly isNewer: boolean
  readonly version: number
  /** Copies of the descriptors, as far as they read. */
  readonly descriptors: readonly { readonly streamId: number; readonly topicId: number; readonly body: string }[]
}

/** Lines of SQLite's own check that are kept. */
const MAX_PROBLEMS = 20

/** @param path of the file; its `-wal` is taken along. */
export function inspectDatabase(path: string, nativeBinding?: string): DatabaseReport {
  const folder = mkdtempSync(join(tmpdir(), 'iggy-edge-check-'))
  try {
    const copy = join(folder, 'metadata.sqlite')
    copyFileSync(path, copy)
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${copy}-wal`)
    return inspectCopy(copy, nativeBinding)
  } catch (error) {
    return { problems: [String(error)], isNewer: false, version: 0, descriptors: [] }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function inspectCopy(path: string, nativeBinding?: string): DatabaseReport {
  const database = new Database(path, nativeBinding === undefined ? {} : { nativeBinding })
  try {
    const version = Number(database.pragma('user_version', { simple: true }))
    const verdicts = database.prepare<[], string>(`PRAGMA integrity_check(${MAX_PROBLEMS})`).pluck().all()
    const problems = verdicts.filter((verdict) => verdict !== 'ok')
    return { problems, isNewer: version > SCHEMA_VERSION, version, descriptors: readDescriptors(database) }
  } finally {
    database.close()
  }
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
