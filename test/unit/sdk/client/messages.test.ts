import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeHeaders, packMessages, unpackMessages } from '../../../../src/sdk/client/messages.ts'
import type { RecordBatch, StoredBatch } from '../../../../src/sdk/wire/batch.ts'
import { stringHeader } from '../../../../src/sdk/wire/header-values.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function stored(batch: RecordBatch, skip = 0): StoredBatch {
  const place = { baseOffset: 100n, appendTimeUs: 5n, idSeed: 9n }
  return { ...batch, ...place, skip, take: batch.count - skip, isClockTrusted: true }
}

test('messages come out of a batch as they went in', () => {
  const headers = [{ key: stringHeader('k'), value: stringHeader('v') }]
  const batch = packMessages(
    [{ payload: bytes('a'), id: 1n << 100n, originUs: 50n, headers }, { payload: bytes('') }],
    40n,
    null,
  )
  const [first, second] = unpackMessages(stored(batch))
  assert.ok(first && second)
  assert.deepEqual([first.id, first.offset, first.originUs, first.timestampUs], [1n << 100n, 100n, 50n, 5n])
  assert.deepEqual(first.payload, bytes('a'))
  assert.deepEqual(decodeHeaders(first), headers)
  assert.deepEqual([second.id, second.offset, second.originUs], [(9n << 64n) | 101n, 101n, 40n])
  assert.equal(second.payload.length, 0)
})

test('records before the ones asked for are passed over', () => {
  const batch = packMessages([{ payload: bytes('a') }, { payload: bytes('b') }], 1n, null)
  assert.deepEqual(
    unpackMessages(stored(batch, 1)).map(({ offset }) => offset),
    [101n],
  )
})

test('missing ids are made where the server would store a zero', () => {
  let next = 7n
  const batch = packMessages([{ payload: bytes('a') }, { payload: bytes('b'), id: 3n }], 1n, () => next++)
  assert.deepEqual(
    unpackMessages(stored(batch)).map(({ id }) => id),
    [7n, 3n],
  )
})

test('an empty send, and a batch cut short, are errors', () => {
  assert.throws(() => packMessages([], 1n, null), { code: 'EDGE_BATCH_EMPTY' })
  const batch = packMessages([{ payload: bytes('abc') }], 1n, null)
  const cut = { ...stored(batch), recordsView: batch.recordsView.subarray(0, 2) }
  assert.throws(() => unpackMessages(cut), { code: 'EDGE_BATCH_CORRUPT' })
})
