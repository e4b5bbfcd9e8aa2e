import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idPrefix, messageId, splitMessageId } from '../../../../src/sync/core/message-id.ts'

const STORE = Uint8Array.from({ length: 16 }, (_, index) => index)

test('an id tells its prefix and offset again', () => {
  const prefix = idPrefix(STORE, 5, 0)
  assert.deepEqual(splitMessageId(messageId(prefix, 123n)), { prefix, offset: 123n })
  assert.ok(messageId(prefix, 0n) !== 0n && messageId(prefix, 0n) < 1n << 128n)
})

test('stores, partitions and incarnations have prefixes of their own, the same after every start', () => {
  assert.equal(idPrefix(STORE, 5, 0), 13_242_339_073_166_714_156n)
  const other = STORE.with(15, 99)
  const prefixes = new Set<bigint>()
  for (const store of [STORE, other]) {
    for (let key = 0; key < 500; key++)
      for (let incarnation = 0; incarnation < 4; incarnation++) prefixes.add(idPrefix(store, key, incarnation))
  }
  assert.equal(prefixes.size, 4000)
})
