/**
 * Opens `metadata.sqlite`, whatever state it is in. Decides between four findings: sound, damaged (set aside, what can
 * still be read is saved, the rest is rebuilt from the descriptor files), of a newer release (refused, untouched) and held
 * by another process (refused).
 *
 * The connection takes SQLite's exclusive lock and keeps it: two processes on one data folder would destroy each other's
 * journal. It also spares the shared-memory file, and no reader from outside can pin the write-ahead log. Nobody in this
 * process may open the file by other means: closing such a descriptor would drop the lock (POSIX).
 */
import Database from 'better-sqlite3'
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { ReportFinding } from '../ports.ts'
import { findStrangeTable, migrate } from './migrations.ts'
import { TABLES, type TableName } from './schema.ts'

/** Pages the write-ahead log holds before it is copied back: 1 MiB at 4 KiB a page. */
const WAL_CHECKPOINT_PAGES = 256
/** The log file is cut to this after a checkpoint, should a long transaction have grown it. */
const WAL_SIZE_MAX_BYTES = 4 * 1024 * 1024
/** KiB of page cache, as a negative number as SQLite wants it. */
const CACHE_SIZE = -2000
/** How long a lock of a process that is just ending is waited for. */
const BUSY_TIMEOUT_MS = 1000
/** Rows saved from one table of a damaged file. */
const SALVAGE_ROWS_MAX = 1_000_000

export interface DatabaseOptions {
  /** File, or `:memory:`. */
  readonly path: string
  /** The native addon's file when it does not lie in `node_modules`: inside the single executable. */
  readonly nativeBinding?: string
  /** Moves a damaged database (its file and its `-wal`, `-shm`) out of the way, into quarantine. */
  readonly setAside: (path: string) => void
  readonly report: ReportFinding
  /** The store is not new: a database that is not there was lost. */
  readonly isExpected?: boolean
}

export interface OpenedDatabase {
  readonly database: Database.Database
  /** The file was new or had to be replaced: copies of the descriptors are missing. */
  readonly isNew: boolean
}

type Row = Record<string, unknown>

/** @throws {EdgeError} EDGE_STORE_NEWER, EDGE_STORE_IN_USE, EDGE_DISK_FULL, EDGE_IO. */
export function openDatabase(options: DatabaseOptions): OpenedDatabase {
  try {
    const opened = openSound(options)
    if (opened.isNew && options.isExpected === true) reportMissing(options)
    return opened
  } catch (error) {
    if (!isDamage(error)) throw toStoreError(error)
    const saved = salvage(options)
    options.setAside(options.path)
    const opened = openReplacement(options)
    const savedCount = restore(opened.database, saved)
    options.report({
      event: 'log.metadata.rebuilt',
      level: 'error',
      text: `metadata.sqlite was damaged (${String(error)}): set aside and rebuilt, ${savedCount} rows saved; users, tokens or consumer offsets may be missing`,
      fields: { saved_rows: savedCount },
    })
    return opened
  }
}

function reportMissing({ report }: DatabaseOptions): void {
  report({
    event: 'log.metadata.missing',
    level: 'error',
    text: 'metadata.sqlite was not there: made anew from the descriptors, without the users, tokens and consumer offsets it held',
    fields: {},
  })
}

/** Turns what SQLite throws into our words. Damage found while running is an `EDGE_IO` too: the next start repairs it. */
export function toStoreError(error: unknown): EdgeError {
  if (!(error instanceof Database.SqliteError)) return toEdgeError(error)
  if (error.code.startsWith('SQLITE_BUSY') || error.code.startsWith('SQLITE_LOCKED')) {
    return new EdgeError('EDGE_STORE_IN_USE', 'metadata.sqlite is held by another process, perhaps a running edge', {
      cause: error,
    })
  }
  if (error.code === 'SQLITE_FULL') {
    return new EdgeError('EDGE_DISK_FULL', 'metadata.sqlite cannot grow: the disk is full', { cause: error })
  }
  if (error.code.startsWith('SQLITE_CANTOPEN')) {
    const text = `metadata.sqlite cannot be opened: expected a file that this user may read and write (${error.code})`
    return new EdgeError('EDGE_IO', text, { cause: error })
  }
  return new EdgeError('EDGE_IO', `metadata.sqlite: ${error.message} (${error.code})`, { cause: error })
}

