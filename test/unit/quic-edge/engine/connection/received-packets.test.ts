import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  RECEIVED_RANGES_MAX,
  ReceivedPackets,
} from '../../../../../src/quic-edge/engine/connection/received-packets.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'

const writer = () => new Writer(new Uint8Array(200))

test('one packet may wait for a second, which is acknowledged at once', () => {
  const received = new ReceivedPackets(25)
  received.add(0, true, 100)
  assert.equal(received.ackDueMs, 125)
  assert.equal(received.isAckWanted(100, false), false)
  assert.equal(received.isAckWanted(100, true), true, 'with other frames it goes along')
  received.add(1, true, 101)
  assert.equal(received.ackDueMs, 101)
  received.writeAck(writer(), 101)
  assert.equal(received.ackDueMs, Number.POSITIVE_INFINITY)
})

test('a packet out of order is acknowledged at once, and every handshake packet', () => {
  const received = new ReceivedPackets(25)
  received.add(3, true, 100)
  assert.equal(received.ackDueMs, 100)
  const early = new ReceivedPackets(0)
  early.add(0, true, 7)
  assert.equal(early.ackDueMs, 7)
})

test('packets that ask for nothing are told of only along the way', () => {
  const received = new ReceivedPackets(25)
  received.add(0, false, 100)
  received.add(1, false, 100)
  assert.equal(received.ackDueMs, Number.POSITIVE_INFINITY)
  assert.equal(received.isAckWanted(1000, true), false)
})

test('numbers are known once they came, and below the floor', () => {
  const received = new ReceivedPackets(25)
  assert.equal(received.isKnown(0), false)
  assert.equal(received.add(5, true, 1), true)
  assert.equal(received.add(2, true, 1), false)
  assert.ok(received.isKnown(5) && received.isKnown(2) && !received.isKnown(3))
  const ack = received.writeAck(writer(), 2)
  ack?.acknowledged()
  assert.ok(received.isKnown(3), 'the peer was told of 5: whatever is below comes too late')
  assert.ok(received.isKnown(5) && !received.isKnown(6))
})

test('a peer that leaves a gap after every packet is remembered by so many ranges', () => {
  const received = new ReceivedPackets(25)
  for (let number = 0; number < 1000; number += 2) received.add(number, true, 1)
  assert.equal(received.rangeCount, RECEIVED_RANGES_MAX)
  assert.ok(received.isKnown(1), 'what fell out counts as known')
  assert.ok(received.isKnown(998) && !received.isKnown(997))
})
