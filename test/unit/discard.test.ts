import assert from 'node:assert/strict'
import { test } from 'node:test'
import { discard } from '../../src/discard.ts'

test('a large buffer is given back at once, and one that shares its memory with others stays', () => {
  const large = new Uint8Array(64 * 1024)
  discard(large)
  assert.equal(large.length, 0)
  const shared = new Uint8Array(new ArrayBuffer(64 * 1024), 8, 100)
  discard(shared)
  assert.equal(shared.length, 100)
})
