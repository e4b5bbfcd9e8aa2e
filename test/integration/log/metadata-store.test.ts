import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import Database from 'better-sqlite3'
import { EdgeError } from '../../../src/errors.ts'
import type { UserRow } from '../../../src/log/api.ts'
import { Connection } from '../../../src/log/metadata/connection.ts'
import { type MetadataOptions, openMetadata, SqliteMetadata } from '../../../src/log/metadata/metadata-store.ts'
import { migrate } from '../../../src/log/metadata/migrations.ts'
import type { Scheduler } from '../../../src/log/scheduler.ts'

let folder: string
let path: string
let findings: string[]
let timers: { delayMs: number; task: () => void }[]
const opened: SqliteMetadata[] = []

/** Timers that run when the test says so. */
const scheduler: Scheduler = {
  nextTurn: (task) => task(),
  after(delayMs, task) {
    const timer = { delayMs, task }
    timers.push(timer)
    return () => {
      timers = timers.filter((other) => other !== timer)
    }
  },
}

function runTimers(): void {
  const due = timers
  timers = []
  for (const { task } of due) task()
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edge-metadata-'))
  path = join(folder, 'metadata.sqlite')
  findings = []
  timers = []
})

afterEach(() => {
  for (const store of opened.splice(0)) store.close()
  rmSync(folder, { recursive: true, force: true })
})

function open(options: Partial<MetadataOptions> = {}): SqliteMetadata {
  const store = openMetadata({
    path,
    scheduler,
    report: (finding) => findings.push(finding.event),
    setAside: (damaged) => {
      renameSync(damaged, `${damaged}.damaged`)
      for (const ending of ['-wal', '-shm']) rmSync(damaged + ending, { force: true })
    },
    ...options,
  })
  opened.push(store)
  return store
}

function reopen(store: SqliteMetadata): SqliteMetadata {
  store.close()
  return open()
}

function user(id: number, username: string): UserRow {
  return {
    id,
    username,
    passwordHash: '$argon2id$x',
    isActive: true,
    createdAtUs: 1_700_000_000_000_000n,
    permissionsJson: null,
  }
}

const NAMES = { streams: new Map() }

function endOf(key: number, nextOffset: bigint) {
  return { key, streamId: 0, topicId: 0, partitionId: 0, nextOffset }
}

const isCode = (code: string) => (error: unknown) => error instanceof EdgeError && error.code === code

test('users, tokens, groups and settings are there after a restart', async () => {
  const store = open()
  await store.putUser({ ...user(0, 'iggy'), permissionsJson: '{"global":{}}' })
  await store.putToken({ userId: 0, name: 'cli', hash: 'ab', expiresAtUs: null, deviceJson: null })
  await store.putToken({ userId: 0, name: 'pump', hash: 'cd', expiresAtUs: 5n, deviceJson: '{"device":"pump-*"}' })
  await store.createGroup(0, 0, 'readers')
  await store.setSetting('jwt_secret', 's')
  const again = reopen(store)
  assert.deepEqual(again.users.get(0), { ...user(0, 'iggy'), permissionsJson: '{"global":{}}' })
  assert.deepEqual(
    again.tokensOf(0).map((token) => token.name),
    ['cli', 'pump'],
  )
  assert.equal(again.tokenByHash('cd')?.deviceJson, '{"device":"pump-*"}')
  assert.deepEqual(again.groupsOf(0, 0), [{ streamId: 0, topicId: 0, id: 0, name: 'readers' }])
  assert.equal(again.setting('jwt_secret'), 's')
})

test('what was promised is in the file before the promise resolves, also when the process is killed at once', () => {
  const script = `
    const { openMetadata } = await import(${JSON.stringify(join(import.meta.dirname, '../../../src/log/metadata/metadata-store.ts'))})
    const scheduler = { nextTurn() {}, after: () => () => {} }
    const store = openMetadata({ path: ${JSON.stringify(path)}, scheduler, report() {}, setAside() {} })
    await store.putUser({ id: 3, username: 'ann', passwordHash: 'h', isActive: true, createdAtUs: 1n, permissionsJson: null })
    process.kill(process.pid, 'SIGKILL')`
  const child = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', script], { encoding: 'utf8' })
  assert.equal(child.signal, 'SIGKILL', child.stderr)
  assert.equal(open().users.get(3)?.username, 'ann')
})

