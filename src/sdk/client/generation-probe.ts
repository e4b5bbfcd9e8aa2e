/**
 * Tells which generation a server speaks: it is sent a VSR ping. A VSR server answers with a frame that begins with zeros;
 * a classic one reads a frame of length 0 and answers error 3, after which that connection is of no use. Pure.
 */
import { CODE } from '../wire/codes.ts'
import type { Dialect } from '../wire/dialect.ts'
import { VSR_HEAD_BYTES } from '../wire/vsr/frame.ts'
import { writeCommand } from '../wire/vsr/reply.ts'
import { Writer } from '../wire/writer.ts'

const JUDGED_BYTES = 8
/** Of a VSR server: a ping is answered by a head alone. */
export const VSR_ANSWER_BYTES = VSR_HEAD_BYTES

export function probeBytes(clientId: bigint): Uint8Array {
  const writer = new Writer()
  writeCommand(writer, { clientId, session: 0n, requestNumber: 0n }, { code: CODE.ping, body: null })
  return writer.toBytes()
}

/** @returns null while the answer is not whole; undefined when it is neither. */
export function judgeProbe(answerView: Uint8Array): Dialect | null | undefined {
  if (answerView.length < JUDGED_BYTES) return null
  const first = answerView.subarray(0, JUDGED_BYTES)
  if (first.every((byte) => byte === 0)) return answerView.length < VSR_ANSWER_BYTES ? null : 'vsr'
  return first[0] === 3 && first.subarray(1).every((byte) => byte === 0) ? 'classic' : undefined
}
