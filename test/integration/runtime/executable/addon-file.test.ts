import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { closeSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  cacheAddon,
  holdsAddon,
  type PackedAddon,
  unnamedFiles,
  writeAll,
} from '../../../../src/runtime/executable/addon-file.ts'

function addonOf(text: string): PackedAddon & { readCount: number } {
  const bytes = Buffer.from(text)
  const digest = createHash('sha256').update(bytes).digest('hex')
  return {
    name: 'example.node',
    digest,
    readCount: 0,
    bytes() {
      this.readCount++
      return bytes
    },
  }
}

function temporaryFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'addon-'))
  context.after(() => rmSync(folder, { recursive: true }))
  return folder
}

test('an addon is written once and found again', (context) => {
  const folder = temporaryFolder(context)
  const addon = addonOf('version 1')
  const path = cacheAddon(folder, addon)
  assert.equal(readFileSync(path, 'utf8'), 'version 1')
  assert.equal(statSync(path).mode & 0o777, 0o500)
  assert.equal(cacheAddon(folder, addon), path)
  assert.equal(addon.readCount, 1)
})

test('a damaged file is written again', (context) => {
  const folder = temporaryFolder(context)
  const addon = addonOf('version 1')
  const path = cacheAddon(folder, addon)
  rmSync(path)
  writeFileSync(path, 'version')
  assert.equal(holdsAddon(path, addon), false)
  assert.equal(readFileSync(cacheAddon(folder, addon), 'utf8'), 'version 1')
})

test('files of earlier versions and of interrupted writes go', (context) => {
  const folder = temporaryFolder(context)
  const old = addonOf('version 1')
  cacheAddon(folder, old)
  writeFileSync(join(folder, 'addons', `${old.digest}-example.node.1.tmp`), 'ver')
  writeFileSync(join(folder, 'addons', 'other.node'), 'another addon')
  const path = cacheAddon(folder, addonOf('version 2'))
  assert.deepEqual(
    readdirSync(join(folder, 'addons'))
      .map((name) => join(folder, 'addons', name))
      .sort(),
    [path, join(folder, 'addons', 'other.node')].sort(),
  )
})

test('a folder that cannot be written is an error, not a half-written file', (context) => {
  const folder = temporaryFolder(context)
  writeFileSync(join(folder, 'addons'), 'a file stands where the folder should be')
  assert.throws(() => cacheAddon(folder, addonOf('version 1')))
})

test('there is a place for a file without a name, and it holds what is written', () => {
  const places: string[] = []
  for (const { file, place } of unnamedFiles(addonOf('bytes'))) {
    writeAll(file, Buffer.from('bytes'))
    assert.equal(readFileSync(`/proc/self/fd/${file}`, 'utf8'), 'bytes')
    closeSync(file)
    places.push(place)
  }
  assert.ok(places.includes('memfd'), places.join(', '))
})
