/**
 * A million frames that nobody should send: each decodes to something or is refused with an error of ours, and neither
 * hangs, nor reads past its end, nor takes memory for what was only announced.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import * as classic from '../../../../src/sdk/wire/classic/frame.ts'
import { CODE, type CommandCode, isCommandCode } from '../../../../src/sdk/wire/codes.ts'
import {
  decodeCommand,
  decodeResponse,
  encodeCommand,
  encodeResponse,
  type Request,
} from '../../../../src/sdk/wire/commands/index.ts'
import { detectProtocol } from '../../../../src/sdk/wire/detect.ts'
import type { Dialect } from '../../../../src/sdk/wire/dialect.ts'
import { FrameAssembler } from '../../../../src/sdk/wire/frame-assembler.ts'
import { decodeRecords } from '../../../../src/sdk/wire/messages.ts'
import { decodeUserHeaders } from '../../../../src/sdk/wire/user-headers.ts'
import * as vsr from '../../../../src/sdk/wire/vsr/frame.ts'
import { readOutcome } from '../../../../src/sdk/wire/vsr/reply.ts'
import { Writer } from '../../../../src/sdk/wire/writer.ts'
import { storedBatch } from './support/batches.ts'
import { seededRandom } from './support/random.ts'
import { SAMPLES } from './support/samples.ts'
import { recordedFrames } from './support/transcripts.ts'

const ROUNDS_PER_PAYLOAD = 5_200
const ROUNDS_PER_FRAME = 90
const MOST_BYTES = 4096

const random = seededRandom(Number(process.env.FUZZ_SEED ?? 51))
const buffer = new Uint8Array(MOST_BYTES)
const stackTraceLimit = Error.stackTraceLimit
let count = 0

before(() => {
  Error.stackTraceLimit = 0 // A million stack traces would be most of the time.
})
after(() => {
  Error.stackTraceLimit = stackTraceLimit
})

/** Some bytes changed, cut, or added; sometimes nothing but noise. */
function mutated(bytes: Uint8Array): Uint8Array {
  const length = Math.min(bytes.length, MOST_BYTES - 8)
  buffer.set(bytes.subarray(0, length))
  const kind = random.below(16)
  if (kind === 0) return buffer.subarray(0, random.below(length + 1))
  if (kind === 1) {
    for (let i = 0; i < 8; i++) buffer[length + i] = random.below(256)
    return buffer.subarray(0, length + random.below(8))
  }
  if (kind === 2) for (let i = 0; i < length; i++) buffer[i] = random.below(256)
  for (let i = random.below(4); i >= 0 && length > 0; i--) {
    const edge = [0, 1, 0x7f, 0x80, 0xff][random.below(5)] ?? 0
    buffer[random.below(length)] = random.below(2) === 0 ? edge : random.below(256)
  }
  return buffer.subarray(0, length)
}

/** @returns whether it decoded. Anything but an error of ours, or one that says we are at fault, fails the test. */
function isDecoded(decode: () => unknown): boolean {
  count++
  try {
    decode()
    return true
  } catch (error) {
    if (!(error instanceof EdgeError) || error.code === 'EDGE_INTERNAL') throw error
    return false
  }
}

function eachPayload(visit: (dialect: Dialect, code: CommandCode) => void): void {
  for (const dialect of ['classic', 'vsr'] as const) {
    for (const code of Object.values(CODE)) if (isCommandCode(dialect, code)) visit(dialect, code)
  }
}

test('mutated payloads of every request and response', () => {
  let decoded = 0
  const writer = new Writer()
  eachPayload((dialect, code) => {
    writer.reset()
    encodeCommand(dialect, { code, body: SAMPLES[code].request } as Request, writer)
    const request = writer.toBytes()
    writer.reset()
    encodeResponse(dialect, code, SAMPLES[code].response as never, writer)
    const response = writer.toBytes()
    for (let round = 0; round < ROUNDS_PER_PAYLOAD; round++) {
      if (isDecoded(() => decodeCommand(dialect, code, mutated(request)))) decoded++
      if (isDecoded(() => decodeResponse(dialect, code, mutated(response)))) decoded++
    }
  })
  assert.ok(decoded > 10_000, `${decoded} decoded: the mutations would be too wild to reach anything`)
})

test('mutated frames as recorded, through detection, assembler, heads and bodies', () => {
  for (const { dialect, direction, bytes, code } of recordedFrames()) {
    for (let round = 0; round < ROUNDS_PER_FRAME; round++) {
      const frame = mutated(bytes)
      isDecoded(() => {
        detectProtocol(frame)
        if (dialect === 'classic') readClassic(frame, direction, code ?? 0)
        else readVsr(frame, direction, code ?? 0)
      })
    }
  }
})

function readClassic(frame: Uint8Array, direction: 'request' | 'reply', code: number): void {
  const isRequest = direction === 'request'
  const assembler = new FrameAssembler(isRequest ? classic.classicRequestShape : classic.classicReplyShape)
  assembler.push(frame)
  const found = assembler.next()
  if (found === undefined) return
  if (isRequest) {
    const request = classic.decodeRequestFrame(found)
    decodeCommand('classic', request.code, request.payloadView)
  } else if (isCommandCode('classic', code)) {
    decodeResponse('classic', code, classic.decodeReplyFrame(found).payloadView)
  }
}

function readVsr(frame: Uint8Array, direction: 'request' | 'reply', code: number): void {
  const assembler = new FrameAssembler(vsr.vsrFrameShape)
  assembler.push(frame)
  const found = assembler.next()
  if (found === undefined) return
  if (direction === 'request') {
    const head = vsr.decodeRequestHead(found)
    vsr.checkRequest({ ...head, requestChecksum: 0n }, vsr.bodyOf(found))
    decodeCommand('vsr', head.code, vsr.bodyOf(found))
  } else if (vsr.isEviction(found)) {
    vsr.decodeEviction(found)
  } else {
    const outcome = readOutcome(vsr.decodeReplyHead(found), vsr.bodyOf(found))
    if (outcome.error === 0 && isCommandCode('vsr', code)) decodeResponse('vsr', code, outcome.payloadView)
  }
}

test('mutated records and user headers', () => {
  const batch = storedBatch([
    { payload: random.bytes(20), originUs: 5n, id: 7n, userHeaders: random.bytes(9) },
    { payload: random.bytes(3), originUs: 9n },
  ])
  const headers = Uint8Array.of(2, 1, 0, 0, 0, 107, 11, 4, 0, 0, 0, 1, 2, 3, 4)
  for (let round = 0; round < 100_000; round++) {
    isDecoded(() => decodeRecords({ ...batch, recordsView: mutated(batch.recordsView) }))
    isDecoded(() => decodeUserHeaders(mutated(headers)))
  }
})

test('it was a million', () => {
  assert.ok(count >= 1_000_000, `${count}`)
})
