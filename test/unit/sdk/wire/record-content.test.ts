import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecordCursor } from '../../../../src/sdk/wire/kernel/record-cursor.ts'
import { contentBytesOf } from '../../../../src/sdk/wire/record-content.ts'
import { batchOf } from '../../../support/broker-world.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

test('payloads are counted, whatever is written around them', () => {
  assert.equal(contentBytesOf(new Uint8Array(0)), 0)
  assert.equal(contentBytesOf(batchOf([0n, 'a'], [2n ** 100n, 'bcd'], [7n, 'x'.repeat(20_000)]).recordsView), 20_004)
})

test('a record that is cut off counts no more than its bytes', () => {
  const { recordsView } = batchOf([5n, 'payload'], [0n, 'another'])
  for (let length = 0; length < recordsView.length; length++) {
    const bytes = contentBytesOf(recordsView.subarray(0, length))
    assert.ok(bytes >= 0 && bytes <= 14, `${length}: ${bytes}`)
  }
})

test('agrees with the cursor that reads every field', () => {
  const random = new SeededRandom(5)
  for (let round = 0; round < 50; round++) {
    const messages = Array.from({ length: 1 + random.below(20) }, (): [bigint, string] => [
      BigInt(random.below(3)),
      'x'.repeat(random.below(300)),
    ])
    const batch = batchOf(...messages)
    const cursor = new RecordCursor(batch.recordsView, batch.baseOriginUs)
    let expected = 0
    while (cursor.at < batch.recordsView.length && cursor.next()) expected += cursor.payloadSize + cursor.headersSize
    assert.equal(contentBytesOf(batch.recordsView), expected)
  }
})
