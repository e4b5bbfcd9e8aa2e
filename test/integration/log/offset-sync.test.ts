/** Which consumer offsets cost a sync: those that somebody waits for. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { Connection } from '../../../src/log/metadata/connection.ts'
import { SqliteMetadata } from '../../../src/log/metadata/metadata-store.ts'
import { migrate } from '../../../src/log/metadata/migrations.ts'
import type { Scheduler } from '../../../src/log/scheduler.ts'

test('offsets of the second that passes are not synced, and those that are flushed are before it resolves', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-offsets-'))
  const statements: string[] = []
  const verbose = (sql: unknown) => void statements.push(String(sql))
  const database = new Database(join(folder, 'metadata.sqlite'), { verbose })
  migrate(database)
  let runTimer = () => {}
  const scheduler: Scheduler = {
    nextTurn: (task) => task(),
    after(_, task) {
      runTimer = task
      return () => {}
    },
  }
  const store = new SqliteMetadata(new Connection(database), { scheduler, report: () => {} })
  context.after(() => {
    store.close()
    rmSync(folder, { recursive: true })
  })
  const commitsSince = () => {
    const told = statements.splice(0).filter((sql) => /^(PRAGMA synchronous|COMMIT)/.test(sql))
    return told.map((sql) => sql.replace('PRAGMA synchronous = ', ''))
  }
  commitsSince()
  store.setOffset(1, 'consumer', 1, 3n)
  runTimer()
  assert.deepEqual(commitsSince(), ['COMMIT'])
  store.setOffset(1, 'consumer', 1, 4n)
  await store.flush()
  assert.deepEqual(commitsSince(), ['FULL', 'COMMIT', 'NORMAL'])
  await store.flush()
  assert.deepEqual(commitsSince(), [], 'all of it is on the disk')
  store.setOffset(1, 'consumer', 1, 5n)
  runTimer()
  commitsSince()
  await store.flush()
  assert.deepEqual(commitsSince(), ['FULL', 'COMMIT', 'NORMAL'], 'what a timer wrote before was not synced')
})