test('a name of a user or token that is taken is refused and nothing changes', async () => {
  const store = open()
  await store.putUser(user(0, 'iggy'))
  await assert.rejects(store.putUser(user(1, 'iggy')), isCode('EDGE_USER_NAME_TAKEN'))
  await store.putToken({ userId: 0, name: 'a', hash: 'h1', expiresAtUs: null, deviceJson: null })
  await assert.rejects(
    store.putToken({ userId: 0, name: 'a', hash: 'h2', expiresAtUs: null, deviceJson: null }),
    isCode('EDGE_TOKEN_NAME_TAKEN'),
  )
  await assert.rejects(
    store.putToken({ userId: 9, name: 'a', hash: 'h3', expiresAtUs: null, deviceJson: null }),
    isCode('EDGE_USER_NOT_FOUND'),
  )
  assert.deepEqual([...store.users.keys()], [0])
  assert.deepEqual(
    store.tokensOf(0).map((token) => token.hash),
    ['h1'],
  )
})

test('a deleted user takes its tokens along', async () => {
  const store = open()
  await store.putUser(user(1, 'ann'))
  await store.putToken({ userId: 1, name: 'a', hash: 'h1', expiresAtUs: null, deviceJson: null })
  await store.deleteUser(1)
  assert.equal(store.tokenByHash('h1'), undefined)
  const again = reopen(store)
  assert.equal(again.users.size, 0)
  assert.deepEqual(again.tokensOf(1), [])
  await assert.rejects(again.deleteUser(1), isCode('EDGE_USER_NOT_FOUND'))
})

test('the id of a deleted group is never given again, also after a restart', async () => {
  let store = open()
  for (const name of ['a', 'b', 'c']) await store.createGroup(1, 2, name)
  await store.deleteGroup(1, 2, 2)
  assert.equal((await store.createGroup(1, 2, 'd')).id, 3)
  await store.deleteGroup(1, 2, 3)
  store = reopen(store)
  assert.equal((await store.createGroup(1, 2, 'e')).id, 4)
  assert.deepEqual(
    store.groupsOf(1, 2).map((group) => group.id),
    [0, 1, 4],
  )
  await assert.rejects(store.createGroup(1, 2, 'e'), isCode('EDGE_GROUP_NAME_TAKEN'))
  await assert.rejects(store.createGroup(1, 2, ''), isCode('EDGE_NAME_INVALID'))
})

test('a topic that is created again under the same id starts with no groups and with group id 0', async () => {
  const store = open()
  await store.createGroup(1, 2, 'a')
  await store.createGroup(1, 3, 'kept')
  store.forget([{ streamId: 1, topicId: 2 }], [])
  assert.deepEqual(store.groupsOf(1, 2), [])
  assert.equal((await store.createGroup(1, 2, 'new')).id, 0)
  assert.equal(store.groupsOf(1, 3).length, 1)
})

test('a deleted group takes its offsets along in all partitions of its topic', async () => {
  const store = open()
  store.useTopicKeys(() => [10, 11])
  const group = await store.createGroup(0, 0, 'readers')
  store.setOffset(10, 'group', group.id, 5n)
  store.setOffset(11, 'group', group.id, 6n)
  store.setOffset(10, 'consumer', group.id, 7n)
  await store.deleteGroup(0, 0, group.id)
  assert.deepEqual([...store.offsetsOf(10)], [{ kind: 'consumer', consumerId: group.id, offset: 7n }])
  assert.deepEqual([...store.offsetsOf(11)], [])
})

test('a thousand offset changes cost one timer and one write, a second later', () => {
  const store = open()
  for (let offset = 0n; offset < 1000n; offset++) store.setOffset(1, 'consumer', 4_294_967_295, offset)
  assert.deepEqual(
    timers.map((timer) => timer.delayMs),
    [1000],
  )
  runTimers()
  assert.deepEqual(timers, [])
  assert.equal(reopen(store).offset(1, 'consumer', 4_294_967_295), 999n)
})

test('more changes than one transaction takes are written with the next ones', () => {
  const store = open()
  for (let key = 1; key <= 5000; key++) store.setOffset(key, 'group', 1, 1n)
  runTimers()
  assert.equal(timers.length, 1, 'the rest waits for the next second')
  runTimers()
  assert.equal(timers.length, 0)
})

