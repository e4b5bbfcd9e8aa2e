import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Query } from '../../../../src/runtime/http/query.ts'

const sentence = (text: string) => ({ message: `Failed to deserialize query string: ${text}` })

test('values come typed, absent ones as undefined', () => {
  const query = new Query('a=7&b=18446744073709551615&c=true&d=none&d=other&e=%C3%B8')
  assert.equal(query.u32('a'), 7)
  assert.equal(query.u64('b'), 18446744073709551615n)
  assert.equal(query.boolean('c'), true)
  assert.equal(query.oneOf('d', ['none', 'other']), 'none')
  assert.equal(query.text('e'), 'ø')
  assert.equal(query.u32('z'), undefined)
})

test("values of another type are refused with Iggy's sentence", () => {
  const query = new Query('a=abc&b=&c=1&d=-1&e=4294967296&f=18446744073709551616')
  assert.throws(() => query.u32('a'), sentence('a: invalid digit found in string'))
  assert.throws(() => query.u32('b'), sentence('b: cannot parse integer from empty string'))
  assert.throws(() => query.boolean('c'), sentence('c: provided string was not `true` or `false`'))
  assert.throws(() => query.u32('d'), sentence('d: invalid digit found in string'))
  assert.throws(() => query.u32('e'), sentence('e: number too large to fit in target type'))
  assert.throws(() => query.u64('f'), sentence('f: number too large to fit in target type'))
  assert.throws(() => query.requiredU32('z'), sentence('missing field `z`'))
  assert.throws(() => query.oneOf('a', ['x', 'y']), sentence('a: unknown variant `abc`, expected `x` or `y`'))
})
