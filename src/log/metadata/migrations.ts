import type Database from 'better-sqlite3'
import { EdgeError } from '../../errors.ts'
import { SCHEMA_STEPS, SCHEMA_VERSION } from './schema.ts'

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

function schemaVersionOf(database: Database.Database): number {
  const version: unknown = database.pragma('user_version', { simple: true })
  return typeof version === 'number' && version >= 0 ? version : 0
}
