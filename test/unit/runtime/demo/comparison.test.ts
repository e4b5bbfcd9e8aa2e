import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Copy, compareCopies, isExactlyOnce, sumVerdicts } from '../../../../src/runtime/demo/comparison.ts'

const copy = (id: number): Copy => ({ id: BigInt(id), payload: Uint8Array.of(id) })
const LOCAL = [1, 2, 3].map(copy)

describe('the verdict of the demo', () => {
  it('is good when both sides hold the same in the same order', () => {
    assert.ok(isExactlyOnce(compareCopies(LOCAL, [1, 2, 3].map(copy))))
  })

  it('counts what came twice', () => {
    const verdict = compareCopies(LOCAL, [1, 2, 2, 3].map(copy))
    assert.deepEqual([verdict.duplicates, verdict.missing, isExactlyOnce(verdict)], [1, 0, false])
  })

  it('counts what is missing', () => {
    const verdict = compareCopies(LOCAL, [1, 2].map(copy))
    assert.deepEqual([verdict.duplicates, verdict.missing, isExactlyOnce(verdict)], [0, 1, false])
  })

  it('notices a wrong order, and another payload under the right id', () => {
    assert.equal(compareCopies(LOCAL, [1, 3, 2].map(copy)).isInOrder, false)
    assert.equal(compareCopies(LOCAL, [copy(1), copy(2), { id: 3n, payload: Uint8Array.of(9) }]).isInOrder, false)
  })

  it('adds up partitions', () => {
    const sum = sumVerdicts([compareCopies(LOCAL, LOCAL), compareCopies(LOCAL, [copy(1), copy(1)])])
    assert.deepEqual([sum.local, sum.upstream, sum.duplicates, sum.missing, sum.isInOrder], [6, 5, 1, 2, true])
  })
})
