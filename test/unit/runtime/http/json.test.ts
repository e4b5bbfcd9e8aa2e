import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson } from '../../../../src/exact-json.ts'
import { exact, stringifyExact, stringifyJson } from '../../../../src/runtime/http/json.ts'

const U64_MAX = 18446744073709551615n
const U128_MAX = 340282366920938463463374607431768211455n

test('whole numbers of up to 39 digits survive reading and writing', () => {
  for (const digits of [
    '0',
    '9007199254740991',
    '9007199254740993',
    String(U64_MAX),
    String(U128_MAX),
    '-9007199254740993',
  ]) {
    const found = parseJson(`{"n":${digits},"list":[${digits}]}`) as { n: number | bigint; list: unknown[] }
    assert.equal(String(found.n), digits)
    assert.deepEqual(found.list, [found.n])
    assert.equal(stringifyJson({ n: exact(BigInt(digits)) }), `{"n":${digits}}`)
    assert.equal(stringifyExact({ deep: [{ n: BigInt(digits) }] }), `{"deep":[{"n":${digits}}]}`)
  }
})
