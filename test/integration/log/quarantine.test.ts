import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { Quarantine } from '../../../src/log/quarantine.ts'

const DAY_US = 86_400_000_000n
const NOW_US = 1_800_000_000_000_000n

let folder: string
let quarantine: Quarantine

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edge-quarantine-'))
  quarantine = new Quarantine({ fileSystem: createNodeFileSystem(folder), maxBytes: 100, maxAgeUs: 30n * DAY_US })
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

function put(name: string, size: number, atUs: bigint): void {
  writeFileSync(join(folder, name), new Uint8Array(size))
  quarantine.take(name, atUs)
}

test('a file that was set aside is listed with where it lay, when and its size', () => {
  writeFileSync(join(folder, 'x.seg'), 'abc')
  const target = quarantine.take('x.seg', NOW_US)
  assert.ok(!existsSync(join(folder, 'x.seg')))
  assert.equal(readFileSync(join(folder, target), 'utf8'), 'abc')
  quarantine.keep('streams/0/topics/0/1/y.seg', Uint8Array.of(1, 2), NOW_US + 1n)
  const entries = quarantine.list().map(({ origin, setAsideAtUs, sizeBytes }) => ({ origin, setAsideAtUs, sizeBytes }))
  assert.deepEqual(entries, [
    { origin: 'x.seg', setAsideAtUs: NOW_US, sizeBytes: 3 },
    { origin: 'streams/0/topics/0/1/y.seg', setAsideAtUs: NOW_US + 1n, sizeBytes: 2 },
  ])
})

test('two files of one name at one time are both kept, also over a restart', () => {
  put('a', 1, NOW_US)
  quarantine = new Quarantine({ fileSystem: createNodeFileSystem(folder), maxBytes: 100, maxAgeUs: DAY_US })
  put('a', 2, NOW_US)
  assert.deepEqual(
    quarantine.list().map(({ sizeBytes }) => sizeBytes),
    [1, 2],
  )
})

test('the oldest are dropped while there is too much, and no more than that', () => {
  for (let index = 0; index < 5; index++) put('a', 30, NOW_US + BigInt(index))
  assert.deepEqual(
    quarantine.sweep(NOW_US).map(({ setAsideAtUs }) => setAsideAtUs),
    [NOW_US, NOW_US + 1n],
  )
  assert.equal(quarantine.list().length, 3)
  assert.deepEqual(quarantine.sweep(NOW_US), [])
})

test('the newest stays though it is too much by itself, unless nothing is to be kept', () => {
  put('a', 30, NOW_US)
  put('b', 500, NOW_US + 1n)
  assert.deepEqual(
    quarantine.sweep(NOW_US).map(({ origin }) => origin),
    ['a'],
  )
  assert.deepEqual(quarantine.sweep(NOW_US), [])
  quarantine = new Quarantine({ fileSystem: createNodeFileSystem(folder), maxBytes: 0, maxAgeUs: 30n * DAY_US })
  assert.equal(quarantine.sweep(NOW_US).length, 1)
})

test('what is too old is dropped, to the microsecond', () => {
  put('a', 1, NOW_US)
  assert.deepEqual(quarantine.sweep(NOW_US + 30n * DAY_US), [])
  assert.equal(quarantine.sweep(NOW_US + 30n * DAY_US + 1n).length, 1)
  assert.deepEqual(quarantine.list(), [])
})

test('what was set aside while the clock was not set does not go for its age, which nobody knows', () => {
  put('a', 1, 5_000_000n)
  assert.deepEqual(quarantine.sweep(NOW_US), [])
  put('b', 100, NOW_US)
  assert.deepEqual(
    quarantine.sweep(NOW_US).map(({ origin }) => origin),
    ['a'],
  )
})

test('a file that came here otherwise is the oldest', () => {
  put('a', 90, NOW_US)
  writeFileSync(join(folder, 'quarantine/stray'), new Uint8Array(90))
  assert.deepEqual(
    quarantine.sweep(NOW_US).map(({ origin }) => origin),
    ['stray'],
  )
})

test('what the service may move but not open is swept as well', () => {
  put('theirs', 90, NOW_US)
  put('ours', 90, NOW_US + 1n)
  const fileSystem = createNodeFileSystem(folder)
  const open = (): never => {
    throw new Error('opened')
  }
  const closed = new Quarantine({ fileSystem: { ...fileSystem, open }, maxBytes: 100, maxAgeUs: 30n * DAY_US })
  assert.deepEqual(
    closed.sweep(NOW_US + 2n).map(({ origin }) => origin),
    ['theirs'],
  )
})
