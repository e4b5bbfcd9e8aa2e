/** Cursors of routes that the configuration has no more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMetadata } from '../../../src/log/metadata/metadata-store.ts'

test('cursors of routes that are not in use hold nothing back, and are there when the route comes back', (context) => {
  const scheduler = { nextTurn: () => {}, after: () => () => {} }
  const store = openMetadata({ path: ':memory:', scheduler, report: () => {}, setAside: () => {} })
  context.after(() => store.close())
  store.setCursor('central', 1, { confirmedOffset: 9n, upstreamOffset: 90n })
  store.setCursor('spare', 1, { confirmedOffset: 3n, upstreamOffset: null })
  const inUse = () => [...store.cursorsOf(1)].map(({ route }) => route)
  assert.deepEqual(inUse(), ['central', 'spare'], 'nobody has said which')
  store.useRoutes(new Set(['central']))
  assert.deepEqual(inUse(), ['central'])
  assert.equal(store.cursor('spare', 1)?.confirmedOffset, 3n)
})
