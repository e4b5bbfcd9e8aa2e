import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson } from '../../src/exact-json.ts'

test('a number is a bigint only where a double would lose digits', () => {
  assert.deepEqual(parseJson('[9007199254740991,9007199254740992,1234567890123456.5,1e300,"18446744073709551615"]'), [
    9007199254740991,
    9007199254740992n,
    1234567890123456.5,
    1e300,
    '18446744073709551615',
  ])
})

test('text that is no JSON is refused on both paths', () => {
  for (const text of ['', '{', '{"a":1} x', '{a:1}', '[18446744073709551615', '\u0000'])
    assert.throws(() => parseJson(text), SyntaxError)
})

test('a key of __proto__ stays a plain field', () => {
  const found = parseJson('{"__proto__":{"polluted":1},"n":18446744073709551615}') as Record<string, unknown>
  assert.equal(({} as Record<string, unknown>).polluted, undefined)
  assert.deepEqual(Object.keys(found), ['__proto__', 'n'])
})
