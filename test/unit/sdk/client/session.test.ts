import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { judgeProbe, probeBytes } from '../../../../src/sdk/client/generation-probe.ts'
import { type Completion, Session } from '../../../../src/sdk/client/session.ts'
import { writeReplyFrame, writeStatusFrame } from '../../../../src/sdk/wire/classic/frame.ts'
import { CODE, EVICTION } from '../../../../src/sdk/wire/codes.ts'
import { NO_OPTIONS } from '../../../../src/sdk/wire/options.ts'
import { decodeRequestHead, writeEviction } from '../../../../src/sdk/wire/vsr/frame.ts'
import { writeDenial, writeRejection, writeSuccess } from '../../../../src/sdk/wire/vsr/reply.ts'
import { Writer } from '../../../../src/sdk/wire/writer.ts'

const CLIENT_ID = 0x1234n
const LATER_US = 1_000_000
const STREAM = {
  id: 7,
  createdAtUs: 1n,
  topicsCount: 0,
  sizeBytes: 0n,
  messagesCount: 0n,
  name: 's',
  options: NO_OPTIONS,
}

function bytesOf(write: (writer: Writer) => void): Uint8Array {
  const writer = new Writer()
  write(writer)
  return writer.toBytes()
}

function errorOf(completion: Completion | undefined): EdgeError {
  assert.ok(completion !== undefined && 'error' in completion)
  return completion.error
}

function bodyOf(completion: Completion | undefined): unknown {
  assert.ok(completion !== undefined && 'body' in completion)
  return completion.body
}

/** A VSR session that is logged in with session 42. */
function vsrSession(): Session {
  const session = new Session('vsr', CLIENT_ID)
  const credentials = { kind: 'token' as const, token: 't' }
  const login = { protocolVersion: 1, sdkName: 'x', sdkVersion: '1', credentials, context: '' }
  const sent = session.request({ code: CODE.loginRegister, body: login }, LATER_US)
  const head = decodeRequestHead(sent.bytes)
  assert.equal(head.requestNumber, 0n)
  const body = { userId: 1, session: 42n, protocolVersion: 1, serverVersion: 'v' }
  const answer = { code: CODE.loginRegister, body, commit: null, watermark: 0n }
  session.received(bytesOf((writer) => writeSuccess(writer, head, answer)))
  return session
}

test('classic answers go to requests in order, whatever the chunks', () => {
  const session = new Session('classic', CLIENT_ID)
  const first = session.request({ code: CODE.getStream, body: { stream: 's' } }, LATER_US)
  const second = session.request({ code: CODE.ping, body: null }, LATER_US)
  const answers = bytesOf((writer) => {
    writeReplyFrame(writer, CODE.getStream, { ...STREAM, topics: [] })
    writeStatusFrame(writer, 0)
  })
  const completions = [...answers].flatMap((byte) => session.received(Uint8Array.of(byte)))
  assert.deepEqual(
    completions.map(({ id }) => id),
    [first.id, second.id],
  )
  assert.deepEqual(bodyOf(completions[0]), { ...STREAM, topics: [] })
  assert.equal(session.table.size, 0)
})

test('a refusal carries the number of the server and our code', () => {
  const session = new Session('classic', CLIENT_ID)
  session.request({ code: CODE.createStream, body: { name: 's', options: NO_OPTIONS } }, LATER_US)
  const error = errorOf(session.received(bytesOf((writer) => writeStatusFrame(writer, 1012)))[0])
  assert.equal(error.code, 'EDGE_STREAM_NAME_TAKEN')
  assert.equal(error.details.iggyCode, 1012)
  assert.match(error.message, /create_stream/)
})

test('a server that says goodbye unasked ends the session', () => {
  const session = new Session('classic', CLIENT_ID)
  assert.deepEqual(session.received(bytesOf((writer) => writeStatusFrame(writer, 8))), [])
  assert.equal(session.endedBy?.code, 'EDGE_SHUTTING_DOWN')
})

