/** A damaged database is rebuilt beside itself: what was saved of it is there whenever the start ends. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import Database from 'better-sqlite3'
import { EdgeError } from '../../../src/errors.ts'
import { openMetadata, type SqliteMetadata } from '../../../src/log/metadata/metadata-store.ts'

let folder: string
let path: string
let rebuilt: string
let findings: string[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'edge-rebuild-'))
  path = join(folder, 'metadata.sqlite')
  rebuilt = `${path}-rebuilt`
  const store = open()
  await store.putUser({
    id: 1,
    username: 'operator',
    passwordHash: '$argon2id$x',
    isActive: true,
    createdAtUs: 1_700_000_000_000_000n,
    permissionsJson: null,
  })
  store.close()
  const database = new Database(path)
  database.exec('DROP TABLE hints')
  database.close()
  findings = []
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function open(setAside: () => void = moveAway): SqliteMetadata {
  return openMetadata({
    path,
    scheduler: { nextTurn: (task) => task(), after: () => () => undefined },
    report: (finding) => findings.push(finding.event),
    setAside,
    isExpected: existsSync(`${path}.damaged`),
  })
}

function moveAway(): void {
  renameSync(path, `${path}.damaged`)
}

function endStart(): never {
  throw new EdgeError('EDGE_IO', 'the power is cut')
}

function assertSaved(): void {
  const store = open()
  assert.equal(store.users.get(1)?.username, 'operator')
  store.close()
  assert.ok(!existsSync(rebuilt))
}

test('a start that ends before the damaged file is set aside leaves the next one to rebuild it', () => {
  assert.throws(() => open(endStart), /the power is cut/)
  writeFileSync(rebuilt, 'of which not all was written')
  assertSaved()
  assert.deepEqual(findings, ['log.metadata.rebuilt'])
})

test('a start that ends after the damaged file is set aside leaves the next one what was saved', () => {
  const endAfter = () => {
    moveAway()
    endStart()
  }
  assert.throws(() => open(endAfter), /the power is cut/)
  assertSaved()
  assert.deepEqual(findings, ['log.metadata.rebuilt'])
  findings = []
  assertSaved()
  assert.deepEqual(findings, [])
})

test('what is left of a rebuilding is removed once the database is sound', () => {
  assertSaved()
  writeFileSync(rebuilt, 'of a start that ended')
  assertSaved()
})
