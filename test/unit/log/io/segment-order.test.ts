/** Which files of a partition count, as far as their names tell. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inOrder, overtaken, RUN_GAP } from '../../../../src/log/io/segment-order.ts'

interface File {
  readonly baseOffset: bigint
  readonly runNumber: number
  readonly end: bigint
}

const file = (baseOffset: bigint, runNumber: number, end: bigint): File => ({ baseOffset, runNumber, end })

/** @returns the offsets at which files begin that do not count, and how many were looked into. */
function gone(...files: readonly File[]): { readonly bases: readonly bigint[]; readonly lookCount: number } {
  let lookCount = 0
  const endOf = ({ end }: File): bigint => {
    lookCount++
    return end
  }
  const bases = [...overtaken(inOrder(files), endOf)].map(({ baseOffset }) => baseOffset)
  return { bases, lookCount }
}

test('a file left over from before a gap does not count where a newer one goes on past its beginning', () => {
  const packed = [file(0n, 1, 50n), file(50n, RUN_GAP + 3, 90n), file(90n, RUN_GAP + 4, 200n)]
  assert.deepEqual(gone(...packed, file(60n, 2, 80n), file(120n, 3, 130n)).bases, [60n, 120n])
  assert.deepEqual(gone(...packed, file(90n, 2, 95n)).bases, [90n], 'nor where one begins with it')
})

test('the file of a large batch that was packed behind a gap counts, and so does what was written in order', () => {
  // Begun before the gap, it got its name behind what lies in front of it.
  assert.deepEqual(gone(file(0n, 1, 50n), file(50n, RUN_GAP + 3, 60n), file(60n, 2, 61n)).bases, [])
  assert.deepEqual(gone(file(0n, 1, 50n), file(50n, RUN_GAP, 60n), file(60n, 3 * RUN_GAP, 61n)).bases, [])
})

test('without a gap no file is looked into', () => {
  const files = Array.from({ length: 100 }, (_, at) => file(BigInt(at), at % 2 === 0 ? at + 1 : at - 1, 1000n))
  assert.deepEqual(gone(...files), { bases: [], lookCount: 0 })
})
