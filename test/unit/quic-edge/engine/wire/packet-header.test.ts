import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  expandPacketNumber,
  hasFixedBit,
  hasReservedBits,
  isLongHeader,
  keyPhaseOf,
  PACKET_TYPE,
  packetNumberSizeFor,
  patchLength,
  patchPacketNumber,
  readInvariantHeader,
  readLongHeader,
  truncatedPacketNumber,
  VERSION_1,
  writeLongHeader,
  writeRetry,
  writeShortHeader,
  writeVersionNegotiation,
} from '../../../../../src/quic-edge/engine/wire/packet-header.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'
import { SAMPLE_CLIENT_INITIAL } from '../../../../support/quic/sample-packets.ts'

const bytes = (hex: string) => Uint8Array.fromHex(hex)
const destinationId = bytes('0102030405060708')
const sourceId = bytes('a1a2a3')

function initialPacket(payloadSize: number, token = bytes('746f6b656e')): Uint8Array {
  const buffer = new Uint8Array(200)
  const writer = new Writer(buffer)
  const at = writeLongHeader(writer, { type: PACKET_TYPE.initial, destinationId, sourceId, token, packetNumberSize: 2 })
  writer.zeros(payloadSize)
  patchLength(buffer, at, writer.position)
  patchPacketNumber(buffer, at, 0x12345, 2)
  return writer.writtenView
}

test("the client's Initial packet of RFC 9001 reads", () => {
  const header = readLongHeader(bytes(SAMPLE_CLIENT_INITIAL))
  assert.equal(header?.type, PACKET_TYPE.initial)
  assert.equal(header.version, VERSION_1)
  assert.deepEqual(header.destinationIdView, bytes('8394c8f03e515708'))
  assert.equal(header.sourceIdView.length, 0)
  assert.equal(header.tokenView.length, 0)
  assert.equal(header.packetNumberAt, 18)
  assert.equal(header.end, 1200)
})

test('long headers read as they were written, one behind the other', () => {
  const buffer = new Uint8Array(300)
  const first = initialPacket(40)
  buffer.set(first)
  const writer = new Writer(buffer, first.length)
  const fields = { type: PACKET_TYPE.handshake, destinationId, sourceId, packetNumberSize: 4 }
  const at = writeLongHeader(writer, fields)
  writer.zeros(30)
  patchLength(buffer, at, writer.position)
  const datagram = buffer.subarray(0, writer.position)
  const initial = readLongHeader(datagram)
  assert.ok(initial !== undefined)
  assert.deepEqual(initial.tokenView, bytes('746f6b656e'))
  assert.equal(initial.end, first.length)
  assert.equal(truncatedPacketNumber(datagram, initial.packetNumberAt, 2), 0x2345)
  const handshake = readLongHeader(datagram, initial.end)
  assert.ok(handshake !== undefined)
  assert.equal(handshake.type, PACKET_TYPE.handshake)
  assert.equal(handshake.packetNumberAt, at)
  assert.equal(handshake.end, datagram.length)
  assert.deepEqual([handshake.destinationIdView, handshake.sourceIdView], [destinationId, sourceId])
})

test('a long header that is cut short anywhere is none', () => {
  const packet = initialPacket(40)
  for (let size = 0; size < packet.length; size++) assert.equal(readLongHeader(packet.subarray(0, size)), undefined)
  assert.ok(readLongHeader(packet) !== undefined)
})

test('a long header of another version, without the fixed bit or with a long id is none of version 1', () => {
  const altered = (alter: (packet: Uint8Array) => void) => {
    const packet = initialPacket(40)
    alter(packet)
    return packet
  }
  const other = altered((packet) => packet.set([0x6b, 0x33, 0x43, 0xcf], 1))
  assert.equal(readLongHeader(other), undefined)
  assert.equal(readInvariantHeader(other)?.version, 0x6b3343cf)
  assert.equal(readLongHeader(altered((packet) => packet.set([0x83]))), undefined)
  const longId = bytes(`c0 00000001 15 ${'00'.repeat(21)} 00 00 01 00`.replaceAll(' ', ''))
  assert.equal(readLongHeader(longId), undefined)
  assert.equal(readInvariantHeader(longId)?.destinationIdView.length, 21)
})

test('a Retry reads, its tag apart', () => {
  const writer = new Writer(new Uint8Array(100))
  writeRetry(writer, { destinationId, sourceId }, bytes('aabbcc'), 0xff)
  assert.equal(readLongHeader(writer.writtenView), undefined, 'without a tag')
  writer.zeros(16)
  const packet = writer.writtenView
  const header = readLongHeader(packet)
  assert.equal(header?.type, PACKET_TYPE.retry)
  assert.deepEqual(header.tokenView, bytes('aabbcc'))
  assert.equal(header.packetNumberAt, packet.length - 16)
})

test('version negotiation names ids and versions', () => {
  const writer = new Writer(new Uint8Array(100))
  writeVersionNegotiation(writer, { destinationId: sourceId, sourceId: destinationId }, [VERSION_1, 0x1a2a3a4a], 0x05)
  const expected = 'c5 00000000 03 a1a2a3 08 0102030405060708 00000001 1a2a3a4a'.replaceAll(' ', '')
  assert.equal(writer.writtenView.toHex(), expected)
})

test('a short header says key phase and size of its number', () => {
  const writer = new Writer(new Uint8Array(20))
  assert.equal(writeShortHeader(writer, destinationId, 1, 3), 9)
  assert.equal(writer.writtenView.toHex(), '460102030405060708000000')
  assert.equal(keyPhaseOf(0x46), 1)
  assert.equal(keyPhaseOf(0x42), 0)
  assert.ok(!isLongHeader(0x46) && isLongHeader(0xc0))
  assert.ok(hasFixedBit(0x40) && !hasFixedBit(0x80))
  assert.ok(hasReservedBits(0x48) && hasReservedBits(0x50) && !hasReservedBits(0x67))
  assert.ok(hasReservedBits(0xc4) && hasReservedBits(0xc8) && !hasReservedBits(0xf3))
})

test('packet numbers expand as in RFC 9000 appendix A.3, near zero and at the turn of a size', () => {
  assert.equal(expandPacketNumber(0x9b32, 2, 0xa82f30ea), 0xa82f9b32)
  assert.equal(expandPacketNumber(0, 1, -1), 0)
  assert.equal(expandPacketNumber(255, 1, -1), 255)
  assert.equal(expandPacketNumber(0, 1, 255), 256)
  assert.equal(expandPacketNumber(255, 1, 256), 255)
  assert.equal(expandPacketNumber(2, 1, 254), 258)
})

test('a packet number is written in as many bytes as its receiver needs', () => {
  assert.equal(packetNumberSizeFor(0, -1), 1)
  assert.equal(packetNumberSizeFor(126, -1), 1)
  assert.equal(packetNumberSizeFor(127, -1), 2)
  for (const acked of [-1, 0, 70_000, 2 ** 40]) {
    for (const distance of [1, 127, 128, 32_767, 32_768, 2 ** 23 - 1, 2 ** 23, 2 ** 30]) {
      const packetNumber = acked + distance
      const size = packetNumberSizeFor(packetNumber, acked)
      const buffer = new Uint8Array(4)
      patchPacketNumber(buffer, 0, packetNumber, size)
      const truncated = truncatedPacketNumber(buffer, 0, size)
      // Whatever the receiver has seen between what is acknowledged and this one.
      for (const largest of [acked, acked + Math.floor(distance / 2), packetNumber - 1]) {
        assert.equal(expandPacketNumber(truncated, size, largest), packetNumber)
      }
    }
  }
})