test('closing writes pending offsets and cursors, and deleted ones do not come back', () => {
  let store = open()
  store.setOffset(1, 'consumer', 7, 10n)
  store.setOffset(1, 'device', 7, 11n)
  store.setCursor('central', 1, { confirmedOffset: 9n, upstreamOffset: 90n, incarnation: 2 })
  store.setCursor('spare', 1, { confirmedOffset: -1n, upstreamOffset: null })
  store = reopen(store)
  assert.equal(store.offset(1, 'consumer', 7), 10n)
  assert.equal(store.offset(1, 'device', 7), 11n)
  assert.deepEqual(store.cursor('central', 1), { confirmedOffset: 9n, upstreamOffset: 90n, incarnation: 2 })
  assert.deepEqual(store.cursor('spare', 1), { confirmedOffset: -1n, upstreamOffset: null, incarnation: 0 })
  assert.equal(store.deleteOffset(1, 'consumer', 7), true)
  assert.equal(store.deleteOffset(1, 'consumer', 7), false)
  store.deleteCursors('central')
  store = reopen(store)
  assert.equal(store.offset(1, 'consumer', 7), undefined)
  assert.deepEqual(
    [...store.cursorsOf(1)].map(({ route }) => route),
    ['spare'],
  )
})

test('a partition keeps no more offsets than configured, and known consumers still move', () => {
  const store = open({ maxConsumerOffsets: 2 })
  store.setOffset(1, 'consumer', 1, 0n)
  store.setOffset(1, 'consumer', 2, 0n)
  assert.throws(() => store.setOffset(1, 'consumer', 3, 0n), isCode('EDGE_TOO_MANY_OFFSETS'))
  store.setOffset(1, 'consumer', 2, 5n)
  assert.equal(store.deleteOffsetsOf(1), 2)
  store.setOffset(1, 'consumer', 3, 0n)
})

test('offsets and cursors above the end of the log are lowered to its last message', () => {
  const store = open()
  store.setOffset(1, 'consumer', 1, 900n)
  store.setOffset(1, 'consumer', 2, 499n)
  store.setCursor('central', 1, { confirmedOffset: 700n, upstreamOffset: 3n })
  assert.equal(store.clamp(endOf(1, 500n), NAMES), 2)
  assert.deepEqual(findings, ['log.offsets.clamped'])
  assert.equal(store.offset(1, 'consumer', 1), 499n)
  assert.equal(store.offset(1, 'consumer', 2), 499n)
  assert.deepEqual(store.cursor('central', 1), { confirmedOffset: 499n, upstreamOffset: null, incarnation: 0 })
  assert.equal(store.clamp(endOf(1, 500n), NAMES), 0)
})

test('in a log that became empty offsets vanish and cursors start over', () => {
  const store = open()
  store.setOffset(1, 'consumer', 1, 3n)
  store.setCursor('central', 1, { confirmedOffset: 3n, upstreamOffset: 3n })
  assert.equal(store.clamp(endOf(1, 0n), NAMES), 2)
  assert.equal(store.offset(1, 'consumer', 1), undefined)
  assert.equal(store.cursor('central', 1)?.confirmedOffset, -1n)
})

test('rows of partitions and topics that are not there any more are forgotten at open', async () => {
  const store = open()
  store.useTopicKeys((_stream, topic) => (topic === 0 ? [1] : []))
  const kept = await store.createGroup(0, 0, 'kept')
  await store.createGroup(0, 1, 'gone')
  store.setOffset(1, 'group', kept.id, 1n)
  store.setOffset(1, 'group', 77, 1n)
  store.setOffset(2, 'consumer', 1, 1n)
  store.forgetUnknown(
    (_stream, topic) => topic === 0,
    (key) => key === 1,
  )
  assert.deepEqual([...store.offsetsOf(1)], [{ kind: 'group', consumerId: kept.id, offset: 1n }])
  assert.deepEqual([...store.offsetsOf(2)], [])
  assert.deepEqual(store.groupsOf(0, 1), [])
})

