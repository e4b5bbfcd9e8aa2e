/** Consumer offsets between two writes to the database: what an end of the process leaves, and what it must not bring back. */
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { openMetadata, type SqliteMetadata } from '../../../src/log/metadata/metadata-store.ts'
import type { Scheduler } from '../../../src/log/scheduler.ts'

const ENDINGS = ['', '-wal', '-offsets']
const KEY = 7
const ROW_BYTES = 32

let folder: string
let timers: (() => void)[]
let copyCount = 0
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
})

afterEach(() => {
  for (const store of opened.splice(0)) store.close()
  rmSync(folder, { recursive: true, force: true })
})

function open(path = join(folder, 'metadata.sqlite')): SqliteMetadata {
  const store = openMetadata({ path, scheduler, report() {}, setAside() {} })
  opened.push(store)
  return store
}

function write(): void {
  for (const task of timers.splice(0)) task()
}

/** The files as a killed process leaves them: everything it wrote, nothing it still meant to. */
function filesOfKilled(): string {
  const path = join(folder, `killed-${copyCount++}.sqlite`)
  for (const ending of ENDINGS) {
    const file = join(folder, `metadata.sqlite${ending}`)
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

test('a torn or damaged row is left out, and the others count', () => {
  const store = open()
  for (let consumer = 0; consumer < 3; consumer++) store.setOffset(KEY, 'consumer', consumer, 10n)
  const path = filesOfKilled()
  const bytes = readFileSync(`${path}-offsets`)
  bytes[ROW_BYTES + 25] = 0xff
  writeFileSync(`${path}-offsets`, bytes.subarray(0, bytes.length - 1))
  const next = open(path)
  assert.deepEqual(
    [0, 1, 2].map((consumer) => next.offset(KEY, 'consumer', consumer)),
    [10n, undefined, undefined],
  )
})

test('a row that changes a thousand times has one place, and none once the database has it', () => {
  const store = open()
  for (let offset = 0n; offset < 1000n; offset++) store.setOffset(KEY, 'group', 1, offset)
  assert.equal(statSync(join(folder, 'metadata.sqlite-offsets')).size, ROW_BYTES)
  write()
  assert.equal(statSync(join(folder, 'metadata.sqlite-offsets')).size, 0)
})
