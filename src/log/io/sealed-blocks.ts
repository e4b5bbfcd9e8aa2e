/** Bodies of segment blocks as they are stored: sealed in a file that has a cipher, as they are in a plain one. */

import { type ByteArea, createArea } from '../core/byte-area.ts'
import { authenticatedOfBlock, blockNonce, NONCE_SIZE, SEALED_BLOCK_OVERHEAD } from '../core/sealed-body.ts'
import { BLOCK_HEADER_SIZE, type BlockHeader, encodeBlockHeader } from '../core/segment-format.ts'
import type { FileCipher } from './store-keys.ts'

/** All of a block's header that is authenticated: what follows from the stored bytes is not yet known. */
export type SealedHeader = Omit<BlockHeader, 'storedSize' | 'bodyCrc'>

/** @returns what is stored for the body: itself in a plain file. */
export function sealBlockBody(
  cipher: FileCipher | undefined,
  header: SealedHeader,
  bodyBytes: Uint8Array,
  randomU32: () => number,
): Uint8Array {
  if (cipher === undefined) return bodyBytes
  const stored = new Uint8Array(bodyBytes.length + SEALED_BLOCK_OVERHEAD)
  const nonce = blockNonce(header.position, randomU32)
  stored.set(nonce)
  cipher.seal(nonce, authenticatedOfBlock(headerArea(header), 0), bodyBytes, stored.subarray(NONCE_SIZE))
  return stored
}

/** @param storedBytes whose CRC fits. @throws EDGE_DECRYPT_FAILED. */
export function openBlockBody(
  cipher: FileCipher | undefined,
  header: SealedHeader,
  storedBytes: Uint8Array,
): Uint8Array {
  if (cipher === undefined) return storedBytes
  const [nonce, sealed] = [storedBytes.subarray(0, NONCE_SIZE), storedBytes.subarray(NONCE_SIZE)]
  return cipher.open(nonce, authenticatedOfBlock(headerArea(header), 0), sealed)
}

function headerArea(header: SealedHeader): ByteArea {
  const area = createArea(BLOCK_HEADER_SIZE)
  encodeBlockHeader(area, 0, { ...header, storedSize: 0, bodyCrc: 0 }, 0)
  return area
}
