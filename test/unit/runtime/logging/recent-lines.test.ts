import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecentLines } from '../../../../src/runtime/logging/recent-lines.ts'

test('the newest lines are kept whole, in order, as far as there is room', () => {
  const recent = new RecentLines(10)
  assert.equal(recent.text, '')
  for (const line of ['aa\n', 'bb\n', 'cc\n']) recent.write(line)
  assert.equal(recent.text, 'aa\nbb\ncc\n')
  recent.write('dd\n')
  assert.equal(recent.text, 'bb\ncc\ndd\n')
  recent.write('much too long\n')
  assert.equal(recent.text, '')
  recent.write('ee\n')
  assert.equal(recent.text, 'ee\n')
})
