import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { rejectionStatus } from '../../../../src/runtime/http/rejection.ts'
import {
  base64,
  base64AnyPadding,
  entries,
  list,
  object,
  oneOf,
  optional,
  type Shape,
  text,
  u32,
  u64,
} from '../../../../src/runtime/http/shape.ts'
import { MIB } from '../../../../src/setting.ts'

/** @returns the sentence behind the prefix that all of them have. */
function sentenceOf(shape: Shape<unknown>, found: unknown): string {
  try {
    shape(found, '')
  } catch (error) {
    assert.ok(error instanceof EdgeError)
    assert.equal(rejectionStatus(error), 422)
    return error.message.replace('Failed to deserialize the JSON body into the target type: ', '')
  }
  throw new Error(`${JSON.stringify(found)} was taken`)
}

const user = object({ username: text, age: optional(u32), status: optional(oneOf('active', 'inactive')) })

test('an object takes its fields, ignores others, and takes null for absent', () => {
  assert.deepEqual(user({ username: 'ann', age: 3, extra: true }, ''), { username: 'ann', age: 3, status: undefined })
  assert.deepEqual(user({ username: 'ann', age: null }, ''), { username: 'ann', age: undefined, status: undefined })
})

test('a rejection names the field, what was found and what was expected', () => {
  assert.equal(sentenceOf(user, {}), 'missing field `username`')
  assert.equal(sentenceOf(user, { username: 1 }), 'username: invalid type: integer `1`, expected a string')
  assert.equal(sentenceOf(user, { username: null }), 'username: invalid type: null, expected a string')
  assert.equal(sentenceOf(user, []), 'invalid type: sequence, expected a map')
  assert.equal(
    sentenceOf(user, { username: 'a', status: 'Active' }),
    'status: unknown variant `Active`, expected `active` or `inactive`',
  )
  assert.equal(sentenceOf(object({ a: list(u32) }), { a: [1, -1] }), 'a[1]: invalid value: integer `-1`, expected u32')
  assert.equal(
    sentenceOf(object({ m: entries(text) }), { m: { k: true } }),
    'm.k: invalid type: boolean `true`, expected a string',
  )
})

test('inherited names are no fields', () => {
  assert.equal(sentenceOf(object({ constructor: text }), {}), 'missing field `constructor`')
  assert.equal(sentenceOf(object({ toString: text }), JSON.parse('{"__proto__":{}}')), 'missing field `toString`')
})

test('a closed object refuses what it does not know', () => {
  const closed = object({ a: text, b: text }, { isClosed: true })
  assert.equal(sentenceOf(closed, { a: '', b: '', c: 1 }), 'c: unknown field `c`, expected `a` or `b`')
})

test('numbers of 64 bits are exact, and no other numbers are taken for them', () => {
  assert.equal(u64()(18446744073709551615n, ''), 18446744073709551615n)
  assert.equal(u64()(7, ''), 7n)
  for (const found of [-1, 1.5, 18446744073709551616n, '1', true]) sentenceOf(u64(), found)
})

test('base64 is taken in its canonical form with padding only', () => {
  assert.deepEqual([...base64('aGVsbG8=', '')], [...new TextEncoder().encode('hello')])
  assert.deepEqual([...base64('', '')], [])
  for (const found of ['YQ', '_-8=', '***', 'YQ==\n', 'Y===', 'YR==', 'a2W=', 1]) sentenceOf(base64, found)
})

test('base64 of the largest body is taken, and refused where its last character is none', () => {
  const found = Buffer.alloc(48 * MIB, 7).toString('base64')
  assert.equal(base64(found, '').length, 48 * MIB)
  assert.equal(sentenceOf(base64, `${found.slice(0, -1)}*`), 'Invalid base64')
})

test('where no padding is looked at, all else is', () => {
  for (const found of ['YQ', 'YQ=', 'YQ==']) assert.deepEqual([...base64AnyPadding(found, '')], [97], found)
  for (const found of ['a2V5', 'a2U', 'a2U=']) assert.equal(base64AnyPadding(found, '')[0], 107, found)
  for (const found of ['Y', 'YQ===', 'YR', 'a2W', 'a2U==', '_-8', ' YQ', 1]) sentenceOf(base64AnyPadding, found)
})
