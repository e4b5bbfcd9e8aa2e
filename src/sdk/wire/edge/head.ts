/**
 * Framing: each frame stands in a byte string of definite length, so that its size is known from at most three bytes,
 * before anything is kept or parsed.
 *
 *   40..57         length 0..23
 *   58 nn          length 24..255
 *   59 nn nn       length 256..65535, big-endian; only the shortest form is taken
 */
import { frameFault } from './error-codes.ts'

export const MAX_HEAD_BYTES = 3
const MAX_BODY_BYTES = 0xffff

export interface FrameHead {
  readonly headBytes: number
  readonly bodyBytes: number
}

/**
 * @param maxFrameBytes of head and body together.
 * @returns undefined while the head is not complete.
 * @throws `framing` for any other first byte or a longer form than needed, `frame-too-large`.
 */
export function readHead(bytesView: Uint8Array, at: number, maxFrameBytes: number): FrameHead | undefined {
  const first = bytesView[at]
  if (first === undefined) return undefined
  const head = shortHead(first) ?? longHead(bytesView, at, first)
  if (head !== undefined && head.headBytes + head.bodyBytes > maxFrameBytes) {
    throw frameFault('frame-too-large', `frame of ${head.headBytes + head.bodyBytes} bytes, at most ${maxFrameBytes}`)
  }
  return head
}

/** @throws `frame-too-large` for a body that no head can name. */
export function encodeHead(bodyBytes: number): Uint8Array {
  if (bodyBytes > MAX_BODY_BYTES) {
    throw frameFault('frame-too-large', `frame: expected at most ${MAX_BODY_BYTES} bytes, found ${bodyBytes}`)
  }
  if (bodyBytes < 24) return Uint8Array.of(0x40 | bodyBytes)
  if (bodyBytes < 256) return Uint8Array.of(0x58, bodyBytes)
  return Uint8Array.of(0x59, bodyBytes >> 8, bodyBytes & 0xff)
}

function shortHead(first: number): FrameHead | undefined {
  return first >= 0x40 && first < 0x58 ? { headBytes: 1, bodyBytes: first - 0x40 } : undefined
}

function longHead(bytesView: Uint8Array, at: number, first: number): FrameHead | undefined {
  if (first !== 0x58 && first !== 0x59) {
    throw frameFault('framing', `byte 0x${first.toString(16).padStart(2, '0')} does not begin a frame`)
  }
  const [high, low] = [bytesView[at + 1], bytesView[at + 2]]
  if (high === undefined) return undefined
  if (first === 0x58) return shortest({ headBytes: 2, bodyBytes: high }, 24)
  return low === undefined ? undefined : shortest({ headBytes: 3, bodyBytes: high * 256 + low }, 256)
}

function shortest(head: FrameHead, leastBytes: number): FrameHead {
  if (head.bodyBytes < leastBytes) throw frameFault('framing', 'frame length not in its shortest form')
  return head
}
