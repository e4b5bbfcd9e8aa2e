import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseIdentifier } from '../../../../src/runtime/http/path-values.ts'

test('text that is a u32 is an id, everything else a name', () => {
  for (const [text, id] of [
    ['0', 0],
    ['+0', 0],
    ['00', 0],
    ['4294967295', 4294967295],
    ['4294967296', '4294967296'],
    ['-1', '-1'],
    ['1a', '1a'],
    ['me', 'me'],
  ] as const)
    assert.equal(parseIdentifier(text), id)
})

test('names have 1 to 255 bytes, not characters', () => {
  assert.equal(parseIdentifier('y'.repeat(255)).toString().length, 255)
  for (const text of ['', 'y'.repeat(256), 'ø'.repeat(128)])
    assert.throws(() => parseIdentifier(text), { code: 'EDGE_IDENTIFIER_INVALID' })
})
