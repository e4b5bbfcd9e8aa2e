import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type OutgoingMessage, packMessages, unpackMessages } from '../../../../src/sdk/index.ts'
import type { StoredBatch } from '../../../../src/sdk/wire/batch.ts'
import { stringHeader } from '../../../../src/sdk/wire/header-values.ts'
import { messageId } from '../../../../src/sync/core/message-id.ts'
import { joinBatches } from '../../../../src/sync/core/outgoing.ts'

const PREFIX = 77n
const HOUR_US = 3_600_000_000n

function stored(baseOffset: bigint, messages: readonly OutgoingMessage[], skip = 0): StoredBatch {
  const batch = packMessages(messages, 1000n, null)
  return { ...batch, baseOffset, appendTimeUs: 1n, idSeed: 5n, skip, take: batch.count - skip, isClockTrusted: true }
}

const message = (text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  payload: new TextEncoder().encode(text),
  ...more,
})

test('batches become one, with our ids in place of any others and everything else as it was', () => {
  const headers = [{ key: stringHeader('device'), value: stringHeader('d') }]
  const joined = joinBatches(
    [stored(10n, [message('a'), message('b', { id: 9n, headers, originUs: 2000n })], 1), stored(12n, [message('c')])],
    PREFIX,
  )
  assert.ok(joined)
  assert.deepEqual([joined.count, joined.nextOffset], [2, 13n])
  const [first, second] = unpackMessages(joined.batch)
  assert.ok(first && second)
  assert.deepEqual([first.id, first.originUs, first.offset], [messageId(PREFIX, 11n), 2000n, 11n])
  assert.ok(first.headersBytes.length > 0)
  assert.deepEqual([second.id, new TextDecoder().decode(second.payload)], [messageId(PREFIX, 12n), 'c'])
})

test('records after a hole stay for the next send', () => {
  const joined = joinBatches([stored(0n, [message('a')]), stored(5n, [message('b')])], PREFIX)
  assert.deepEqual([joined?.count, joined?.nextOffset], [1, 1n])
})

test('origin times of one send lie within what the newer protocol can hold', () => {
  const joined = joinBatches(
    [stored(0n, [message('a', { originUs: 0n }), message('b', { originUs: 2n * HOUR_US })])],
    PREFIX,
  )
  assert.equal(joined?.count, 1)
  const near = joinBatches([stored(0n, [message('a', { originUs: HOUR_US }), message('b', { originUs: 1n })])], PREFIX)
  assert.equal(near?.count, 2)
})

test('no batches are no send', () => {
  assert.equal(joinBatches([], PREFIX), undefined)
})

test('what is more than may be sent stays for the next send, but for one record', () => {
  const batch = stored(0n, [message('x'.repeat(100)), message('y'.repeat(100)), message('z'.repeat(100))])
  const sizes = [1000, 250, 10].map((maxBytes) => joinBatches([batch], PREFIX, maxBytes))
  assert.deepEqual(
    sizes.map((joined) => [joined?.count, joined?.nextOffset]),
    [
      [3, 3n],
      [2, 2n],
      [1, 1n],
    ],
  )
  assert.ok((sizes[1]?.sizeBytes ?? 0) <= 250)
})
