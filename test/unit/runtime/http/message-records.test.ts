import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringifyJson } from '../../../../src/runtime/http/json.ts'
import { packMessages, viewPoll } from '../../../../src/runtime/http/message-records.ts'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const NO_BYTES = new Uint8Array(0)
const U128_MAX = 2n ** 128n - 1n

test('messages come out of the log as they went in, ids of 39 digits included', () => {
  const headers = Uint8Array.from([2, 1, 0, 0, 0, 107, 2, 1, 0, 0, 0, 118])
  const batch = packMessages(
    [
      { id: 0n, payloadBytes: text('first'), headersBytes: NO_BYTES },
      { id: U128_MAX, payloadBytes: text('second'), headersBytes: headers },
      { id: 7n, payloadBytes: text('third'), headersBytes: text('junk') },
    ],
    1_795_968_861_000_123n,
  )
  const place = {
    baseOffset: 40n,
    appendTimeUs: 1_795_968_861_000_999n,
    idSeed: 5n,
    skip: 0,
    take: 3,
    isClockTrusted: true,
  }
  const polled = { partitionId: 2, currentOffset: 42n, messageCount: 3, batches: [{ ...batch, ...place }] }
  const json = stringifyJson(viewPoll(polled))
  assert.match(json, /"id":340282366920938463463374607431768211455,/)
  const view = JSON.parse(json)
  assert.equal(view.current_offset, 42)
  assert.deepEqual(
    view.messages.map(({ header }: { header: { offset: number } }) => header.offset),
    [40, 41, 42],
  )
  assert.deepEqual(
    view.messages.map(({ payload }: { payload: string }) => Buffer.from(payload, 'base64').toString()),
    ['first', 'second', 'third'],
  )
  assert.equal(view.messages[0].header.origin_timestamp, 1_795_968_861_000_123)
  assert.notEqual(view.messages[0].header.id, 0)
  assert.deepEqual(view.messages[0].user_headers, [])
  assert.deepEqual(view.messages[1].user_headers, [
    { key: { kind: 'string', value: 'aw==' }, value: { kind: 'string', value: 'dg==' } },
  ])
  assert.equal(view.messages[2].user_headers, 'anVuaw==')
})

test('a poll may begin within a stored batch', () => {
  const messages = ['a', 'b', 'c', 'd'].map((value) => ({ id: 0n, payloadBytes: text(value), headersBytes: NO_BYTES }))
  const batch = packMessages(messages, 1n)
  const place = { baseOffset: 10n, appendTimeUs: 2n, idSeed: 0n, skip: 1, take: 2, isClockTrusted: true }
  const view = JSON.parse(
    stringifyJson(viewPoll({ partitionId: 0, currentOffset: 13n, messageCount: 2, batches: [{ ...batch, ...place }] })),
  )
  assert.deepEqual(
    view.messages.map((each: { header: { offset: number }; payload: string }) => [each.header.offset, each.payload]),
    [
      [11, 'Yg=='],
      [12, 'Yw=='],
    ],
  )
})
