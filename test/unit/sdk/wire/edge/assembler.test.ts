import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../../src/errors.ts'
import {
  aboutFrame,
  decodeFrame,
  EDGE_CODES,
  EdgeFrameAssembler,
  edgeCodeOf,
  encodeFrame,
  type Frame,
  faultOf,
  scan,
} from '../../../../../src/sdk/wire/edge/index.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

const small: Frame = { type: 'ping', number: 3, uptimeMs: 90_000 }
const large: Frame = {
  type: 'publish',
  alias: 1,
  sequence: 5,
  time: null,
  value: Uint8Array.from({ length: 3000 }, (_, at) => at),
}

test('frames come out whole however the stream is cut', () => {
  const frames = [small, large, small, { ...large, value: new Uint8Array(200) }, small] as const
  const stream = Buffer.concat(frames.map(encodeFrame))
  const random = new SeededRandom(7).next
  for (let round = 0; round < 50; round++) {
    const assembler = new EdgeFrameAssembler(16_384)
    const found: string[] = []
    for (let at = 0; at < stream.byteLength; ) {
      const size = 1 + Math.floor(random() * (round < 25 ? 5 : 2000))
      assembler.push(stream.subarray(at, at + size), (frameView) => found.push(rewritten(frameView)) > 0)
      at += size
    }
    assert.ok(assembler.isAtBoundary)
    assert.equal(found.join(), frames.map((frame) => Buffer.from(encodeFrame(frame)).toString('hex')).join())
  }
})

test('reading stops where the taker says so and goes on from there', () => {
  const stream = Buffer.concat([encodeFrame(small), encodeFrame(small)])
  const assembler = new EdgeFrameAssembler(16_384)
  assert.equal(
    assembler.push(stream, () => false),
    stream.byteLength / 2,
  )
})

test('a frame above the limit is refused from its head alone', () => {
  const assembler = new EdgeFrameAssembler(1024)
  assert.throws(() => assembler.push(Uint8Array.of(0x59, 0x04, 0x00), () => true), { code: 'EDGE_FRAME_TOO_LARGE' })
})

test('a frame that no head can name is not encoded', () => {
  const frameOf = (size: number) =>
    encodeFrame({ type: 'message', subscription: 0, offset: 1n, ageMs: null, body: new Uint8Array(size) })
  assert.equal(frameOf(65_527).length, 65_538)
  assert.throws(() => frameOf(65_528), { code: 'EDGE_FRAME_TOO_LARGE' })
})

test('an end of the stream inside a frame is lost framing', () => {
  const assembler = new EdgeFrameAssembler(1024)
  assembler.push(Uint8Array.of(0x43, 0x82), () => true)
  assert.throws(
    () => assembler.finish(),
    (error) => faultOf(error) === 'framing',
  )
})

test('what an error is about can be told even when the frame is wrong', () => {
  assert.deepEqual(aboutFrame(Buffer.from('850501f5f6f6', 'hex')), { of: 5, ref: null })
  assert.deepEqual(aboutFrame(Buffer.from('8505010bf63901ff', 'hex')), { of: 5, ref: 11 })
  assert.deepEqual(aboutFrame(Buffer.from('8505', 'hex')), { of: 5, ref: null })
  assert.deepEqual(aboutFrame(new Uint8Array()), { of: 0, ref: null })
  // [-1], [1e300], [5.5], [23001]: an error frame cannot name these.
  for (const hex of ['8120', '81fb7e37e43c8800759c', '81fb4016000000000000', '811959d9'])
    assert.deepEqual(aboutFrame(Buffer.from(hex, 'hex')), { of: 0, ref: null }, hex)
})

test('random bytes never pass the pre-check into anything but a frame or an EdgeError', () => {
  const random = new SeededRandom(11).next
  for (let round = 0; round < 20_000; round++) {
    const bytes = Uint8Array.from({ length: Math.floor(random() * 24) }, () => Math.floor(random() * 256))
    if (bytes.length > 0) bytes[0] = 0x80 | ((bytes[0] ?? 0) & 0x0f) // an array, so that more gets past the first byte
    try {
      decodeFrame(bytes)
    } catch (error) {
      assert.ok(error instanceof EdgeError, String(error))
    }
  }
})

test('an array of many empty maps is refused by its number of items', () => {
  const bomb = new Uint8Array(3 + 8000).fill(0xa0)
  bomb.set([0x99, 8000 >> 8, 8000 & 0xff])
  assert.throws(() => scan(bomb), { code: 'EDGE_FRAME_INVALID' })
})

test('integers beyond 32 bits are written as integers, in both directions', () => {
  const frame: Frame = { type: 'publish', alias: 1, sequence: 2 ** 40, time: 2 ** 33, value: -(2 ** 35) }
  assert.deepEqual(decodeFrame(encodeFrame(frame).subarray(2)), frame)
})

test('numbers that are not finite are refused', () => {
  for (const hex of ['8505010bf6fb7ff8000000000000', '8505010bf6fb7ff0000000000000']) {
    assert.throws(() => decodeFrame(Buffer.from(hex, 'hex')), { code: 'EDGE_FRAME_INVALID' })
  }
})

test('codes are numbered once, and every EdgeError has one', () => {
  const numbers = Object.values(EDGE_CODES).map((traits) => traits.code)
  assert.deepEqual(
    numbers,
    Array.from({ length: 24 }, (_, code) => code),
  )
  assert.equal(edgeCodeOf(new EdgeError('EDGE_DISK_FULL', '')), 'storage')
  assert.equal(edgeCodeOf(new EdgeError('EDGE_CONFIG_INVALID', '')), 'internal')
})

/** The frame as it is written again: byte strings come out of the library as one class or another. */
function rewritten(frameView: Uint8Array): string {
  const frame = decodeFrame(frameView)
  assert.notEqual(frame.type, 'ignorable')
  return Buffer.from(encodeFrame(frame as Frame)).toString('hex')
}
