/** Packets that an endpoint answers with before there is a connection, or after it is gone. They keep no state. */
import { initialKeys, protectHeader, TAG_SIZE } from '../crypto/packet-keys.ts'
import { retryIntegrityTag } from '../crypto/retry-integrity.ts'
import { FRAME } from '../wire/frame-type.ts'
import {
  type InvariantHeader,
  PACKET_TYPE,
  patchLength,
  RETRY_TAG_SIZE,
  VERSION_1,
  writeLongHeader,
  writeRetry,
  writeVersionNegotiation,
} from '../wire/packet-header.ts'
import { STATELESS_RESET_SIZE_MIN, STATELESS_RESET_TOKEN_SIZE } from '../wire/transport-parameters.ts'
import { Writer } from '../wire/writer.ts'

/** Two ids of 255 bytes and what stands around them. */
const NEGOTIATION_SIZE_MAX = 600
/** One of the versions reserved to be unknown (RFC 9000 section 15): clients must not choke on what they do not know. */
const GREASE_VERSION = 0x0a1a_2a3a
const PACKET_NUMBER_SIZE = 2
/** As large as a small packet, no larger: nothing is gained by more. */
const RESET_SIZE_MAX = 43

export function versionNegotiation(header: InvariantHeader, randomByte: number): Uint8Array {
  const writer = new Writer(new Uint8Array(NEGOTIATION_SIZE_MAX))
  const ids = { destinationId: header.sourceIdView, sourceId: header.destinationIdView }
  writeVersionNegotiation(writer, ids, [VERSION_1, GREASE_VERSION], randomByte)
  return writer.writtenView
}

/** @param retryId the id that the client's next Initial shall go to. */
export function retryPacket(
  header: InvariantHeader,
  retry: { readonly retryId: Uint8Array; readonly token: Uint8Array; readonly randomByte: number },
): Uint8Array {
  const size = 7 + header.sourceIdView.length + retry.retryId.length + retry.token.length + RETRY_TAG_SIZE
  const writer = new Writer(new Uint8Array(size))
  const ids = { destinationId: header.sourceIdView, sourceId: retry.retryId }
  writeRetry(writer, ids, retry.token, retry.randomByte)
  writer.bytes(retryIntegrityTag(header.destinationIdView, writer.writtenView))
  return writer.writtenView
}

/** Tells a client at once that it is not taken: an Initial packet with a CONNECTION_CLOSE. */
export function refusalPacket(header: InvariantHeader, code: number): Uint8Array {
  const datagram = new Uint8Array(128)
  const writer = new Writer(datagram)
  const packetNumberAt = writeLongHeader(writer, {
    type: PACKET_TYPE.initial,
    destinationId: header.sourceIdView,
    sourceId: header.destinationIdView,
    packetNumberSize: PACKET_NUMBER_SIZE,
  })
  const plainAt = writer.position
  writer.u8(FRAME.connectionClose)
  writer.varint(code)
  writer.varint(0) // caused by no frame
  writer.varint(0) // without a reason
  const plainEnd = writer.position
  const end = plainEnd + TAG_SIZE
  patchLength(datagram, packetNumberAt, end)
  const keys = initialKeys(header.destinationIdView).server
  keys.seal(0, datagram.subarray(0, plainAt), datagram.subarray(plainAt, plainEnd), datagram, plainAt)
  protectHeader(keys, datagram, 0, packetNumberAt, PACKET_NUMBER_SIZE)
  return datagram.subarray(0, end)
}

/**
 * Tells a peer that its connection is gone (RFC 9000 section 10.3): looks like any packet, and ends in the token of the id.
 *
 * @param receivedSize of what it answers; it is smaller, so that two endpoints cannot go on answering each other.
 * @returns undefined where that leaves no room.
 */
export function statelessReset(
  token: Uint8Array,
  receivedSize: number,
  random: (size: number) => Uint8Array,
): Uint8Array | undefined {
  const size = Math.min(receivedSize - 1, RESET_SIZE_MAX)
  if (size < STATELESS_RESET_SIZE_MIN) return undefined
  const packet = new Uint8Array(random(size))
  packet[0] = ((packet[0] ?? 0) & 0x3f) | 0x40
  packet.set(token, size - STATELESS_RESET_TOKEN_SIZE)
  return packet
}