test('offsets of a device whose name was lost are forgotten: its number may become another one', () => {
  const store = open()
  store.producers.addDevice(1, 'known')
  store.setOffset(1, 'device', 1, 5n)
  store.setOffset(1, 'device', 2, 900n)
  store.forgetUnknown(
    () => true,
    () => true,
  )
  assert.deepEqual([...store.offsetsOf(1)], [{ kind: 'device', consumerId: 1, offset: 5n }])
})

test('an expiry beyond what SQLite can hold is kept as the largest time', async () => {
  let store = open()
  await store.putUser(user(0, 'iggy'))
  await store.putToken({ userId: 0, name: 'a', hash: 'h', expiresAtUs: 2n ** 64n - 1n, deviceJson: null })
  store = reopen(store)
  assert.equal(store.tokenByHash('h')?.expiresAtUs, 2n ** 63n - 1n)
})

test('a disk that refuses at the end is told, and the store is closed all the same', () => {
  const database = new Database(path)
  migrate(database)
  const events: string[] = []
  const connection = new Connection(database)
  const store = new SqliteMetadata(connection, {
    scheduler,
    report: ({ event, text }) => events.push(`${event} ${text}`),
  })
  store.setOffset(1, 'consumer', 1, 3n)
  const refuse = (): never => {
    throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_WRITE')
  }
  database.transaction = refuse
  database.pragma = refuse
  store.close()
  store.close()
  assert.equal(database.open, false)
  assert.deepEqual(
    events.map((text) => text.slice(0, 66)),
    [
      'log.metadata.close_failed consumer offsets and cursors of the last',
      'log.metadata.close_failed the write-ahead log is left for the next',
    ],
  )
})

test('hints, producers and drop totals come back as they were saved', () => {
  let store = open()
  store.hints.setHints(new Map([[4, { nextOffset: 2n ** 53n + 1n, segmentEnd: 8n, messageCount: 9 }]]))
  store.hints.keepOwedOffsets(new Map([[9, 1n]]))
  store.hints.keepOwedOffsets(
    new Map([
      [4, 2n ** 53n + 1n],
      [5, 0n],
    ]),
  )
  store.producers.addDevice(1, 'pump-1')
  const sequence = { device: 1, epoch: 2 ** 40, lane: 0, have: 17, seenAtUs: 5n }
  store.producers.saveSequences([sequence, { ...sequence, lane: 1 }], [])
  store.producers.saveSequences([], [{ ...sequence, lane: 1 }])
  const total = { partitionKey: 4, reason: 'expired', messageCount: 3, sizeBytes: 9, fromOffset: 0n, endOffset: 3n }
  store.drops.save([total, { ...total, partitionKey: 5 }], [])
  store.drops.save([], [5])
  store = reopen(store)
  assert.deepEqual(store.hints.hint(4), { nextOffset: 2n ** 53n + 1n, segmentEnd: 8n, messageCount: 9 })
  assert.equal(store.hints.hint(5), undefined)
  assert.deepEqual(
    [...store.hints.owedOffsets()],
    [
      [4, 2n ** 53n + 1n],
      [5, 0n],
    ],
  )
  assert.deepEqual(store.producers.loadDevices(), [{ device: 1, name: 'pump-1' }])
  assert.deepEqual(store.producers.loadSequences(), [sequence])
  assert.deepEqual(store.drops.load(), [total])
})

test('a zero-filled, cut or garbage file is set aside and replaced, and says so', () => {
  open().close()
  const sound = readFileSync(path)
  const garbage = Uint8Array.from({ length: 8192 }, (_, index) => (index * 167 + 13) & 0xff)
  const states = { zeros: new Uint8Array(sound.length), garbage, cut: sound.subarray(0, 5000) }
  for (const [name, bytes] of Object.entries(states)) {
    writeFileSync(path, bytes)
    findings = []
    const store = open()
    assert.deepEqual(findings, ['log.metadata.rebuilt'], name)
    store.setOffset(1, 'consumer', 1, 1n)
    assert.equal(reopen(store).offset(1, 'consumer', 1), 1n, name)
    opened.pop()?.close()
  }
})

test('a file of no or one byte is taken as a new one', () => {
  for (const text of ['', 'S']) {
    writeFileSync(path, text)
    const store = open()
    assert.equal(store.users.size, 0)
    assert.deepEqual(findings, [])
    store.close()
  }
})

