/** Every frame that real clients and servers exchanged decodes, and encodes to the bytes that were recorded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { classicReplyShape, classicRequestShape } from '../../../../src/sdk/wire/classic/frame.ts'
import { FrameAssembler, type FrameShape } from '../../../../src/sdk/wire/frame-assembler.ts'
import { vsrFrameShape } from '../../../../src/sdk/wire/vsr/frame.ts'
import { seededRandom } from './support/random.ts'
import { rewritten } from './support/rewrite.ts'
import { type RecordedFrame, recordedFrames } from './support/transcripts.ts'

const frames = recordedFrames()
const whole = frames.filter((frame) => !frame.isCut && !isShortenedSnapshot(frame))

/** A snapshot reply whose ZIP file was shortened for the recording, not its head. */
function isShortenedSnapshot({ dialect, direction, code, bytes }: RecordedFrame): boolean {
  const isSnapshot = dialect === 'vsr' && direction === 'reply' && code === 11
  return isSnapshot && new DataView(bytes.buffer).getUint32(48, true) !== bytes.length
}

/** What clients sent that the protocol does not allow: on purpose, or by a bug of theirs. */
const DEVIATIONS = [
  { code: 33, error: null, why: 'one byte after the permissions (Go 0.7.0): read over' },
  { code: 202, error: 'EDGE_FORMAT_INVALID', why: 'a name of 256 bytes behind a length of 0 (Java 0.7.0, 0.8.0)' },
  { code: 9999, error: 'EDGE_COMMAND_UNKNOWN', why: 'an unknown code on purpose (Python 0.9.0)' },
]

test('each recorded frame decodes and encodes to the same bytes', () => {
  let same = 0
  for (const frame of whole.filter(({ note }) => !note.startsWith('DEVIATION'))) {
    const found = rewritten(frame)
    assert.equal(found.toHex(), frame.bytes.toHex(), `${frame.file}: ${frame.direction}: ${frame.note}`)
    same++
  }
  assert.equal(same, 2305)
})

test('frames cut by the recording are all that is left out, beside a shortened snapshot', () => {
  assert.equal(frames.length, 2320)
  assert.equal(frames.filter(({ isCut }) => isCut).length, 9)
  assert.equal(frames.filter((frame) => !frame.isCut && isShortenedSnapshot(frame)).length, 1)
})

test('what clients sent against the protocol is tolerated or refused with the number that servers answer', () => {
  const deviations = whole.filter(({ note }) => note.startsWith('DEVIATION'))
  assert.equal(deviations.length, 5)
  for (const frame of deviations) {
    const known = DEVIATIONS.find(({ code }) => code === frame.code)
    assert.ok(known, frame.note)
    if (known.error === null) rewritten(frame)
    else
      assert.throws(
        () => rewritten(frame),
        (error) => error instanceof EdgeError && error.code === known.error,
      )
  }
})

test('every session comes out of the assembler as it was recorded, whatever the chunks', () => {
  const random = seededRandom(21)
  const shapes: readonly [FrameShape, RecordedFrame[]][] = [
    [classicRequestShape, whole.filter((frame) => frame.dialect === 'classic' && frame.direction === 'request')],
    [classicReplyShape, whole.filter((frame) => frame.dialect === 'classic' && frame.direction === 'reply')],
    [vsrFrameShape, whole.filter((frame) => frame.dialect === 'vsr')],
  ]
  for (const [shape, recorded] of shapes) {
    const stream = Buffer.concat(recorded.map(({ bytes }) => bytes))
    for (const mostBytes of [1, 7, 300, 5000, 1 << 20]) {
      const assembler = new FrameAssembler(shape)
      const found: string[] = []
      const chunk = new Uint8Array(mostBytes)
      for (let at = 0; at < stream.length; ) {
        const size = Math.min(1 + random.below(mostBytes), stream.length - at)
        chunk.set(stream.subarray(at, at + size))
        assembler.push(chunk.subarray(0, size))
        for (let frame = assembler.next(); frame !== undefined; frame = assembler.next()) found.push(frame.toHex())
        chunk.fill(0xee) // The chunk's buffer is used again: nothing may alias it by now.
        at += size
      }
      assert.deepEqual(
        found,
        recorded.map(({ bytes }) => bytes.toHex()),
      )
      assert.equal(assembler.pendingBytes, 0)
    }
  }
})
