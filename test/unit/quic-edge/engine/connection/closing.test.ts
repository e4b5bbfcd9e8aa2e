import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLOSE_FRAME_SIZE_MAX, Closing } from '../../../../../src/quic-edge/engine/connection/closing.ts'
import { LEVEL, type Level } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'

const APPLICATION = { code: 7, reason: 'bye', isApplication: true, isLocal: true }

function frameOf(closing: Closing, level: Level): string {
  const writer = new Writer(new Uint8Array(CLOSE_FRAME_SIZE_MAX))
  closing.writeFrame(writer, level)
  return Buffer.from(writer.writtenView).toString('hex')
}

test('packets that come after a close are answered ever more rarely', () => {
  const closing = new Closing()
  closing.close(APPLICATION, 0, 100)
  closing.frameSent()
  const answered: number[] = []
  for (let count = 1; count <= 20; count++) {
    closing.packetReceived()
    if (closing.isFrameDue) answered.push(count)
    closing.frameSent()
  }
  assert.deepEqual(answered, [1, 2, 4, 8, 16])
})

test('code and reason of the application are not shown before the handshake is done', () => {
  const closing = new Closing()
  closing.close(APPLICATION, 0, 100)
  assert.equal(frameOf(closing, LEVEL.application), '1d0703627965')
  assert.equal(frameOf(closing, LEVEL.handshake), '1c0c0000')
})

test('an error names the frame that caused it; a long reason is cut to fit', () => {
  const closing = new Closing()
  closing.close({ code: 10, reason: 'x'.repeat(1000), isApplication: false, isLocal: true }, 0x18, 100)
  const frame = frameOf(closing, LEVEL.initial)
  assert.ok(frame.startsWith('1c0a18'))
  assert.ok(frame.length / 2 <= CLOSE_FRAME_SIZE_MAX)
})

test('once the peer has closed too, nothing more is said', () => {
  const closing = new Closing()
  closing.close(APPLICATION, 0, 100)
  closing.drain({ ...APPLICATION, code: 9, isLocal: false }, 200)
  assert.equal(closing.isFrameDue, false)
  closing.packetReceived()
  assert.equal(closing.isFrameDue, false)
  assert.equal(closing.deadlineMs, 100)
  assert.equal(closing.info?.code, 7, 'the first reason stays')
})