test('replicated operations use up numbers and reads carry the current one', () => {
  const session = vsrSession()
  const numbers = [
    session.request({ code: CODE.createStream, body: { name: 'a', options: NO_OPTIONS } }, LATER_US),
    session.request({ code: CODE.getStreams, body: null }, LATER_US),
    session.request({ code: CODE.createStream, body: { name: 'b', options: NO_OPTIONS } }, LATER_US),
  ].map(({ bytes }) => decodeRequestHead(bytes))
  assert.deepEqual(
    numbers.map(({ requestNumber, session: bound }) => [requestNumber, bound]),
    [
      [1n, 42n],
      [1n, 42n],
      [2n, 42n],
    ],
  )
})

test('a vsr answer is matched by number and operation, also when one before it was dropped by the server', () => {
  const session = vsrSession()
  const dropped = session.request({ code: CODE.deleteStream, body: { stream: 1 } }, LATER_US)
  const answered = session.request({ code: CODE.createStream, body: { name: 'b', options: NO_OPTIONS } }, LATER_US)
  const head = decodeRequestHead(answered.bytes)
  const answer = { code: CODE.createStream, body: STREAM, commit: null, watermark: 0n }
  const completions = session.received(bytesOf((writer) => writeSuccess(writer, head, answer)))
  assert.deepEqual(
    completions.map(({ id }) => id),
    [answered.id],
  )
  assert.notEqual(dropped.id, answered.id)
  assert.equal(session.table.size, 1)
})

test('both error channels of a vsr reply are read', () => {
  const session = vsrSession()
  const denied = session.request({ code: CODE.deleteStream, body: { stream: 1 } }, LATER_US)
  const rejected = session.request({ code: CODE.deleteStream, body: { stream: 2 } }, LATER_US)
  const completions = session.received(
    bytesOf((writer) => {
      writeDenial(writer, decodeRequestHead(denied.bytes), 41, 0n)
      writeRejection(writer, decodeRequestHead(rejected.bytes), { error: 1009, commit: null, watermark: 0n })
    }),
  )
  assert.deepEqual(
    completions.map((completion) => errorOf(completion).code),
    ['EDGE_FORBIDDEN', 'EDGE_STREAM_NOT_FOUND'],
  )
})

test('an eviction fails the request that met it and ends the session', () => {
  const session = vsrSession()
  session.request({ code: CODE.deleteStream, body: { stream: 1 } }, LATER_US)
  const eviction = {
    cluster: 1n,
    clientId: CLIENT_ID,
    reason: EVICTION.staleClient,
    newestVersion: 0,
    oldestVersion: 0,
  }
  const frame = bytesOf((writer) => writeEviction(writer, eviction))
  assert.equal(errorOf(session.received(frame)[0]).code, 'EDGE_SESSION_STALE')
  assert.equal(session.endedBy?.details.evictionReason, EVICTION.staleClient)
})

test('a lost connection fails everything that waits', () => {
  const session = new Session('classic', CLIENT_ID)
  session.request({ code: CODE.ping, body: null }, LATER_US)
  session.request({ code: CODE.ping, body: null }, LATER_US)
  const lost = session.lost(new EdgeError('EDGE_CONNECTION_LOST', 'gone'))
  assert.equal(lost.length, 2)
  assert.equal(session.table.size, 0)
})

test('a reply that announces more than any server may send is lost framing', () => {
  const session = new Session('classic', CLIENT_ID)
  session.request({ code: CODE.ping, body: null }, LATER_US)
  const huge = Uint8Array.of(0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f)
  assert.throws(() => session.received(huge), { code: 'EDGE_FRAME_TOO_LARGE' })
})

test('an answer that does not decode fails its request and not the connection', () => {
  const session = new Session('classic', CLIENT_ID)
  session.request({ code: CODE.getStream, body: { stream: 's' } }, LATER_US)
  const short = Uint8Array.of(0, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3)
  assert.equal(errorOf(session.received(short)[0]).code, 'EDGE_COMMAND_MALFORMED')
  assert.equal(session.endedBy, null)
})

test('the probe tells the generations apart from eight bytes', () => {
  assert.equal(probeBytes(CLIENT_ID).length, 256)
  assert.equal(judgeProbe(new Uint8Array(7)), null)
  assert.equal(judgeProbe(new Uint8Array(256)), 'vsr')
  assert.equal(judgeProbe(Uint8Array.of(3, 0, 0, 0, 0, 0, 0, 0)), 'classic')
  assert.equal(judgeProbe(new TextEncoder().encode('HTTP/1.1 400')), undefined)
})
