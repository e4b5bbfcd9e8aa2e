/**
 * Frames of the classic dialect, little-endian. Strictly one reply to one request, in order.
 *
 *   request:  [length:4][code:4][payload]      length = 4 + payload
 *   reply:    [status:4][length:4][payload]    status 0 = ok, else an error number and no payload
 */
import { assert } from '../../../assert.ts'
import { EdgeError } from '../../../errors.ts'
import { CODE, type CommandCode } from '../codes.ts'
import { encodeCommand, encodeResponse, type Request, type ResponseBody } from '../commands/index.ts'
import { type PollMessagesResponse, pollHead } from '../commands/messages.ts'
import type { FrameShape } from '../frame-assembler.ts'
import { CLASSIC_HEADER_BYTES } from '../kernel/js-kernel.ts'
import { sharedKernel } from '../kernel/shared-kernel.ts'
import { u32At } from '../reader.ts'
import { MAX_WRITER_BYTES, type Writer } from '../writer.ts'
import { partsOfPoll, writePolledMessages } from './message.ts'

export const CLASSIC_HEAD_BYTES = 8
/** Partition, current offset and count. */
const POLL_HEAD_BYTES = 16
/** Iggy answers 3 above this and loses its place; we close instead. Sends are bound by `MAX_CLASSIC_FRAME_BYTES`. */
export const MAX_CLASSIC_PAYLOAD_BYTES = 10 * 1024 * 1024
export const MAX_CLASSIC_FRAME_BYTES = 64 * 1024 * 1024

export interface ClassicRequestFrame {
  readonly code: number
  /** Aliases the frame. */
  readonly payloadView: Uint8Array
}

export interface ClassicReplyFrame {
  /** 0 = ok, else an Iggy error number. */
  readonly status: number
  /** Aliases the frame. */
  readonly payloadView: Uint8Array
}

/** A length below 4 is a frame of 8 bytes that `decodeRequestFrame` refuses: the connection stays. */
export const classicRequestShape: FrameShape = {
  headBytes: CLASSIC_HEAD_BYTES,
  sizeOf(bytes, at) {
    const length = u32At(bytes, at)
    if (length < 4) return CLASSIC_HEAD_BYTES
    const code = u32At(bytes, at + 4)
    const most = code === CODE.sendMessages ? MAX_CLASSIC_FRAME_BYTES : MAX_CLASSIC_PAYLOAD_BYTES + 4
    if (length > most) throw tooLarge(`command ${code}`, most, length)
    return 4 + length
  },
}

/** A stream that carries one request, as over QUIC: nothing comes behind a length that cannot be. */
export const classicStreamShape: FrameShape = {
  headBytes: CLASSIC_HEAD_BYTES,
  sizeOf(bytes, at) {
    const length = u32At(bytes, at)
    if (length < 4)
      throw new EdgeError('EDGE_FRAME_INVALID', `request: expected a length of at least 4, found ${length}`)
    return classicRequestShape.sizeOf(bytes, at)
  },
}

export const classicReplyShape: FrameShape = {
  headBytes: CLASSIC_HEAD_BYTES,
  sizeOf(bytes, at) {
    const length = u32At(bytes, at + 4)
    if (length > MAX_CLASSIC_FRAME_BYTES) throw tooLarge('reply', MAX_CLASSIC_FRAME_BYTES, length)
    return CLASSIC_HEAD_BYTES + length
  },
}

/** @throws EDGE_COMMAND_MALFORMED for a length below 4: answer 3 and go on. */
export function decodeRequestFrame(frameView: Uint8Array): ClassicRequestFrame {
  const length = u32At(frameView, 0)
  if (length < 4) {
    throw new EdgeError('EDGE_COMMAND_MALFORMED', `classic frame: expected a length of at least 4, found ${length}`)
  }
  return { code: u32At(frameView, 4), payloadView: frameView.subarray(CLASSIC_HEAD_BYTES) }
}

export function decodeReplyFrame(frameView: Uint8Array): ClassicReplyFrame {
  return { status: u32At(frameView, 0), payloadView: frameView.subarray(CLASSIC_HEAD_BYTES) }
}

/** Appends a whole request frame; on a throw the writer is as before. */
export function writeRequestFrame(writer: Writer, request: Request): void {
  const at = writer.length
  try {
    writer.u32(0)
    writer.u32(request.code)
    encodeCommand('classic', request, writer)
    writer.patchU32(at, writer.length - at - 4)
  } catch (error) {
    writer.truncate(at)
    throw error
  }
}

/** Appends a whole reply frame; on a throw the writer is as before, so that an error can be answered instead. */
export function writeReplyFrame<C extends CommandCode>(writer: Writer, code: C, body: ResponseBody<C>): void {
  const at = writer.length
  try {
    writer.u32(0)
    writer.u32(0)
    encodeResponse('classic', code, body, writer)
    const length = writer.length - at - CLASSIC_HEAD_BYTES
    // SDKs take a length of 1 for empty and leave the byte in the stream.
    assert(length !== 1, `classic reply to command ${code} is never of one byte`)
    writer.patchU32(at + 4, length)
  } catch (error) {
    writer.truncate(at)
    throw error
  }
}

/** Of a poll's reply a part: large enough to be worth a write of its own, small enough to be under way soon. */
const POLL_PART_BYTES = 160 * 1024

/**
 * As `writeReplyFrame` of a poll; a large one is written part by part, so that the peer reads the first one while the next
 * is made. On a throw the writer is as before, and nothing has left.
 *
 * @param leave lets go what was written so far: more of the same reply follows.
 */
export function writePollReplyFrame(writer: Writer, body: PollMessagesResponse, leave: () => void): void {
  if (roughSizeOf(body) <= POLL_PART_BYTES) {
    writeReplyFrame(writer, CODE.pollMessages, body)
    return
  }
  const kernel = sharedKernel()
  const { sizeBytes, parts } = partsOfPoll(body.batches, POLL_PART_BYTES, kernel)
  if (POLL_HEAD_BYTES + sizeBytes > MAX_WRITER_BYTES) throw tooLarge('reply', MAX_WRITER_BYTES, sizeBytes)
  writer.u32(0)
  writer.u32(POLL_HEAD_BYTES + sizeBytes)
  pollHead.write(writer, body, 'classic')
  for (const [number, batches] of parts.entries()) {
    if (number > 0) leave()
    writePolledMessages(writer, batches, kernel)
  }
}

/** Of a batch that is read in part, the same part of its size. */
function roughSizeOf({ batches, messageCount }: PollMessagesResponse): number {
  const records = batches.reduce((sum, { recordsView, take, count }) => sum + (recordsView.length * take) / count, 0)
  return records + messageCount * CLASSIC_HEADER_BYTES
}

/** Appends a reply without payload: `status` 0, or an Iggy error number. */
export function writeStatusFrame(writer: Writer, status: number): void {
  writer.u32(status)
  writer.u32(0)
}

function tooLarge(what: string, expected: number, found: number): EdgeError {
  const message = `classic ${what}: expected a length of at most ${expected}, found ${found}`
  return new EdgeError('EDGE_FRAME_TOO_LARGE', message, { details: { sizeBytes: found } })
}
