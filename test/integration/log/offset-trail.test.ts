/** Consumer offsets between two writes to the database: what an end of the process leaves, and what it must not bring back. */
import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import Database from 'better-sqlite3'
import { EdgeError } from '../../../src/errors.ts'
import { SQLITE_ENDINGS } from '../../../src/log/catalog/layout.ts'
import { Connection } from '../../../src/log/metadata/connection.ts'
import { openMetadata, SqliteMetadata } from '../../../src/log/metadata/metadata-store.ts'
import { OffsetTrail, TRAIL_KEPT_BYTES } from '../../../src/log/metadata/offset-trail.ts'
import { REMOVED_ROWS_MAX } from '../../../src/log/metadata/progress.ts'
import { decodeTrail, encodeTrailRow } from '../../../src/log/metadata/trail-rows.ts'
import type { ReportFinding } from '../../../src/log/ports.ts'
import type { Scheduler } from '../../../src/log/scheduler.ts'

const ENDINGS = ['', '-wal', '-offsets']
const KEY = 7
const ROW_BYTES = 32

let folder: string
let timers: (() => void)[]
let copyCount = 0
let findings: string[] = []
const opened: SqliteMetadata[] = []

/** Timers that run when the test says so. */
const scheduler: Scheduler = {
  nextTurn: (task) => task(),
  after(_delayMs, task) {
    timers.push(task)
    return () => {
      timers = timers.filter((other) => other !== task)
    }
  },
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edge-trail-'))
  timers = []
  findings = []
})

afterEach(() => {
  for (const store of opened.splice(0)) store.close()
  rmSync(folder, { recursive: true, force: true })
})

function open(path = join(folder, 'metadata.sqlite')): SqliteMetadata {
  const report: ReportFinding = ({ event, level }) => void findings.push(`${event} ${level}`)
  // As the log does: SQLite's own files go, the trail stays.
  const setAside = () => {
    for (const ending of SQLITE_ENDINGS) rmSync(path + ending, { force: true })
  }
  const store = openMetadata({ path, scheduler, report, setAside })
  opened.push(store)
  return store
}

function write(): void {
  for (const task of timers.splice(0)) task()
}

/** Where rows lie. */
const placesOf = (trail: string): number[] => decodeTrail(readFileSync(trail)).rows.map(({ place }) => place)

/** The files as a killed process leaves them: everything it wrote, nothing it still meant to. */
function filesOfKilled(from = join(folder, 'metadata.sqlite')): string {
  const path = join(folder, `killed-${copyCount++}.sqlite`)
  for (const ending of ENDINGS) {
    const file = from + ending
    if (existsSync(file)) copyFileSync(file, path + ending)
  }
  return path
}

test('an offset that was stored is there after the process is killed before its next write', () => {
  const store = open()
  store.setOffset(KEY, 'group', 1, 10n)
  write()
  store.setOffset(KEY, 'group', 1, 11n)
  store.setOffset(KEY, 'consumer', 2, 5n)
  const next = open(filesOfKilled())
  assert.equal(next.offset(KEY, 'group', 1), 11n)
  assert.equal(next.offset(KEY, 'consumer', 2), 5n)
})

test('an offset that was deleted stays deleted after a kill, one by one and with its partition', () => {
  const store = open()
  store.setOffset(KEY, 'group', 1, 10n)
  store.setOffset(KEY + 1, 'group', 1, 10n)
  store.setOffset(KEY + 1, 'consumer', 2, 10n)
  write()
  store.deleteOffset(KEY, 'group', 1)
  store.deleteOffsetsOf(KEY + 1)
  const next = open(filesOfKilled())
  assert.equal(next.offset(KEY, 'group', 1), undefined)
  assert.deepEqual([...next.offsetsOf(KEY + 1)], [])
})

test('two kills in a row lose nothing: what was taken over is in the database', () => {
  const store = open()
  store.setOffset(KEY, 'group', 1, 10n)
  const path = filesOfKilled()
  open(path).close()
  rmSync(`${path}-offsets`)
  assert.equal(open(path).offset(KEY, 'group', 1), 10n)
})

test('rows older than the database count for nothing: an offset set back is not raised again', () => {
  const store = open()
  store.setOffset(KEY, 'group', 1, 900n)
  const old = readFileSync(join(folder, 'metadata.sqlite-offsets'))
  store.setOffset(KEY, 'group', 1, 0n)
  write()
  const path = filesOfKilled()
  // A power cut may bring back what the file held before it was emptied.
  writeFileSync(`${path}-offsets`, old)
  assert.equal(open(path).offset(KEY, 'group', 1), 0n)
})

