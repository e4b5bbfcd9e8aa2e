/**
 * What encryption at rest adds to the formats of journal and segments: AES-256-GCM over the body of each journal group and
 * of each segment block, and nothing per message. Pure; the cipher itself is `io/store-keys.ts`.
 *
 * - The key of a file comes from the store's key and the first 60 bytes of the file's header (its salt, seed, run and all
 *   else that its CRC covers), so no two files share one, and a header that was tampered with opens nothing.
 * - A group's nonce is its session's salt and its number in the session; a block's is random and its position, and stands
 *   before it. A session never gives a number twice, and what is written again gets a new session.
 * - Authenticated with a body are the bytes of its header from 16 on. Lengths and CRC before them follow from the body.
 * - CRCs are sums over what is stored, so damage is told from a wrong key, and found without one.
 *
 *   group: header (96) | ciphertext | tag (16)        block: header (80) | nonce (12) | ciphertext | tag (16)
 */
import { areaOf, type ByteArea } from './byte-area.ts'
import { GROUP_HEADER_SIZE, type GroupHeader } from './journal-format.ts'
import { BLOCK_HEADER_SIZE } from './segment-format.ts'

export const TAG_SIZE = 16
export const NONCE_SIZE = 12
/** What a sealed block takes more than a plain one. */
export const SEALED_BLOCK_OVERHEAD = NONCE_SIZE + TAG_SIZE
/** Bytes of a file's header that its key comes from: all that the header's own CRC covers. */
export const KEY_CONTEXT_SIZE = 60
const AUTHENTICATED_FROM = 16
const U32_RANGE = 0x1_0000_0000

/** @param group anything that tells its session and its place in it. */
export function groupNonce(group: Pick<GroupHeader, 'sessionSalt' | 'sequence' | 'sessionFirst'>): Uint8Array {
  const { bytes, view } = areaOf(new Uint8Array(NONCE_SIZE))
  view.setBigUint64(0, group.sessionSalt, true)
  // It may wrap: a file, and with it a key, holds some thousand groups in a row.
  view.setUint32(8, (group.sequence - group.sessionFirst) % U32_RANGE, true)
  return bytes
}

/** @param randomU32 called twice. */
export function blockNonce(position: number, randomU32: () => number): Uint8Array {
  const { bytes, view } = areaOf(new Uint8Array(NONCE_SIZE))
  view.setUint32(0, randomU32(), true)
  view.setUint32(4, randomU32(), true)
  view.setUint32(8, position, true)
  return bytes
}

/** The part of the group header at `at` that is authenticated with the body; a view. */
export const authenticatedOfGroup = ({ bytes }: ByteArea, at: number): Uint8Array =>
  bytes.subarray(at + AUTHENTICATED_FROM, at + GROUP_HEADER_SIZE)

/** The same of a block. */
export const authenticatedOfBlock = ({ bytes }: ByteArea, at: number): Uint8Array =>
  bytes.subarray(at + AUTHENTICATED_FROM, at + BLOCK_HEADER_SIZE)
