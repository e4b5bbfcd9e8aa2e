import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headerValueOf, stringHeader } from '../../../../src/sdk/wire/header-values.ts'
import { decodeUserHeaders, encodeUserHeaders } from '../../../../src/sdk/wire/user-headers.ts'
import { withOrigin } from '../../../../src/sync/core/origin-header.ts'

const DEVICE = encodeUserHeaders([{ key: stringHeader('device'), value: stringHeader('d') }])
const ORIGIN = { key: stringHeader('edge-origin-us'), value: headerValueOf('uint64', 5n) }

test('a record gets its time of origin behind its own headers', () => {
  const [device, origin, ...more] = decodeUserHeaders(withOrigin(DEVICE, 5n))
  assert.deepEqual([device?.key, origin, more], [stringHeader('device'), ORIGIN, []])
})

test('over a second edge it keeps the time that the first one gave it', () => {
  const first = withOrigin(DEVICE, 5n)
  assert.deepEqual(withOrigin(first, 9n), first)
})

test('headers that nobody can read, or that have no room for more, stay whole', () => {
  const unreadable = Uint8Array.of(99, 1, 2)
  assert.deepEqual(withOrigin(unreadable, 5n).subarray(0, 3), unreadable)
  const full = new Uint8Array(99_990)
  assert.equal(withOrigin(full, 5n), full)
})
