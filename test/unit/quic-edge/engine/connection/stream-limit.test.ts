import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StreamLimit } from '../../../../../src/quic-edge/engine/connection/stream-limit.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'

test('a stream opens all before it, up to the limit', () => {
  const limit = new StreamLimit(4)
  limit.open(2)
  assert.equal(limit.openedCount, 3)
  limit.open(0)
  assert.equal(limit.openedCount, 3)
  assert.throws(() => limit.open(4), { code: TRANSPORT_ERROR.streamLimitError })
})

test('streams that end are allowed anew, told when it is a quarter of them', () => {
  const limit = new StreamLimit(8)
  limit.open(7)
  limit.close()
  assert.equal(limit.isUpdateDue, false)
  limit.close()
  assert.equal(limit.isUpdateDue, true)
  assert.equal(limit.update(), 10)
  assert.equal(limit.isUpdateDue, false)
  limit.open(9)
  limit.repeatUpdate()
  assert.equal(limit.isUpdateDue, true)
})

test('where no streams are allowed, nothing is ever due', () => {
  const limit = new StreamLimit(0)
  assert.equal(limit.isUpdateDue, false)
  assert.throws(() => limit.open(0))
})
