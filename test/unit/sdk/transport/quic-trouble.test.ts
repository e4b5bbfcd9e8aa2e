import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QuicTrouble } from '../../../../src/sdk/transport/quic-trouble.ts'

const HOUR_US = 3_600_000_000

test('trouble is known in its network for an hour, and not once QUIC got through', () => {
  const trouble = new QuicTrouble()
  trouble.remember('here', 0)
  assert.deepEqual(
    [trouble.isKnown('here', HOUR_US - 1), trouble.isKnown('here', HOUR_US), trouble.isKnown('there', 0)],
    [true, false, false],
  )
  trouble.forget('here')
  assert.equal(trouble.isKnown('here', 1), false)
})

test('only so many places are kept, the newest', () => {
  const trouble = new QuicTrouble()
  for (let place = 0; place < 40; place++) trouble.remember(`place ${place}`, 0)
  const known = Array.from({ length: 40 }, (_, place) => trouble.isKnown(`place ${place}`, 1))
  assert.deepEqual(known.lastIndexOf(false), 7)
})
