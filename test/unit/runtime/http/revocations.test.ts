import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_REVOKED_TOKENS, Revocations } from '../../../../src/runtime/http/revocations.ts'

test('what was revoked stays so over a restart, until it would have ended anyway', () => {
  const revocations = Revocations.parse(undefined, 0)
  revocations.add('a', 100, 0)
  revocations.add('b', 200, 0)
  const later = Revocations.parse(revocations.serialize(), 150)
  assert.equal(later.has('a'), false)
  assert.equal(later.has('b'), true)
})

test('over the bound the one that ends first is forgotten', () => {
  const revocations = Revocations.parse(undefined, 0)
  for (let i = 0; i <= MAX_REVOKED_TOKENS; i++) revocations.add(`t${i}`, 1000 + i, 0)
  assert.equal(revocations.size, MAX_REVOKED_TOKENS)
  assert.equal(revocations.has('t0'), false)
  assert.equal(revocations.has('t1'), true)
})

test('a damaged text counts for what can be read of it', () => {
  const revocations = Revocations.parse('a 100\nb\nc x\nd 1 2\n\u0000 \n', 0)
  assert.equal(revocations.size, 1)
})