class DamagedDatabase extends Error {
  override readonly name = 'DamagedDatabase'
}

function openSound(options: DatabaseOptions): OpenedDatabase {
  const database = connect(options)
  try {
    // Before anything is written, the version; before anything is trusted, the pages.
    const isNew = database.pragma('user_version', { simple: true }) === 0
    migrate(database)
    const strangeTable = findStrangeTable(database)
    if (strangeTable !== null) throw new DamagedDatabase(`table ${strangeTable} is not as its layout says`)
    const verdict: unknown = database.pragma('quick_check(1)', { simple: true })
    if (verdict !== 'ok') throw new DamagedDatabase(String(verdict))
    return { database, isNew }
  } catch (error) {
    database.close()
    throw error
  }
}

function openReplacement(options: DatabaseOptions): OpenedDatabase {
  try {
    return { database: openSound(options).database, isNew: true }
  } catch (error) {
    throw toStoreError(error)
  }
}

function connect(options: DatabaseOptions): Database.Database {
  const binding = options.nativeBinding === undefined ? {} : { nativeBinding: options.nativeBinding }
  const database = new Database(options.path, { timeout: BUSY_TIMEOUT_MS, ...binding })
  try {
    database.pragma('locking_mode = EXCLUSIVE')
    database.pragma(`cache_size = ${CACHE_SIZE}`)
    database.pragma('mmap_size = 0')
    database.pragma('temp_store = MEMORY')
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = NORMAL')
    database.pragma(`wal_autocheckpoint = ${WAL_CHECKPOINT_PAGES}`)
    database.pragma(`journal_size_limit = ${WAL_SIZE_MAX_BYTES}`)
    // The lock is taken by the first access, not by the pragma.
    database.exec('BEGIN IMMEDIATE; COMMIT')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function isDamage(error: unknown): boolean {
  if (error instanceof DamagedDatabase) return true
  if (!(error instanceof Database.SqliteError)) return false
  // SQLITE_ERROR at open: a table the layout number promises is not there, or is another.
  return (
    error.code.startsWith('SQLITE_CORRUPT') ||
    error.code === 'SQLITE_NOTADB' ||
    error.code === 'SQLITE_FORMAT' ||
    error.code === 'SQLITE_ERROR'
  )
}

/** Reads what can be read, table by table, row by row until one fails. */
function salvage(options: DatabaseOptions): Map<TableName, Row[]> {
  const saved = new Map<TableName, Row[]>()
  let database: Database.Database | undefined
  try {
    database = connect(options)
    for (const table of TABLES) saved.set(table, readableRows(database, table))
  } catch {
    // Not even a connection: nothing to save.
  } finally {
    closeQuietly(database)
  }
  return saved
}

function readableRows(database: Database.Database, table: TableName): Row[] {
  const rows: Row[] = []
  try {
    const statement = database.prepare<[], Row>(`SELECT * FROM ${table}`).safeIntegers()
    for (const row of statement.iterate()) {
      if (rows.push(row) >= SALVAGE_ROWS_MAX) break
    }
  } catch {
    // The rest of this table lies on a damaged page.
  }
  return rows
}

/** Rows that no longer fit (a duplicate, a NULL) are left out. @returns rows taken over. */
function restore(database: Database.Database, saved: ReadonlyMap<TableName, readonly Row[]>): number {
  let count = 0
  database.transaction(() => {
    for (const [table, rows] of saved) {
      const columns = new Set(
        database.prepare<[], string>(`SELECT name FROM pragma_table_info('${table}')`).pluck().all(),
      )
      for (const row of rows) {
        const names = Object.keys(row).filter((name) => columns.has(name))
        if (names.length === 0) continue
        const places = names.map(() => '?').join(', ')
        const insert = database.prepare(`INSERT OR IGNORE INTO ${table} (${names.join(', ')}) VALUES (${places})`)
        count += insertQuietly(
          insert,
          names.map((name) => row[name]),
        )
      }
    }
  })()
  return count
}

function insertQuietly(insert: Database.Statement, values: unknown[]): number {
  try {
    return insert.run(...values).changes
  } catch (error) {
    // A value of the wrong type came off a damaged page; anything else is a real failure.
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_CONSTRAINT')) return 0
    throw error
  }
}

function closeQuietly(database: Database.Database | undefined): void {
  try {
    database?.close()
  } catch {
    // A damaged file may refuse even that; it is moved away next.
  }
}
