import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partScript } from '../../../../src/runtime/executable/program-parts.ts'

test('the names in the executable are listed once, however many parts there are', (context) => {
  const getAssetKeys = context.mock.fn(() => ['program/a.js', 'program/b.js'])
  const getRawAsset = (name: string) => new TextEncoder().encode(`'${name}'`).buffer
  context.mock.method(process, 'getBuiltinModule', () => ({ getAssetKeys, getRawAsset }))
  const results = ['a.js', 'b.js'].map((part) => partScript(part).runInThisContext())
  assert.deepEqual(results, ['program/a.js', 'program/b.js'])
  assert.equal(getAssetKeys.mock.callCount(), 1)
})
