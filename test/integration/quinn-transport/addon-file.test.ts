import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { loweredCopy, lowerPinned, packageDirectory } from '../../../src/quinn-transport/addon-file.ts'
import { lowerGlibc } from '../../../src/quinn-transport/lower-glibc.ts'
import { PINNED_ADDONS } from '../../../src/quinn-transport/pinned-addons.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'addon-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

for (const [architecture, pinned] of Object.entries(PINNED_ADDONS)) {
  const publishedPath = path.join(packageDirectory(), pinned.fileName)

  test(`the ${architecture} addon is the one that was tested, and asks for glibc 2.34 at most once lowered`, () => {
    const lowered = lowerPinned(publishedPath, pinned)
    const versions = new Set(
      Buffer.from(lowered)
        .toString('latin1')
        .match(/GLIBC_2\.\d+/g),
    )
    assert.ok(versions.size > 0)
    // The text of 2.38 stays in the string table; lowered again nothing is left to do, so nothing refers to it.
    assert.deepEqual(sha256(lowerGlibc(lowered)), sha256(lowered))
    assert.notEqual(sha256(lowered), sha256(readFileSync(publishedPath)))
  })

  test(`a copy of the ${architecture} addon is made once, and again when it is damaged`, () => {
    const made = loweredCopy(publishedPath, pinned, [folder])
    assert.equal(sha256(readFileSync(made)), pinned.loweredSha256)
    assert.equal(loweredCopy('/nowhere', pinned, [folder]), made)
    rmSync(made)
    writeFileSync(made, 'half a file')
    assert.equal(sha256(readFileSync(loweredCopy(publishedPath, pinned, [folder]))), pinned.loweredSha256)
  })

  test(`another file than the tested ${architecture} one is refused, and so is a system without a place for the copy`, () => {
    const other = path.join(folder, 'other.node')
    const bytes = readFileSync(publishedPath)
    bytes[1000] = (bytes[1000] ?? 0) ^ 1
    writeFileSync(other, bytes)
    assert.throws(() => loweredCopy(other, pinned, [folder]), { code: 'EDGE_FEATURE_MISSING', message: /SHA-256/ })
    const file = path.join(folder, 'file')
    writeFileSync(file, '')
    assert.throws(() => loweredCopy(publishedPath, pinned, [file]), { code: 'EDGE_FEATURE_MISSING' })
  })
}

test('what is no shared object is refused', () => {
  for (const bytes of [new Uint8Array(), Buffer.from('#!/bin/sh\n'), new Uint8Array(100)]) {
    assert.throws(() => lowerGlibc(bytes), { code: 'EDGE_FEATURE_MISSING' })
  }
})

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
