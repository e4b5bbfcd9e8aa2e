import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isNameValid } from '../../../../src/log/catalog/name.ts'

test('a name of 1 to 255 bytes is taken, whatever its characters', () => {
  for (const name of ['a', 'é', '../..', 'a/b', ' ', '\u0000', 'x'.repeat(255), 'é'.repeat(127), '😀'.repeat(63)]) {
    assert.equal(isNameValid(name), true, JSON.stringify(name))
  }
})

test('the limit counts bytes of UTF-8, not characters', () => {
  for (const name of ['', 'x'.repeat(256), 'é'.repeat(128), '漢'.repeat(86), '😀'.repeat(64)]) {
    assert.equal(isNameValid(name), false, `${Buffer.byteLength(name)} bytes`)
  }
})

test('half of a surrogate pair is no text', () => {
  assert.equal(isNameValid('a\ud800b'), false)
  assert.equal(isNameValid('\udc00'), false)
})

test('the length agrees with the encoder for every width of character', () => {
  for (const character of ['\u007f', '\u0080', '\u07ff', '\u0800', '\uffff', '\u{10000}', '\u{10ffff}']) {
    const fits = Math.floor(255 / Buffer.byteLength(character))
    assert.equal(isNameValid(character.repeat(fits)), true)
    assert.equal(isNameValid(character.repeat(fits + 1)), false)
  }
})
