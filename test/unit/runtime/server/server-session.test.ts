import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ServerSession } from '../../../../src/runtime/server/server-session.ts'

const LIMIT = 1024 * 1024
const PING = Buffer.from('0400000001000000', 'hex')
const STREAMS = Buffer.from('04000000c9000000', 'hex')

/** A vsr ping: operation 2, code 1. */
function vsrPing(): Buffer {
  const frame = Buffer.alloc(256)
  frame.writeUInt32LE(256, 48)
  frame[60] = 5
  frame[128] = 9
  frame[176] = 2
  frame.writeUInt32LE(1, 196)
  return frame
}

function framesOf(session: ServerSession, ...chunks: Uint8Array[]): string[] {
  const frames: string[] = []
  for (const chunk of chunks) {
    // The transport uses its buffer again: what the session keeps, it must have copied.
    const shared = Buffer.from(chunk)
    session.receive(shared)
    for (let frame = session.next(); frame !== null; frame = session.next())
      frames.push(Buffer.from(frame).toString('hex'))
    session.keep()
    shared.fill(0xee)
  }
  return frames
}

test('the first bytes tell the generation, and the connection keeps it', () => {
  const classic = new ServerSession(LIMIT)
  assert.equal(classic.dialect, null)
  framesOf(classic, PING)
  assert.equal(classic.dialect, 'classic')
  const vsr = new ServerSession(LIMIT)
  framesOf(vsr, vsrPing())
  assert.equal(vsr.dialect, 'vsr')
})

test('requests come out whole however the bytes are cut', () => {
  const stream = Buffer.concat([PING, STREAMS, PING])
  const expected = [PING, STREAMS, PING].map((frame) => frame.toString('hex'))
  for (let cut = 0; cut <= stream.length; cut++) {
    assert.deepEqual(
      framesOf(new ServerSession(LIMIT), stream.subarray(0, cut), stream.subarray(cut)),
      expected,
      `cut at ${cut}`,
    )
  }
  assert.deepEqual(framesOf(new ServerSession(LIMIT), ...[...stream].map((byte) => Buffer.of(byte))), expected)
  assert.deepEqual(framesOf(new ServerSession(LIMIT), ...[...vsrPing()].map((byte) => Buffer.of(byte))), [
    vsrPing().toString('hex'),
  ])
})

describe('what is no request of Iggy', () => {
  const GARBAGE: readonly (readonly [string, Uint8Array, string])[] = [
    ['a browser', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'http'],
    ['a TLS hello on a plain port', Buffer.from('16030100c8010000c40303', 'hex'), 'tls'],
    ['noise', Buffer.from('ffffffffffffffff', 'hex'), 'unknown'],
    ['a code that no generation has', Buffer.from('040000000f270000', 'hex'), 'unknown'],
  ]
  for (const [name, bytes, detected] of GARBAGE) {
    test(`${name} is refused, with its first bytes for the log`, () => {
      const session = new ServerSession(LIMIT)
      assert.throws(
        () => session.receive(bytes),
        (error: { code: string; details: Record<string, unknown> }) => {
          assert.equal(error.code, 'EDGE_FRAME_INVALID')
          assert.equal(error.details.detected, detected)
          assert.ok(bytes.toString().length > 0 && String(error.details.firstBytes).length > 0)
          return true
        },
      )
    })
  }
})

test('a length above the limit is refused before anything is held for it', () => {
  const session = new ServerSession(LIMIT)
  framesOf(session, PING)
  session.receive(Buffer.from('ffffff0365000000', 'hex'))
  assert.throws(() => session.next(), { code: 'EDGE_FRAME_TOO_LARGE' })
})

test('a request that has begun says how large it will be', () => {
  const session = new ServerSession(LIMIT)
  framesOf(session, PING)
  assert.equal(session.announcedBytes, 0)
  framesOf(session, Buffer.from('0400010065000000aabb', 'hex'))
  assert.equal(session.announcedBytes, 65_544)
  assert.equal(session.heldBytes, 10)
})
