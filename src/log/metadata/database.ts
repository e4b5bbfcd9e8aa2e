/**
 * Opens `metadata.sqlite`, whatever state it is in. Decides between four findings: sound, damaged (set aside, what can
 * still be read is saved, the rest is rebuilt from the descriptor files), of a newer release (refused, untouched) and held
 * by another process (refused).
 *
 * The connection takes SQLite's exclusive lock and keeps it: two processes on one data folder would destroy each other's
 * journal. It also spares the shared-memory file, and no reader from outside can pin the write-ahead log. Nobody in this
 * process may open the file by other means: closing such a descriptor would drop the lock (POSIX).
 */
import { existsSync, renameSync, rmSync } from 'node:fs'
import Database from 'better-sqlite3'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { refuseOtherThanFile } from '../../file-kind.ts'
import { METADATA_FILE, REBUILT_ENDING, SQLITE_ENDINGS } from '../catalog/layout.ts'
import type { ReportFinding } from '../ports.ts'
import { findStrangeTable, mendLayoutNumber, migrate } from './migrations.ts'
import { SCHEMA_VERSION, TABLES, type TableName } from './schema.ts'

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
    endRebuilding(options)
    // SQLite would open some of these, and fail in the middle.
    for (const ending of SQLITE_ENDINGS) refuseOtherThanFile(options.path + ending)
    const opened = openSound(options)
    if (opened.isNew && options.isExpected === true) reportMissing(options)
    return opened
  } catch (error) {
    if (!isDamage(error)) throw toStoreError(error)
    return rebuild(options, error)
  }
}

/**
 * What was saved is in a file of its own before the damaged one goes: a start that ends in between, for want of room or of
 * power, must not leave the next one a sound file without users.
 */
function rebuild(options: DatabaseOptions, reason: unknown): OpenedDatabase {
  const path = options.path + REBUILT_ENDING
  try {
    remove(path)
    const savedCount = build({ ...options, path }, salvage(options))
    options.setAside(options.path)
    renameSync(path, options.path)
    reportRebuilt(options, `(${String(reason)}): set aside and rebuilt, ${savedCount} rows saved`, savedCount)
    return { database: openSound(options).database, isNew: true }
  } catch (error) {
    throw toStoreError(error)
  }
}

/** @returns rows taken over. They are in the file together with its tables, or there is nothing in it. */
function build(options: DatabaseOptions, saved: ReadonlyMap<TableName, readonly Row[]>): number {
  const database = connect(options)
  try {
    const savedCount = database.transaction(() => {
      migrate(database)
      return restore(database, saved)
    })()
    database.pragma('wal_checkpoint(TRUNCATE)')
    return savedCount
  } finally {
    database.close()
  }
}

/** After a start that ended while it rebuilt. */
function endRebuilding(options: DatabaseOptions): void {
  const path = options.path + REBUILT_ENDING
  if (!existsSync(path)) return
  if (existsSync(options.path)) {
    remove(path)
    return
  }
  renameSync(path, options.path)
  reportRebuilt(options, 'and set aside by a start that did not end: its rebuilt file is taken')
}

function remove(path: string): void {
  for (const ending of SQLITE_ENDINGS) rmSync(path + ending, { force: true })
}

function reportRebuilt({ report }: DatabaseOptions, what: string, savedCount?: number): void {
  report({
    event: 'log.metadata.rebuilt',
    level: 'error',
    text: `${METADATA_FILE} was damaged ${what}; users, tokens or consumer offsets may be missing`,
    fields: savedCount === undefined ? {} : { saved_rows: savedCount },
  })
}

function reportMended({ report }: DatabaseOptions, found: number): void {
  report({
    event: 'log.metadata.mended',
    level: 'warn',
    text: `${METADATA_FILE} named layout ${found} while its tables are those of layout ${SCHEMA_VERSION}: put right, nothing is lost`,
    fields: { found },
  })
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
    const mended = mendLayoutNumber(database)
    if (mended !== null) reportMended(options, mended)
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

/** Call it inside a transaction. Rows that no longer fit (a duplicate, a NULL) are left out. @returns rows taken over. */
function restore(database: Database.Database, saved: ReadonlyMap<TableName, readonly Row[]>): number {
  let count = 0
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