test('rows newer than the database, which a power cut has set back, never count: later writes have other numbers', async () => {
  const store = open()
  store.setOffset(KEY, 'group', 1, 3n)
  await store.flush()
  const synced = filesOfKilled()
  store.setOffset(KEY, 'group', 1, 4n)
  write()
  store.setOffset(KEY, 'consumer', 2, 1n)
  store.setOffset(KEY, 'group', 1, 900n)
  copyFileSync(join(folder, 'metadata.sqlite-offsets'), `${synced}-offsets`)
  const next = open(synced)
  assert.equal(next.offset(KEY, 'group', 1), 3n)
  next.setOffset(KEY, 'group', 1, 2n)
  await next.flush()
  assert.equal(open(filesOfKilled(synced)).offset(KEY, 'group', 1), 2n)
})

test('a torn or damaged row is left out, and the others count', () => {
  const store = open()
  for (let consumer = 0; consumer < 3; consumer++) store.setOffset(KEY, 'consumer', consumer, 10n)
  const path = filesOfKilled()
  const bytes = readFileSync(`${path}-offsets`)
  bytes[ROW_BYTES + 25] = 0xff
  writeFileSync(`${path}-offsets`, bytes.subarray(0, 3 * ROW_BYTES - 1))
  const next = open(path)
  assert.deepEqual(
    [0, 1, 2].map((consumer) => next.offset(KEY, 'consumer', consumer)),
    [10n, undefined, undefined],
  )
  assert.deepEqual(findings, ['log.offsets.trail_damaged warn'])
})

test('a trail of garbage is told and costs nothing else, and offsets are kept from then on', () => {
  open().setOffset(KEY, 'group', 1, 10n)
  write()
  const path = filesOfKilled()
  writeFileSync(`${path}-offsets`, Buffer.alloc(5 * ROW_BYTES, 0xa5))
  const next = open(path)
  assert.deepEqual(findings, ['log.offsets.trail_damaged warn'])
  assert.equal(next.offset(KEY, 'group', 1), 10n)
  next.setOffset(KEY, 'group', 1, 11n)
  assert.deepEqual(placesOf(`${path}-offsets`), [0])
})

test('a trail that cannot be opened is told, and the start goes on without it', () => {
  const path = join(folder, 'metadata.sqlite')
  mkdirSync(`${path}-offsets`)
  const store = open(path)
  assert.deepEqual(findings, ['log.offsets.trail_missing warn'])
  store.setOffset(KEY, 'group', 1, 10n)
  write()
  assert.equal(store.offset(KEY, 'group', 1), 10n)
})

test('a database that is lost is made anew with the offsets of the trail, which goes on from there', () => {
  for (const lose of [rmSync, (path: string) => writeFileSync(path, Buffer.alloc(8192, 7))]) {
    const lost = join(folder, `lost-${copyCount++}.sqlite`)
    const store = open(lost)
    store.setOffset(KEY, 'consumer', 2, 4n)
    write()
    store.setOffset(KEY, 'group', 1, 11n)
    const path = filesOfKilled(lost)
    for (const ending of ['-wal', '-shm']) rmSync(path + ending, { force: true })
    lose(path)
    const next = open(path)
    assert.equal(next.offset(KEY, 'group', 1), 11n)
    assert.equal(next.offset(KEY, 'consumer', 2), undefined, 'was in the database alone')
    next.close()
    rmSync(`${path}-offsets`)
    assert.equal(open(path).offset(KEY, 'group', 1), 11n, 'the new database has it')
  }
})

test('where the order of database and trail is lost the lower offset counts: repeated, never skipped', () => {
  const store = open()
  store.setOffset(KEY, 'group', 1, 900n)
  store.setOffset(KEY, 'group', 2, 10n)
  write()
  store.setOffset(KEY, 'group', 1, 5n)
  store.setOffset(KEY, 'group', 2, 11n)
  const path = filesOfKilled()
  const database = new Database(path)
  database.exec("DELETE FROM settings WHERE name = 'offset_generation'")
  database.close()
  const next = open(path)
  assert.equal(next.offset(KEY, 'group', 1), 5n)
  assert.equal(next.offset(KEY, 'group', 2), 10n)
})

test('a row of a kind that only a newer release knows is left out and is no damage', () => {
  const store = open()
  store.setOffset(KEY, 'consumer', 2, 5n)
  const path = filesOfKilled()
  const row = Buffer.alloc(ROW_BYTES)
  encodeTrailRow(row, { partitionKey: KEY, column: 9 * 2 ** 32 + 1, offset: 3n }, 0)
  writeFileSync(`${path}-offsets`, Buffer.concat([readFileSync(`${path}-offsets`), row]))
  const next = open(path)
  assert.deepEqual([...next.offsetsOf(KEY)], [{ kind: 'consumer', consumerId: 2, offset: 5n }])
  assert.deepEqual(findings, [])
})

test('a row that changes a thousand times has one place, and none once the database has it', () => {
  const store = open()
  for (let offset = 0n; offset < 1000n; offset++) store.setOffset(KEY, 'group', 1, offset)
  assert.deepEqual(placesOf(join(folder, 'metadata.sqlite-offsets')), [0])
  write()
  store.setOffset(KEY, 'group', 2, 5n)
  assert.deepEqual(placesOf(join(folder, 'metadata.sqlite-offsets')), [0])
})

