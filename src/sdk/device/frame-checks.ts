/** What a device looks for in a frame before it counts on it: one that no edge takes would keep its lane waiting. Pure. */
import { EdgeError, messageOf } from '../../errors.ts'
import { decodeFrame, MAX_FRAME_BYTES, readHead } from '../wire/edge/index.ts'

/** It would wait for ever, and all of its lane behind it. */
export function refuseLarger(what: 'bytes' | 'readings', found: number, most: number): void {
  if (found <= most) return
  throw new EdgeError('EDGE_FRAME_TOO_LARGE', `frame: expected at most ${most} ${what}, found ${found}`)
}

/** An edge refuses such a frame as a whole, without its numbers: these would be asked for again, and hold the lane for ever. */
export function refuseUnreadable(frameBytes: Uint8Array): void {
  const headBytes = readHead(frameBytes, 0, MAX_FRAME_BYTES)?.headBytes ?? 0
  try {
    decodeFrame(frameBytes.subarray(headBytes))
  } catch (cause) {
    throw new EdgeError('EDGE_READING_INVALID', messageOf(cause), { cause })
  }
}
