/** The tag of a Retry packet (RFC 9001 section 5.8): tells accidents and strangers off the path from the server. */
import { createCipheriv, timingSafeEqual } from 'node:crypto'
import { concatBytes } from '../../../byte-concat.ts'

/** Of version 1, known to everyone. */
const RETRY_KEY = Uint8Array.fromHex('be0c690b9f66575a1d766b54e368c84e')
const RETRY_NONCE = Uint8Array.fromHex('461599d35d632bf2239825bb')

/** @param originalId destination id of the Initial that is answered. @param retryView the packet without its tag. */
export function retryIntegrityTag(originalId: Uint8Array, retryView: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-128-gcm', RETRY_KEY, RETRY_NONCE)
  cipher.setAAD(concatBytes([Uint8Array.of(originalId.length), originalId, retryView]))
  cipher.final()
  return cipher.getAuthTag()
}

/** @param packetView a whole Retry packet, tag included: at least that long. */
export function hasRetryIntegrity(originalId: Uint8Array, packetView: Uint8Array): boolean {
  const tagAt = packetView.length - 16
  return timingSafeEqual(retryIntegrityTag(originalId, packetView.subarray(0, tagAt)), packetView.subarray(tagAt))
}
