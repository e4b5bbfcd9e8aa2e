/**
 * Decodes a recorded frame and encodes what came out of it. Equal bytes mean that the decoder lost nothing and that the
 * encoder writes what real clients and servers write.
 */
import * as classic from '../../../../../src/sdk/wire/classic/frame.ts'
import { type CommandCode, hasResultSection, isCommandCode } from '../../../../../src/sdk/wire/codes.ts'
import {
  decodeCommand,
  decodeResponse,
  encodeCommand,
  encodeResponse,
} from '../../../../../src/sdk/wire/commands/index.ts'
import type { PollMessagesResponse } from '../../../../../src/sdk/wire/commands/messages.ts'
import { decodeRecords, encodeRecords } from '../../../../../src/sdk/wire/messages.ts'
import * as vsr from '../../../../../src/sdk/wire/vsr/frame.ts'
import { readOutcome } from '../../../../../src/sdk/wire/vsr/reply.ts'
import { Writer } from '../../../../../src/sdk/wire/writer.ts'
import type { RecordedFrame } from './transcripts.ts'

export function rewritten(frame: RecordedFrame): Uint8Array {
  if (frame.dialect === 'classic') {
    return frame.direction === 'request' ? classicRequest(frame.bytes) : classicReply(frame.bytes, frame.code)
  }
  if (frame.direction === 'request') return vsrRequest(frame.bytes)
  return vsr.isEviction(frame.bytes) ? eviction(frame.bytes) : vsrReply(frame.bytes, frame.code)
}

function classicRequest(bytes: Uint8Array): Uint8Array {
  const { code, payloadView } = classic.decodeRequestFrame(bytes)
  const writer = new Writer()
  classic.writeRequestFrame(writer, decodeCommand('classic', code, payloadView))
  return writer.toBytes()
}

function classicReply(bytes: Uint8Array, code: number | undefined): Uint8Array {
  const { status, payloadView } = classic.decodeReplyFrame(bytes)
  const writer = new Writer()
  if (status !== 0) classic.writeStatusFrame(writer, status)
  else {
    const known = knownCode('classic', code)
    classic.writeReplyFrame(writer, known, decodeResponse('classic', known, payloadView))
  }
  return writer.toBytes()
}

function vsrRequest(bytes: Uint8Array): Uint8Array {
  const head = vsr.decodeRequestHead(bytes)
  vsr.checkRequest(head, vsr.bodyOf(bytes))
  const request = decodeCommand('vsr', head.code, vsr.bodyOf(bytes))
  const writer = new Writer()
  vsr.writeRequest(writer, head, (body) => encodeCommand('vsr', request, body))
  return writer.toBytes()
}

function vsrReply(bytes: Uint8Array, code: number | undefined): Uint8Array {
  const head = vsr.decodeReplyHead(bytes)
  const bodyView = vsr.bodyOf(bytes)
  const { error, payloadView } = readOutcome(head, bodyView)
  const writer = new Writer()
  vsr.writeReply(writer, head, (body) => {
    if (head.status !== 0) return
    if (hasResultSection(head.operation)) body.u32(error === 0 ? 0 : 1)
    if (error !== 0) {
      body.u32(0)
      body.u32(error)
      return
    }
    const known = knownCode('vsr', code)
    const isPoll = known === 100 || known === 104
    const response = isPoll
      ? withWholeBatches(decodeResponse('vsr', 100, payloadView), payloadView)
      : decodeResponse('vsr', known, payloadView)
    encodeResponse('vsr', known, response, body)
  })
  return writer.toBytes()
}

function eviction(bytes: Uint8Array): Uint8Array {
  const writer = new Writer()
  vsr.writeEviction(writer, vsr.decodeEviction(bytes))
  return writer.toBytes()
}

function knownCode(dialect: 'classic' | 'vsr', code: number | undefined): CommandCode {
  if (code === undefined || !isCommandCode(dialect, code)) throw new Error(`a reply to code ${code}`)
  return code
}

/**
 * A slice of a stored batch has lost the messages before it; the server that sent it had them. Puts messages of the
 * batch's origin time in their place, so that the slice is taken of a whole batch again.
 */
function withWholeBatches(response: PollMessagesResponse, bodyView: Uint8Array): PollMessagesResponse {
  const view = new DataView(bodyView.buffer, bodyView.byteOffset, bodyView.length)
  let at = 16
  const batches = response.batches.map((batch) => {
    const originUs = view.getBigUint64(at + 24, true)
    const skip = view.getUint32(at + 256 + 24, true)
    at += Number(view.getBigUint64(at + 32, true))
    const messages = decodeRecords(batch).map((message) => ({
      payload: message.payloadView,
      userHeaders: message.userHeadersView,
      id: message.id,
      originUs: message.originUs,
    }))
    const lost = Array.from({ length: skip }, () => ({ payload: new Uint8Array(0), originUs }))
    const whole = encodeRecords([...lost, ...messages])
    return { ...batch, ...whole, baseOffset: batch.baseOffset - BigInt(skip), skip }
  })
  return { ...response, batches }
}
