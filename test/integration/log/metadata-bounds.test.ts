/** What the tables of names and offsets hold at most, and what they do not believe. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import Database from 'better-sqlite3'
import { MAX_GROUPS, MAX_GROUPS_PER_TOPIC } from '../../../src/log/metadata/groups.ts'
import { type MetadataOptions, openMetadata, type SqliteMetadata } from '../../../src/log/metadata/metadata-store.ts'
import { TOTAL_OFFSETS_MAX } from '../../../src/log/metadata/progress.ts'

let folder: string
let path: string
const opened: SqliteMetadata[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edge-metadata-bounds-'))
  path = join(folder, 'metadata.sqlite')
})

afterEach(() => {
  for (const store of opened.splice(0)) store.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Nothing is written but at the end. */
function open(options: Partial<MetadataOptions> = {}): SqliteMetadata {
  const scheduler = { nextTurn: (task: () => void) => task(), after: () => () => {} }
  const store = openMetadata({ path, scheduler, report() {}, setAside() {}, ...options })
  opened.push(store)
  return store
}

function reopened(store: SqliteMetadata): SqliteMetadata {
  store.close()
  return open()
}

test('a cursor that no edge has written is left out: nobody reckons with what it says', () => {
  let store = open()
  store.setCursor('central', 1, { confirmedOffset: 9n, upstreamOffset: null, incarnation: 1 })
  store.close()
  const database = new Database(path)
  const put = database.prepare('INSERT INTO cursors VALUES (?, ?, ?, ?, ?)')
  put.run(2, 'central', 9, null, 4_000_000_000)
  put.run(3, 'central', 9, null, -1)
  put.run(4, 'central', -2, null, 0)
  database.close()
  store = open()
  const known = [1, 2, 3, 4].map((key) => store.cursor('central', key) !== undefined)
  assert.deepEqual(known, [true, false, false, false])
})

test('all partitions together keep a bounded number of offsets, also after a reopen', () => {
  let store = open({ maxConsumerOffsets: 65_536 })
  for (let key = 1; key <= 2; key++)
    for (let id = 0; id < TOTAL_OFFSETS_MAX / 2; id++) store.setOffset(key, 'group', id, 1n)
  const refused = { code: 'EDGE_TOO_MANY_OFFSETS', message: /131072 offsets of consumers already: delete some/ }
  assert.throws(() => store.setOffset(3, 'group', 1, 0n), refused)
  store.setOffset(2, 'group', 1, 5n)
  store = reopened(store)
  assert.throws(() => store.setOffset(3, 'group', 1, 0n), refused)
  store.deleteOffset(1, 'group', 7)
  store.setOffset(3, 'group', 1, 0n)
  assert.throws(() => store.setOffset(3, 'group', 2, 0n), refused)
})

test('all topics together have a bounded number of groups', async () => {
  const store = open({ path: ':memory:' })
  for (let topicId = 0; topicId < MAX_GROUPS / MAX_GROUPS_PER_TOPIC; topicId++) {
    for (let number = 0; number < MAX_GROUPS_PER_TOPIC; number++) await store.createGroup(0, topicId, `g${number}`)
    await assert.rejects(store.createGroup(0, topicId, 'one more'), { code: 'EDGE_LIMIT_REACHED' })
  }
  await assert.rejects(store.createGroup(1, 0, 'readers'), { code: 'EDGE_LIMIT_REACHED' })
  await store.deleteGroup(0, 0, 0)
  await store.createGroup(1, 0, 'readers')
})
