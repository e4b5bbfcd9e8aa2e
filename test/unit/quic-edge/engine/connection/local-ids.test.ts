import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOCAL_IDS_MAX, LocalIds } from '../../../../../src/quic-edge/engine/connection/local-ids.ts'
import type { Carried } from '../../../../../src/quic-edge/engine/connection/sent-packets.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'
import { TestHost } from '../../../../support/quic/quic-pair.ts'

const OTHER = new Uint8Array(5)

function createIds(): { ids: LocalIds; host: TestHost } {
  const host = new TestHost()
  let count = 0
  return { ids: new LocalIds(host, (size) => new Uint8Array(size).fill(++count)), host }
}

function write(ids: LocalIds): Carried[] {
  const carried: Carried[] = []
  ids.writeFrames(new Writer(new Uint8Array(1200)), carried)
  return carried
}

test('as many ids are offered as the peer keeps, up to our own bound', () => {
  const { ids, host } = createIds()
  ids.offer(2)
  assert.equal(host.ids.length, 2)
  assert.equal(write(ids).length, 1)
  ids.offer(100)
  assert.equal(host.ids.length, LOCAL_IDS_MAX)
})

test('an id that is retired stops to lead here, and is replaced', () => {
  const { ids, host } = createIds()
  ids.offer(3)
  write(ids)
  for (let sequence = 0; sequence < 1000; sequence++) {
    ids.retire(sequence, OTHER)
    assert.equal(write(ids).length, 1)
  }
  assert.equal(host.ids.length, 3)
  assert.equal(host.ids.includes('0101010101010101'), false)
})

test('an offer that is lost is repeated, unless the id was retired meanwhile', () => {
  const { ids } = createIds()
  ids.offer(2)
  const [offer] = write(ids)
  offer?.lost()
  assert.equal(write(ids).length, 1)
  ids.retire(1, OTHER)
  offer?.lost()
  assert.equal(write(ids).length, 1, 'only the replacement')
})

test('ids that were never given, or that brought the packet, cannot be retired', () => {
  const { ids } = createIds()
  const violation = { code: TRANSPORT_ERROR.protocolViolation }
  assert.throws(() => ids.retire(1, OTHER), violation)
  assert.throws(() => ids.retire(0, ids.firstBytes), violation)
})

test('an id that was not told yet cannot be retired: nobody makes us draw one after the other', () => {
  const { ids } = createIds()
  ids.offer(3)
  write(ids)
  for (const sequence of [0, 1, 2]) ids.retire(sequence, OTHER)
  assert.throws(() => ids.retire(3, OTHER), { code: TRANSPORT_ERROR.protocolViolation })
})

test('when the connection is over, nothing leads to it', () => {
  const { ids, host } = createIds()
  ids.offer(3)
  ids.retireAll()
  assert.deepEqual(host.ids, [])
})