test('a table that is missing or has other columns is found at the start: the file is rebuilt, its users are kept', async () => {
  for (const change of ['ALTER TABLE cursors DROP COLUMN incarnation', 'DROP TABLE sequences']) {
    const store = open()
    await store.putUser(user(1, 'operator'))
    store.close()
    const database = new Database(path)
    database.exec(change)
    database.close()
    findings = []
    const again = open()
    assert.deepEqual(findings, ['log.metadata.rebuilt'], change)
    assert.equal(again.users.get(1)?.username, 'operator')
    again.close()
    rmSync(path)
  }
})

test('of a database with one damaged page the users on sound pages are saved', async () => {
  const store = open()
  await store.putUser(user(0, 'iggy'))
  for (let key = 1; key <= 3000; key++) store.setOffset(key, 'consumer', 1, 1n)
  store.close()
  const bytes = readFileSync(path)
  // The last page holds offsets.
  bytes.fill(0xff, bytes.length - 4096)
  writeFileSync(path, bytes)
  const again = open()
  assert.deepEqual(findings, ['log.metadata.rebuilt'])
  assert.equal(again.users.get(0)?.username, 'iggy')
})

test('damage anywhere never stops the start', async () => {
  const store = open()
  await store.putUser(user(0, 'iggy'))
  for (let key = 1; key <= 200; key++) store.setOffset(key, 'consumer', 1, 1n)
  store.close()
  const sound = readFileSync(path)
  for (let at = 0; at < sound.length; at += 512) {
    const bytes = Uint8Array.from(sound)
    bytes.fill(at % 1024 === 0 ? 0 : 0xa5, at, at + 512)
    writeFileSync(path, bytes)
    open().close()
  }
})

test('a write-ahead log that is damaged or alone costs what it held, never the start', async () => {
  const first = open()
  await first.putUser(user(0, 'iggy'))
  first.close()
  const sound = readFileSync(path)
  const second = open()
  await second.putUser(user(1, 'ann'))
  const log = readFileSync(`${path}-wal`)
  second.close()
  assert.ok(log.length > 0)
  const logs = {
    whole: log,
    zeros: new Uint8Array(log.length),
    garbage: log.map((byte) => byte ^ 0x5a),
    cut: log.subarray(0, log.length - 9),
  }
  for (const [name, bytes] of Object.entries(logs)) {
    writeFileSync(path, sound)
    writeFileSync(`${path}-wal`, bytes)
    const store = open()
    assert.deepEqual([...store.users.keys()], name === 'whole' ? [0, 1] : [0], name)
    store.close()
  }
  rmSync(path)
  writeFileSync(`${path}-wal`, log)
  assert.equal(open().users.size, 0, 'without its database it is nothing')
  assert.deepEqual(findings, [])
})

test('a file of a newer release is refused and left as it is', () => {
  open().close()
  const foreign = new Database(path)
  foreign.exec('CREATE TABLE routes (name TEXT PRIMARY KEY) STRICT')
  foreign.pragma('user_version = 2')
  foreign.close()
  const before = readFileSync(path)
  assert.throws(() => open(), isCode('EDGE_STORE_NEWER'))
  assert.deepEqual([readFileSync(path), findings], [before, []])
})

test('what cannot be opened as a file is named with what was expected, and is left as it is', () => {
  mkdirSync(path)
  assert.throws(() => open(), /metadata\.sqlite: expected a file, found a folder/)
  assert.deepEqual(readdirSync(path), [])
  assert.deepEqual(findings, [])
  rmSync(path, { recursive: true })
})

test('a file held by another connection is refused, and nothing is set aside', () => {
  open().close()
  const foreign = new Database(path)
  foreign.pragma('locking_mode = EXCLUSIVE')
  foreign.exec('BEGIN EXCLUSIVE')
  try {
    assert.throws(() => open(), isCode('EDGE_STORE_IN_USE'))
    assert.deepEqual(findings, [])
  } finally {
    foreign.close()
  }
})

test('the write-ahead log stays small however often offsets move', () => {
  const store = open()
  for (let round = 0n; round < 400n; round++) {
    for (let key = 1; key <= 50; key++) store.setOffset(key * 100, 'consumer', 1, round)
    runTimers()
  }
  assert.ok(statSync(`${path}-wal`).size < 2 * 1024 * 1024, `${statSync(`${path}-wal`).size} bytes`)
})
