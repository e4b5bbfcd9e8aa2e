import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_REPLAY_BYTES, MAX_REPLAYS } from '../../../../src/runtime/server/defaults.ts'
import { ReplayTable } from '../../../../src/runtime/server/replay-table.ts'

const head = (requestNumber: bigint, requestChecksum = 0n) => ({
  clientId: 1n,
  requestChecksum,
  requestNumber,
  operation: 128,
  session: 1n,
  code: 202,
  release: 0,
})

test('a number above the largest is new, gaps or not', () => {
  const table = new ReplayTable()
  assert.equal(table.find(head(1n)), undefined)
  table.put(head(1n), Buffer.from('one'))
  assert.equal(table.find(head(11n)), undefined)
})

test('a number that is kept is answered again with the same bytes', () => {
  const table = new ReplayTable()
  const reply = Buffer.from('one')
  table.put(head(1n), reply)
  reply.fill(0)
  table.put(head(2n), Buffer.from('two'))
  assert.deepEqual(table.find(head(1n)), new Uint8Array(Buffer.from('one')))
})

test('another request under a number that was used is not carried out', () => {
  const table = new ReplayTable()
  table.put(head(1n, 7n), Buffer.from('one'))
  assert.equal(table.find(head(1n, 8n)), 'applied')
  assert.deepEqual(table.find(head(1n)), new Uint8Array(Buffer.from('one')))
})

test('what is kept no more, or was too large to keep, counts as applied', () => {
  const table = new ReplayTable()
  for (let number = 1n; number <= BigInt(MAX_REPLAYS) + 1n; number++) table.put(head(number), Buffer.from('x'))
  assert.equal(table.find(head(1n)), 'applied')
  assert.notEqual(table.find(head(2n)), 'applied')
  table.put(head(100n), Buffer.alloc(MAX_REPLAY_BYTES + 1))
  assert.equal(table.find(head(100n)), 'applied')
})
