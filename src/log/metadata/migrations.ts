import type Database from 'better-sqlite3'
import { EdgeError } from '../../errors.ts'
import { SCHEMA_STEPS, SCHEMA_VERSION, TABLE_COLUMNS, TABLES, type TableName } from './schema.ts'

/**
 * Brings a database to the newest layout, one step after the other, all in one transaction: a crash leaves the old layout.
 *
 * @throws EDGE_STORE_NEWER before anything is written, when the file was made by a newer release.
 */
export function migrate(database: Database.Database): void {
  const found = schemaVersionOf(database)
  if (found > SCHEMA_VERSION) {
    throw new EdgeError(
      'EDGE_STORE_NEWER',
      `metadata.sqlite has layout ${found}, this release knows up to ${SCHEMA_VERSION}: install the newer release again`,
      { details: { found, known: SCHEMA_VERSION } },
    )
  }
  if (found === SCHEMA_VERSION) return
  database.transaction(() => {
    for (const step of SCHEMA_STEPS.slice(found)) database.exec(step)
    database.pragma(`user_version = ${SCHEMA_VERSION}`)
  })()
}

/**
 * The layout number alone proves nothing: a page of the schema may be damaged, a build between two releases may have written
 * the file. Statements would fail later, at each start anew.
 *
 * @returns the first table that is missing or has other columns; null when all are as they should be.
 */
export function findStrangeTable(database: Database.Database): TableName | null {
  const columns = database.prepare<[string], string>('SELECT name FROM pragma_table_info(?) ORDER BY cid').pluck()
  return TABLES.find((table) => columns.all(table).join(' ') !== TABLE_COLUMNS[table]) ?? null
}

/** Whether the tables are those of the newest layout, whatever number the file names. */
export function isOurLayout(database: Database.Database): boolean {
  const names = database.prepare<[], string>(
    "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'",
  )
  const found = names.pluck().all()
  return found.length === TABLES.length && findStrangeTable(database) === null
}

/**
 * A flipped bit in the layout's number must not read as a newer release, or as a file without tables. Before `migrate`.
 *
 * @returns the number that was put right, or null where it was right.
 */
export function mendLayoutNumber(database: Database.Database): number | null {
  const found: unknown = database.pragma('user_version', { simple: true })
  if (found === SCHEMA_VERSION || !isOurLayout(database)) return null
  database.pragma(`user_version = ${SCHEMA_VERSION}`)
  return Number(found)
}

function schemaVersionOf(database: Database.Database): number {
  const version: unknown = database.pragma('user_version', { simple: true })
  return typeof version === 'number' && version >= 0 ? version : 0
}