test('the trail keeps its place on the disk, and no more than that', () => {
  const store = open()
  const trail = join(folder, 'metadata.sqlite-offsets')
  const isAllOnDisk = ({ size, blocks }: Stats): boolean => size === TRAIL_KEPT_BYTES && blocks * 512 >= size
  assert.ok(isAllOnDisk(statSync(trail)))
  for (let at = 0; at < 3000; at++) store.setOffset(KEY + (at % 3), 'consumer', at, 1n)
  assert.equal(placesOf(trail).length, 3000)
  write()
  assert.ok(isAllOnDisk(statSync(trail)))
})

/** A database on a disk that is full when the test says so. */
class TightConnection extends Connection {
  isFull = false

  override softly(work: () => void): void {
    if (this.isFull) throw new EdgeError('EDGE_DISK_FULL', 'metadata.sqlite cannot grow: the disk is full')
    super.softly(work)
  }
}

function openTight(path: string): { store: SqliteMetadata; connection: TightConnection } {
  const connection = new TightConnection(new Database(path))
  connection.isFull = true
  const report: ReportFinding = ({ event }) => void findings.push(event)
  const store = new SqliteMetadata(connection, { scheduler, report }, OffsetTrail.open(`${path}-offsets`))
  opened.push(store)
  return { store, connection }
}

test('on a full disk a start goes on with the offsets of the last process, however often it is killed', () => {
  const first = open()
  first.setOffset(KEY, 'group', 1, 1n)
  write()
  for (let group = 1; group <= 3; group++) first.setOffset(KEY, 'group', group, 10n)
  const secondPath = filesOfKilled()
  const { store: second } = openTight(secondPath)
  assert.deepEqual(findings, ['log.metadata.write_failed'])
  second.setOffset(KEY, 'group', 3, 11n)
  second.setOffset(KEY, 'group', 4, 12n)
  const thirdPath = filesOfKilled(secondPath)
  const { store: third, connection } = openTight(thirdPath)
  const offsetsOf = (store: SqliteMetadata) => [1, 2, 3, 4].map((group) => store.offset(KEY, 'group', group))
  assert.deepEqual(offsetsOf(third), [10n, 10n, 11n, 12n])
  connection.isFull = false
  write()
  third.close()
  assert.deepEqual(offsetsOf(open(thirdPath)), [10n, 10n, 11n, 12n])
})

test('on a full disk as well rows that are newer than the database never count, once it takes writes', () => {
  const first = open()
  first.setOffset(KEY, 'consumer', 0, 50n)
  write()
  first.setOffset(KEY, 'consumer', 1, 51n)
  const path = filesOfKilled()
  write()
  for (const consumer of [0, 1, 2]) first.setOffset(KEY, 'consumer', consumer, 100n)
  const bytes = readFileSync(join(folder, 'metadata.sqlite-offsets'))
  // The page holds one row of the generation that the database has, and two that are newer.
  readFileSync(`${path}-offsets`).copy(bytes, 0, 0, ROW_BYTES)
  writeFileSync(`${path}-offsets`, bytes)
  const { connection } = openTight(path)
  connection.isFull = false
  write()
  const third = open(filesOfKilled(path))
  assert.deepEqual(
    [0, 1, 2].map((consumer) => third.offset(KEY, 'consumer', consumer)),
    [50n, 51n, undefined],
  )
})

test('of a trail that cannot be read nothing stays', () => {
  const store = open()
  store.setOffset(KEY, 'group', 1, 10n)
  const path = filesOfKilled()
  const trail = OffsetTrail.open(`${path}-offsets`)
  trail.read = () => {
    throw new Error('EIO')
  }
  const report: ReportFinding = ({ event }) => void findings.push(event)
  opened.push(new SqliteMetadata(new Connection(new Database(path)), { scheduler, report }, trail))
  assert.deepEqual(findings, ['log.offsets.trail_damaged'])
  assert.deepEqual(placesOf(`${path}-offsets`), [])
})

/** Of one partition: as many as it keeps. */
const CONSUMERS = 1024

test('offsets that are stored and deleted faster than the database forgets them are bounded', () => {
  const store = open()
  // Of what the database never had nothing is left to forget.
  const keys = Array.from({ length: REMOVED_ROWS_MAX / CONSUMERS }, (_, index) => KEY + index)
  for (const key of keys) {
    for (let consumer = 0; consumer < CONSUMERS; consumer++) store.setOffset(key, 'consumer', consumer, 0n)
    write()
  }
  for (const key of keys) {
    for (let consumer = 0; consumer < CONSUMERS; consumer++) store.deleteOffset(key, 'consumer', consumer)
  }
  assert.throws(() => store.setOffset(KEY, 'consumer', 0, 0n), { code: 'EDGE_TOO_MANY_OFFSETS', message: /deleted/ })
  write()
  store.setOffset(KEY, 'consumer', 0, 0n)
})
