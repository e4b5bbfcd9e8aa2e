/** Heads, replies, evictions, sizes and detection of both dialects. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concatBytes } from '../../../../src/byte-concat.ts'
import type { StoredBatch } from '../../../../src/sdk/wire/batch.ts'
import * as classic from '../../../../src/sdk/wire/classic/frame.ts'
import { CODE, EVICTION, OPERATION } from '../../../../src/sdk/wire/codes.ts'
import { detectProtocol } from '../../../../src/sdk/wire/detect.ts'
import { isVersionAccepted, packVersion } from '../../../../src/sdk/wire/dialect.ts'
import { FrameAssembler, type FrameShape } from '../../../../src/sdk/wire/frame-assembler.ts'
import { draftOf } from '../../../../src/sdk/wire/vsr/draft.ts'
import * as vsr from '../../../../src/sdk/wire/vsr/frame.ts'
import * as reply from '../../../../src/sdk/wire/vsr/reply.ts'
import { Writer } from '../../../../src/sdk/wire/writer.ts'
import { storedBatch } from './support/batches.ts'
import { seededRandom } from './support/random.ts'
import { SAMPLES } from './support/samples.ts'

const CALLER = { clientId: 0x1234n << 64n, session: 7n, requestNumber: 3n }
const COMMIT = { cluster: 99n, op: 12n, timestampUs: 34n }
const PING = { code: CODE.ping, body: null } as const

function written(write: (writer: Writer) => void): Uint8Array {
  const writer = new Writer()
  write(writer)
  return writer.toBytes()
}

function u32s(...values: readonly number[]): Uint8Array {
  return new Uint8Array(Uint32Array.from(values).buffer)
}

function vsrRequest(code: number): vsr.VsrRequestHead {
  const request = { code, body: SAMPLES[code as 1].request } as never
  return vsr.decodeRequestHead(written((writer) => reply.writeCommand(writer, CALLER, request)))
}

// ---- assembler

test('a frame is handed out as soon as its last byte has come, without copying when it came whole', () => {
  const frame = written((writer) =>
    classic.writeRequestFrame(writer, { code: CODE.createStream, body: { name: 'abc', options: [] } }),
  )
  const assembler = new FrameAssembler(classic.classicRequestShape)
  assembler.push(frame)
  assert.equal(assembler.next()?.buffer, frame.buffer)
  for (let i = 0; i < frame.length; i++) {
    assert.equal(assembler.next(), undefined)
    assembler.push(frame.subarray(i, i + 1))
  }
  assert.deepEqual(assembler.next(), frame)
  assert.equal(assembler.next(), undefined)
  assert.equal(assembler.pendingBytes, 0)
})

test('frames wait after keep, though the chunk is used for something else', () => {
  const one = written((writer) => classic.writeRequestFrame(writer, PING))
  const chunk = Uint8Array.from([...one, ...one, ...one])
  const assembler = new FrameAssembler(classic.classicRequestShape)
  assembler.push(chunk)
  assert.deepEqual(assembler.next(), one)
  assembler.keep()
  chunk.fill(0xff)
  assert.equal(assembler.pendingBytes, 16)
  assert.deepEqual(assembler.next(), one)
  assembler.push(one)
  for (let i = 0; i < 2; i++) assert.deepEqual(assembler.next(), one)
  assert.equal(assembler.next(), undefined)
})

test('an announced frame of 60 MiB holds no more than twice what has come', () => {
  const assembler = new FrameAssembler(classic.classicRequestShape)
  const before = process.memoryUsage().arrayBuffers
  assembler.push(u32s(60 * 1024 * 1024, CODE.sendMessages))
  assert.equal(assembler.next(), undefined)
  assert.ok(process.memoryUsage().arrayBuffers - before < 1024 * 1024)
  assert.equal(assembler.pendingBytes, 8)
})

test('a frame that nobody wants is dropped as it comes, and the next one begins behind it', () => {
  const one = u32s(12, CODE.ping, 7, 7)
  const next = u32s(8, CODE.ping, 9)
  const bytes = concatBytes([one, next])
  for (const at of [8, 12, 16, 20, 28]) {
    const assembler = new FrameAssembler(classic.classicRequestShape)
    assembler.push(bytes.subarray(0, at))
    assert.deepEqual(assembler.drop(one.length), one.subarray(0, at))
    assert.equal(assembler.isDropping, at < one.length)
    for (let index = at; index < bytes.length; index++) assembler.push(bytes.subarray(index, index + 1))
    assert.deepEqual(assembler.next(), next)
    assert.equal(assembler.pendingBytes, 0)
  }
})

test('a large frame in small chunks is moved a bounded number of times', () => {
  const size = 4 * 1024 * 1024
  const assembler = new FrameAssembler(classic.classicRequestShape)
  assembler.push(u32s(size + 4, CODE.sendMessages))
  const chunk = new Uint8Array(1024)
  const start = process.cpuUsage()
  for (let sent = 0; sent < size; sent += chunk.length) {
    assert.equal(assembler.next(), undefined)
    assembler.push(chunk)
  }
  assert.equal(assembler.next()?.length, size + 8)
  // Quadratic copying would move 8 GiB here.
  assert.ok(process.cpuUsage(start).user < 2_000_000)
})

test('sizes beyond the limits are refused before a byte is kept', () => {
  const refused = (shape: FrameShape, head: Uint8Array, code: string) => {
    const assembler = new FrameAssembler(shape)
    assembler.push(head)
    assert.throws(() => assembler.next(), { code })
  }
  const most = 10 * 1024 * 1024 + 4
  refused(classic.classicRequestShape, u32s(most + 1, CODE.ping), 'EDGE_FRAME_TOO_LARGE')
  refused(classic.classicRequestShape, u32s(64 * 1024 * 1024 + 1, CODE.sendMessages), 'EDGE_FRAME_TOO_LARGE')
  refused(classic.classicReplyShape, u32s(0, 64 * 1024 * 1024 + 1), 'EDGE_FRAME_TOO_LARGE')
  const head = (size: number, command: number) => {
    const bytes = new Uint8Array(256)
    new DataView(bytes.buffer).setUint32(48, size, true)
    bytes[60] = command
    return bytes
  }
  refused(vsr.vsrFrameShape, head(255, 5), 'EDGE_FRAME_INVALID')
  refused(vsr.vsrFrameShape, head(256, 30), 'EDGE_FRAME_INVALID')
  refused(vsr.vsrFrameShape, head(64 * 1024 * 1024 + 1, 5), 'EDGE_FRAME_TOO_LARGE')
  assert.equal(vsr.vsrFrameShape.sizeOf(head(64 * 1024 * 1024, 5), 0), 64 * 1024 * 1024)
  assert.equal(classic.classicRequestShape.sizeOf(u32s(most, CODE.ping), 0), most + 4)
})

// ---- classic

test('a classic length below 4 is a frame of 8 bytes that is refused, and the next one is read', () => {
  const assembler = new FrameAssembler(classic.classicRequestShape)
  assembler.push(Uint8Array.from([...u32s(3, CODE.ping), ...u32s(4, CODE.ping)]))
  const bad = assembler.next()
  assert.ok(bad)
  assert.throws(() => classic.decodeRequestFrame(bad), { code: 'EDGE_COMMAND_MALFORMED' })
  assert.deepEqual(assembler.next(), u32s(4, CODE.ping))
})

test('an encoder that fails leaves nothing in the writer', () => {
  const writer = new Writer()
  writer.u32(1)
  const bad = { code: CODE.createStream, body: { name: '', options: [] } } as const
  assert.throws(() => classic.writeRequestFrame(writer, bad), { code: 'EDGE_NAME_INVALID' })
  assert.throws(() => reply.writeCommand(writer, CALLER, bad), { code: 'EDGE_NAME_INVALID' })
  assert.equal(writer.length, 4)
})

test('a large poll leaves part by part, with the bytes of the whole reply; a small one, and a damaged one, does not', () => {
  const payload = new Uint8Array(1000).fill(7)
  const stored = (count: number, fields = {}) =>
    storedBatch(
      Array.from({ length: count }, (_, at) => ({ payload, originUs: BigInt(at) })),
      fields,
    )
  const bodyOf = (batches: readonly StoredBatch[]) => ({
    partitionId: 3,
    currentOffset: 999n,
    messageCount: batches.reduce((sum, { take }) => sum + take, 0),
    batches,
  })
  const partsOf = (batches: readonly StoredBatch[]): Uint8Array[] => {
    const writer = new Writer()
    const parts: Uint8Array[] = []
    const leave = () => {
      parts.push(writer.toBytes())
      writer.reset()
    }
    classic.writePollReplyFrame(writer, bodyOf(batches), leave)
    return [...parts, writer.toBytes()]
  }
  for (const [batches, partCount] of [
    [[stored(10)], 1],
    [[stored(600), stored(1), stored(300)], 6],
  ] as const) {
    const writer = new Writer()
    classic.writeReplyFrame(writer, CODE.pollMessages, bodyOf(batches))
    const parts = partsOf(batches)
    assert.equal(parts.length, partCount)
    assert.deepEqual(Buffer.concat(parts), Buffer.from(writer.toBytes()))
  }
  const writer = new Writer()
  writer.u32(1)
  const damaged = bodyOf([stored(600), stored(300, { take: 301 })])
  const leave = () => assert.fail('nothing leaves of a reply that will be an error')
  assert.throws(() => classic.writePollReplyFrame(writer, damaged, leave), { code: 'EDGE_BATCH_CORRUPT' })
  assert.equal(writer.length, 4)
})

// ---- VSR

test('requests carry their operation, and the code where the operation is that of all reads', () => {
  assert.equal(vsrRequest(CODE.ping).operation, OPERATION.nonReplicated)
  assert.equal(vsrRequest(CODE.ping).code, CODE.ping)
  const create = vsrRequest(CODE.createTopic)
  assert.deepEqual([create.operation, create.code, create.session], [OPERATION.createTopic, CODE.createTopic, 7n])
  const register = vsrRequest(CODE.loginRegister)
  assert.deepEqual([register.operation, register.session, register.requestNumber], [OPERATION.register, 0n, 0n])
})

test('request heads that could not be answered are refused', () => {
  const bytes = written((writer) => reply.writeCommand(writer, CALLER, PING))
  const withoutClient = bytes.slice().fill(0, 128, 144)
  assert.throws(() => vsr.decodeRequestHead(withoutClient), { code: 'EDGE_FRAME_INVALID' })
  const notRequest = bytes.slice()
  notRequest[60] = 8
  assert.throws(() => vsr.decodeRequestHead(notRequest), { code: 'EDGE_FRAME_INVALID' })
  assert.throws(() => vsr.decodeRequestHead(bytes.subarray(0, 200)), { code: 'EDGE_FRAME_INVALID' })
})

test('sessions, numbers and stamps out of turn are refused, each with its number', () => {
  const empty = new Uint8Array(0)
  const head = vsrRequest(CODE.createStream)
  vsr.checkRequest(head, empty)
  vsr.checkRequest({ ...vsrRequest(CODE.ping), session: 0n, requestNumber: 0n }, empty)
  for (const bad of [{ session: 0n }, { requestNumber: 0n }]) {
    assert.throws(() => vsr.checkRequest({ ...head, ...bad }, empty), { code: 'EDGE_COMMAND_MALFORMED' })
  }
  const register = vsrRequest(CODE.loginRegister)
  for (const bad of [{ session: 1n }, { requestNumber: 1n }]) {
    assert.throws(() => vsr.checkRequest({ ...register, ...bad }, empty), { code: 'EDGE_COMMAND_MALFORMED' })
  }
  for (const operation of [0, 50, 64, 163, 164]) {
    assert.throws(() => vsr.checkRequest({ ...head, operation }, empty), { code: 'EDGE_COMMAND_UNKNOWN' })
  }
  vsr.checkRequest({ ...head, requestChecksum: 0x2d06800538d394c2n }, empty)
  assert.throws(() => vsr.checkRequest({ ...head, requestChecksum: 1n }, empty), { code: 'EDGE_FORMAT_INVALID' })
})

test('a committed reply carries the substituted operation, its place and a result section', () => {
  for (const [code, operation] of [
    [CODE.createTopic, 64],
    [CODE.createPartitions, 65],
    [CODE.deleteSegments, 68],
    [CODE.createStream, 128],
  ] as const) {
    const request = vsrRequest(code)
    const body = SAMPLES[code].response as never
    const bytes = written((writer) =>
      reply.writeSuccess(writer, request, { code, body, commit: COMMIT, watermark: 12n }),
    )
    const head = vsr.decodeReplyHead(bytes)
    assert.deepEqual([head.operation, head.cluster, head.op, head.commit], [operation, 99n, 12n, 12n])
    assert.deepEqual([head.requestNumber, head.clientId], [request.requestNumber, request.clientId])
    const outcome = reply.readOutcome(head, vsr.bodyOf(bytes))
    assert.equal(outcome.error, 0)
    assert.equal(vsr.bodyOf(bytes).length, outcome.payloadView.length + 4)
  }
})

test('reads, sends and logout have no result section; a read echoes the session as its op', () => {
  for (const code of [CODE.getStream, CODE.sendMessages, CODE.logoutUser]) {
    const request = vsrRequest(code)
    const body = SAMPLES[code].response as never
    const bytes = written((writer) => reply.writeSuccess(writer, request, { code, body, commit: null, watermark: 1n }))
    const head = vsr.decodeReplyHead(bytes)
    assert.equal(head.op, 7n)
    assert.equal(reply.readOutcome(head, vsr.bodyOf(bytes)).payloadView.length, vsr.bodyOf(bytes).length)
  }
})

test('errors come in the result section where there is one, else as status', () => {
  const outcomeOf = (code: number) => {
    const request = vsrRequest(code)
    const bytes = written((writer) =>
      reply.writeRejection(writer, request, { error: 1012, commit: COMMIT, watermark: 1n }),
    )
    const head = vsr.decodeReplyHead(bytes)
    return { status: head.status, error: reply.readOutcome(head, vsr.bodyOf(bytes)).error, size: bytes.length }
  }
  assert.deepEqual(outcomeOf(CODE.createStream), { status: 0, error: 1012, size: 268 })
  assert.deepEqual(outcomeOf(CODE.deleteSegments), { status: 0, error: 1012, size: 268 })
  assert.deepEqual(outcomeOf(CODE.getStream), { status: 1012, error: 1012, size: 256 })
  assert.deepEqual(outcomeOf(CODE.sendMessages), { status: 1012, error: 1012, size: 256 })
})

test('an eviction names its reason, and the window of versions', () => {
  const frame = { cluster: 0n, clientId: 5n, reason: EVICTION.incompatibleProtocol, oldestVersion: 1, newestVersion: 2 }
  const bytes = written((writer) => vsr.writeEviction(writer, frame))
  assert.ok(vsr.isEviction(bytes))
  assert.deepEqual(vsr.decodeEviction(bytes), frame)
  bytes[255] = 0
  assert.throws(() => vsr.decodeEviction(bytes), { code: 'EDGE_FRAME_INVALID' })
})

test('the version gate takes every patch of 0.11 and nothing else', () => {
  for (const [major, minor, patch, isAccepted] of [
    [0, 11, 0, true],
    [0, 11, 7, true],
    [0, 10, 9, false],
    [0, 12, 0, false],
    [1, 0, 0, false],
    [0, 0, 0, false],
  ] as const) {
    assert.equal(isVersionAccepted(packVersion(major, minor, patch)), isAccepted, `${major}.${minor}.${patch}`)
  }
})

test('old drafts are told by session, version and SDK', () => {
  const login = { protocolVersion: packVersion(0, 11, 0), sdkName: 'rust-sdk', sdkVersion: '0.11.0' }
  assert.equal(draftOf(0n, login), 'V5')
  assert.equal(draftOf(1n << 63n, login), 'V1')
  assert.equal(draftOf(0n, { ...login, sdkVersion: '0.11.0-edge.2' }), 'V2')
  assert.equal(draftOf(0n, { ...login, sdkName: 'go-sdk', sdkVersion: '0.9.0-edge.3' }), 'V3')
  assert.equal(draftOf(0n, { ...login, protocolVersion: packVersion(0, 12, 2) }), 'V6')
})

// ---- detection

test('the first bytes tell the dialect, TLS and HTTP', () => {
  const request = written((writer) => reply.writeCommand(writer, CALLER, PING))
  assert.equal(detectProtocol(request), 'vsr')
  assert.equal(detectProtocol(request.subarray(0, 255)), 'more-bytes')
  assert.equal(detectProtocol(u32s(4, CODE.ping)), 'classic')
  assert.equal(detectProtocol(u32s(4, CODE.ping).subarray(0, 7)), 'more-bytes')
  assert.equal(detectProtocol(Uint8Array.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc)), 'tls')
  assert.equal(detectProtocol(new TextEncoder().encode('GET /stats HTTP/1.1')), 'http')
})

test('garbage, unknown codes and heads that no client sends are unknown', () => {
  const request = written((writer) => reply.writeCommand(writer, CALLER, PING))
  const changed = (at: number, value: number) => {
    const copy = request.slice()
    copy[at] = value
    return copy
  }
  for (const [at, value] of [
    [20, 1],
    [60, 8],
    [48, 255],
    [176, 50],
    [176, 64],
  ] as const) {
    if (at === 48) assert.equal(detectProtocol(changed(49, 0)), 'unknown')
    else assert.equal(detectProtocol(changed(at, value)), 'unknown', `byte ${at}`)
  }
  assert.equal(detectProtocol(request.slice().fill(0, 128, 144)), 'unknown')
  assert.equal(detectProtocol(u32s(4, 9999)), 'unknown')
  assert.equal(detectProtocol(u32s(3, CODE.ping)), 'unknown')
  assert.equal(detectProtocol(u32s(4, CODE.loginRegister)), 'unknown')
  assert.equal(detectProtocol(u32s(11 * 1024 * 1024, CODE.ping)), 'unknown')
  assert.equal(detectProtocol(u32s(11 * 1024 * 1024, CODE.sendMessages)), 'classic')
  assert.equal(detectProtocol(new TextEncoder().encode('HELO localhost')), 'unknown')
})

test('a VSR client that seals its frames one day is still known; old drafts are let in to be refused', () => {
  const sealed = written((writer) => reply.writeCommand(writer, CALLER, PING))
  sealed.set(seededRandom(41).bytes(16))
  assert.equal(detectProtocol(sealed), 'vsr')
  const old = written((writer) => reply.writeCommand(writer, CALLER, PING))
  old[176] = 164
  assert.equal(detectProtocol(old), 'vsr')
})
