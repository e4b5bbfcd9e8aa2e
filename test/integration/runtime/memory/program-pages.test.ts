import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { programPagesUnmapper } from '../../../../src/runtime/memory/program-pages.ts'

function residentKb(): number {
  const found = /^Rss:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/smaps_rollup', 'latin1'))?.[1]
  assert.ok(found !== undefined)
  return Number(found)
}

test('the program goes on with a good part of its pages unmapped', () => {
  const before = crc32('123456789')
  const beforeKb = residentKb()
  programPagesUnmapper()()
  const afterKb = residentKb()
  assert.ok(beforeKb - afterKb > 8 * 1024, `${beforeKb} kB before, ${afterKb} kB after`)
  assert.equal(crc32('123456789'), before)
})
