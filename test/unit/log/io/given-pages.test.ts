/** Reads of a device that does not give all pages: what is given is there, the rest is zeros, and the tries are bounded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { PAGE_SIZE } from '../../../../src/log/core/journal-format.ts'
import type { LogFile } from '../../../../src/log/io/file-system.ts'
import { readGiven } from '../../../../src/log/io/given-pages.ts'

/** A file of ones. */
function deviceOf(pageCount: number, isBad: (page: number) => boolean, code = 'EIO') {
  const size = pageCount * PAGE_SIZE - 7
  const reads: number[] = []
  const read = (target: Uint8Array, position: number): number => {
    const count = Math.min(target.length, size - position)
    for (let page = Math.floor(position / PAGE_SIZE); page * PAGE_SIZE < position + count; page++) {
      if (isBad(page)) throw new EdgeError('EDGE_IO', code, { details: { code } })
    }
    reads.push(count)
    target.fill(1, 0, count)
    return count
  }
  const unused = (): never => assert.fail('only read')
  const rest = {
    readAtHand: unused,
    readLater: unused,
    write: unused,
    datasync: unused,
    truncate: unused,
    close: unused,
  }
  const handle: LogFile = { ...rest, size: () => size, read }
  return { handle, size, reads }
}

test('a bad page is zeros, and all beside it is given', () => {
  const { handle, size } = deviceOf(40, (page) => page === 3 || page === 4 || page === 39)
  const bytes = new Uint8Array(50 * PAGE_SIZE).fill(9)
  const from = PAGE_SIZE + 100
  const given = readGiven(handle, bytes, from)
  assert.equal(given.size, size - from)
  assert.deepEqual(given.refused, [
    { from: 3 * PAGE_SIZE, end: 5 * PAGE_SIZE },
    { from: 39 * PAGE_SIZE, end: size },
  ])
  const expected = new Uint8Array(size).fill(1)
  for (const range of given.refused) expected.fill(0, range.from, range.end)
  assert.deepEqual(bytes.subarray(0, given.size), expected.subarray(from))
})

test('a device that gives nothing any more is not asked for each page', () => {
  let tries = 0
  const { handle, size } = deviceOf(4096, () => {
    tries++
    return true
  })
  assert.deepEqual(readGiven(handle, new Uint8Array(size), 0).refused, [{ from: 0, end: size }])
  assert.ok(tries < 4096 / 16 + 100, `${tries} tries`)
})

test('a shortage of the machine is no bad page', () => {
  const { handle } = deviceOf(4, (page) => page === 2, 'ENOMEM')
  assert.throws(() => readGiven(handle, new Uint8Array(4 * PAGE_SIZE), 0), { code: 'EDGE_IO' })
})
