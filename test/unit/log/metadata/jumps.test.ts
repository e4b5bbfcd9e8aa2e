import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJumps } from '../../../../src/log/metadata/log-tables.ts'

test('of offsets that were left out what can be read counts, and no more than a range holds', () => {
  assert.deepEqual(
    [...parseJumps('7:10-65546/65536,7:70000-70010/4,9:9007199254740993-9007199254740994/1,x,7:5-5/0,8:9-3/6,8:1-3/3')],
    [
      [
        7,
        [
          { from: 10n, end: 65546n },
          { from: 70000n, end: 70010n, missing: 4 },
        ],
      ],
      [9, [{ from: 2n ** 53n + 1n, end: 2n ** 53n + 2n }]],
    ],
  )
  assert.equal(parseJumps(undefined).size, 0)
})
