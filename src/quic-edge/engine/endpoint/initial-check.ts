/**
 * Whether a first packet is sealed as a client seals it. Pure but for opening what is sealed.
 *
 * Everybody can make the keys, so it says nothing of the sender. It keeps noise from costing what a connection costs.
 */
import { clientInitialKeys, PROTECTED_SIZE_MIN, unprotectHeader } from '../crypto/packet-keys.ts'
import { expandPacketNumber, type LongHeader, truncatedPacketNumber } from '../wire/packet-header.ts'

/** @param header of the Initial packet that the datagram begins with. */
export function isSealedInitial(datagramView: Uint8Array, header: LongHeader): boolean {
  const { packetNumberAt, end } = header
  if (end - packetNumberAt < PROTECTED_SIZE_MIN) return false
  // A copy (`slice` of a Buffer would be none): the connection takes the mask off by itself.
  const packet = new Uint8Array(datagramView.subarray(0, end))
  const keys = clientInitialKeys(header.destinationIdView)
  const numberSize = unprotectHeader(keys, packet, 0, packetNumberAt)
  const payloadAt = packetNumberAt + numberSize
  const number = expandPacketNumber(truncatedPacketNumber(packet, packetNumberAt, numberSize), numberSize, -1)
  return keys.open(number, packet.subarray(0, payloadAt), packet.subarray(payloadAt)) !== undefined
}
