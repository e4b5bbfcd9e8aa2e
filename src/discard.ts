/** Node's small buffers share one, which must stay. */
const LEAST_DISCARDED_SIZE = 32 * 1024

/**
 * Gives the memory of a large buffer back at once; nobody may use it any more. The collector counts memory outside its heap
 * until it has run itself: one such buffer after the other kept it at work for longer than what they were made for.
 */
export function discard(bytes: Uint8Array): void {
  const { buffer } = bytes
  if (bytes.length >= LEAST_DISCARDED_SIZE && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
