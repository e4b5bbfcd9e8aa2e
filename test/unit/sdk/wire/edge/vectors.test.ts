import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { EdgeError } from '../../../../../src/errors.ts'
import {
  DEFAULT_LIMITS,
  decodeFrame,
  EdgeFrameAssembler,
  encodeBareFrame,
  encodeFrame,
  type Frame,
  faultOf,
} from '../../../../../src/sdk/wire/edge/index.ts'

interface FrameVector {
  readonly name: string
  readonly hex: string
  readonly bytes: number
  readonly datagram?: boolean
}
interface RefusalVector {
  readonly name: string
  readonly hex: string
  readonly error: string
}
const file = new URL('../../../../fixtures/edge/vectors.json', import.meta.url)
const vectors: { frames: FrameVector[]; refuse: RefusalVector[] } = JSON.parse(readFileSync(file, 'utf8'))

/** Decoded, they lose what version 1 does not know: they cannot be written again. */
const FORWARD_LOOKING = new Set(['unknown-ignorable-frame', 'unknown-ignorable-key'])

test('all vectors are here', () => {
  assert.equal(vectors.frames.length, 46)
  assert.equal(vectors.refuse.length, 22)
})

for (const vector of vectors.frames) {
  test(`vector ${vector.name} decodes and is written with the same bytes`, () => {
    const bytes = Buffer.from(vector.hex, 'hex')
    assert.equal(bytes.byteLength, vector.bytes)
    const frame = vector.datagram ? decodeFrame(bytes) : decodeOne(bytes)
    if (FORWARD_LOOKING.has(vector.name)) return
    assert.notEqual(frame.type, 'ignorable')
    const encode = vector.datagram ? encodeBareFrame : encodeFrame
    assert.equal(Buffer.from(encode(frame as Frame)).toString('hex'), vector.hex)
  })
}

test('a frame of an unknown high type is read over, an unknown option is left out', () => {
  const hexOf = (name: string) => vectors.frames.find((one) => one.name === name)?.hex ?? ''
  assert.deepEqual(decodeOne(Buffer.from(hexOf('unknown-ignorable-frame'), 'hex')), { type: 'ignorable', number: 64 })
  const welcome = decodeOne(Buffer.from(hexOf('unknown-ignorable-key'), 'hex'))
  assert.deepEqual(welcome, { type: 'welcome', version: 1, session: 9003, lanes: [], limits: {}, time: null })
})

for (const vector of vectors.refuse) {
  test(`refusal ${vector.name} is ${vector.error}`, () => {
    assert.equal(faultOf(errorOf(() => decodeOne(Buffer.from(vector.hex, 'hex')))), vector.error)
  })
}

test('every truncation of every frame waits or is refused, and never decodes to another frame', () => {
  for (const vector of vectors.frames.filter((one) => !one.datagram)) {
    const bytes = Buffer.from(vector.hex, 'hex')
    for (let size = 0; size < bytes.byteLength; size++) {
      const assembler = new EdgeFrameAssembler(DEFAULT_LIMITS.maxFrameBytes)
      assembler.push(bytes.subarray(0, size), () => assert.fail(`${vector.name} came out of ${size} bytes`))
      assert.equal(assembler.isAtBoundary, size === 0)
    }
    const body = bytes.subarray(bytes.byteLength > 25 ? 2 : 1)
    for (let size = 0; size < body.byteLength; size++) {
      const error = errorOf(() => decodeFrame(body.subarray(0, size)))
      assert.ok(error instanceof EdgeError, `${vector.name} cut at ${size}`)
    }
  }
})

function decodeOne(bytes: Uint8Array) {
  const frames: ReturnType<typeof decodeFrame>[] = []
  const assembler = new EdgeFrameAssembler(DEFAULT_LIMITS.maxFrameBytes)
  assembler.push(bytes, (frameView) => {
    frames.push(decodeFrame(frameView))
    return true
  })
  assembler.finish()
  const [frame] = frames
  assert.ok(frame !== undefined && frames.length === 1)
  return frame
}

function errorOf(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  return undefined
}
