import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { isShortage } from '../../../../src/log/io/file-system.ts'
import { Refusals } from '../../../../src/log/io/refusals.ts'

const failure = (code: string): EdgeError => new EdgeError('EDGE_IO', `${code} on p/1.seg`, { details: { code } })

function world() {
  const time = { nowMs: 0 }
  const refusals = new Refusals({ monotonicUs: () => time.nowMs * 1000 }, 5000)
  const isWaitedFor = (position: number, code = 'EIO'): boolean => {
    try {
      refusals.check('p/1.seg', position, failure(code))
      return false
    } catch (error) {
      assert.ok(isShortage(error))
      return true
    }
  }
  return { time, refusals, isWaitedFor }
}

test('what is refused is waited for, and counts as damaged when its time is over, with all that is refused of the file', () => {
  const { time, isWaitedFor } = world()
  assert.equal(isWaitedFor(8), true)
  time.nowMs = 29_999
  assert.equal(isWaitedFor(8), true)
  time.nowMs = 30_000
  assert.deepEqual([isWaitedFor(8), isWaitedFor(16)], [false, false])
})

test('what is given again is waited for as long the next time; others of the file do not make it wait anew', () => {
  const { time, refusals, isWaitedFor } = world()
  assert.equal(isWaitedFor(8), true)
  refusals.given('p/1.seg', 16)
  time.nowMs = 30_000
  assert.equal(isWaitedFor(8), false)
  refusals.given('p/1.seg', 8)
  assert.deepEqual([refusals.isEmpty, isWaitedFor(8)], [true, true])
})

test('damage, and a file that is gone, are not waited for', () => {
  const { refusals, isWaitedFor } = world()
  assert.equal(isWaitedFor(8, 'ENOENT'), false)
  refusals.check('p/1.seg', 8, new EdgeError('EDGE_BATCH_CORRUPT', 'damaged'))
  assert.equal(refusals.isEmpty, true)
})
