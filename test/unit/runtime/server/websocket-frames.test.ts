import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  CLOSE_NORMAL,
  CLOSE_PROTOCOL_ERROR,
  CLOSE_TOO_BIG,
  CLOSE_UNSUPPORTED,
  encodeClose,
  encodeWebsocketFrame,
  OPCODE,
  WebsocketDecoder,
} from '../../../../src/runtime/server/websocket-frames.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

interface FrameOptions {
  readonly opcode?: number
  readonly isFinal?: boolean
  readonly isMasked?: boolean
  readonly reserved?: number
}

function clientFrame(
  payload: Uint8Array,
  { opcode = OPCODE.binary, isFinal = true, isMasked = true, reserved = 0 }: FrameOptions = {},
): Buffer {
  const unmasked = Buffer.from(encodeWebsocketFrame(opcode, payload))
  const headSize = unmasked.length - payload.length
  const mask = Buffer.from('a1b2c3d4', 'hex')
  unmasked[0] = (isFinal ? 0x80 : 0) | reserved | opcode
  if (!isMasked) return unmasked
  unmasked[1] = (unmasked[1] ?? 0) | 0x80
  const body = Buffer.from(payload).map((byte, index) => byte ^ (mask[index & 3] ?? 0))
  return Buffer.concat([unmasked.subarray(0, headSize), mask, body])
}

function decode(chunks: readonly Uint8Array[], maxMessageBytes = 1_000_000) {
  const seen = { data: Buffer.alloc(0), pings: [] as string[], closed: [] as number[] }
  const decoder = new WebsocketDecoder(
    {
      data(view) {
        seen.data = Buffer.concat([seen.data, view])
      },
      ping: (payload) => seen.pings.push(Buffer.from(payload).toString()),
      closed: (code) => seen.closed.push(code),
    },
    maxMessageBytes,
  )
  for (const chunk of chunks) decoder.receive(Buffer.from(chunk))
  return seen
}

describe('messages', () => {
  for (const size of [0, 1, 125, 126, 65_535, 65_536]) {
    test(`of ${size} bytes come out as they went in, in pieces too`, () => {
      const payload = Buffer.alloc(size, 'iggy')
      const frame = clientFrame(payload)
      const whole = decode([frame])
      assert.deepEqual(whole.data, payload)
      const pieces = decode(
        Array.from({ length: Math.ceil(frame.length / 7) }, (_, index) => frame.subarray(index * 7, index * 7 + 7)),
      )
      assert.deepEqual(pieces.data, payload)
    })
  }

  test('in several frames are one message, with pings between them, and another may follow', () => {
    const seen = decode([
      clientFrame(Buffer.from('one '), { isFinal: false }),
      clientFrame(Buffer.from('are you there'), { opcode: OPCODE.ping }),
      clientFrame(Buffer.from('two'), { opcode: OPCODE.continuation }),
      clientFrame(Buffer.from(', and the next')),
    ])
    assert.equal(seen.data.toString(), 'one two, and the next')
    assert.deepEqual(seen.pings, ['are you there'])
  })
})

describe('the end', () => {
  const CASES: readonly (readonly [string, Buffer, number])[] = [
    ['a close without a code', clientFrame(Buffer.alloc(0), { opcode: OPCODE.close }), CLOSE_NORMAL],
    ['a close with a code', clientFrame(Buffer.from([3, 0xe9]), { opcode: OPCODE.close }), 1001],
    [
      'a close with a code that may not be sent',
      clientFrame(Buffer.from([3, 0xed]), { opcode: OPCODE.close }),
      CLOSE_PROTOCOL_ERROR,
    ],
    ['text', clientFrame(Buffer.from('hello'), { opcode: OPCODE.text }), CLOSE_UNSUPPORTED],
    ['a frame that is not masked', clientFrame(Buffer.from('x'), { isMasked: false }), CLOSE_PROTOCOL_ERROR],
    ['a reserved bit', clientFrame(Buffer.from('x'), { reserved: 0x40 }), CLOSE_PROTOCOL_ERROR],
    ['an unknown kind', clientFrame(Buffer.from('x'), { opcode: 3 }), CLOSE_PROTOCOL_ERROR],
    ['a continuation of nothing', clientFrame(Buffer.from('x'), { opcode: OPCODE.continuation }), CLOSE_PROTOCOL_ERROR],
    ['a ping in pieces', clientFrame(Buffer.from('x'), { opcode: OPCODE.ping, isFinal: false }), CLOSE_PROTOCOL_ERROR],
    ['a ping of 126 bytes', clientFrame(Buffer.alloc(126), { opcode: OPCODE.ping }), CLOSE_PROTOCOL_ERROR],
    ['a message above the limit', clientFrame(Buffer.alloc(101)), CLOSE_TOO_BIG],
  ]
  for (const [name, frame, code] of CASES) {
    test(`${name} ends with ${code}, and nothing after it counts`, () => {
      const seen = decode([frame, clientFrame(Buffer.from('more'))], 100)
      assert.deepEqual(seen.closed, [code])
      assert.equal(seen.data.toString(), '')
    })
  }

  test('a length of 2^63 is refused at its head', () => {
    const head = Buffer.from('82ff7fffffffffffffff00000000', 'hex')
    assert.deepEqual(decode([head]).closed, [CLOSE_TOO_BIG])
  })
})

test('random bytes end in at most one close and never throw', () => {
  const random = new SeededRandom(11)
  for (let round = 0; round < 20_000; round++) {
    const bytes = Buffer.from(Array.from({ length: random.below(40) }, () => random.below(256)))
    assert.ok(decode([bytes]).closed.length <= 1)
  }
})

test('a close frame carries its code', () => {
  assert.deepEqual(Buffer.from(encodeClose(1000)), Buffer.from('880203e8', 'hex'))
})
