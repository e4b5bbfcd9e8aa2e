/** The golden vectors: each decodes to what it says and encodes to its own bytes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeReplyFrame, decodeRequestFrame } from '../../../../src/sdk/wire/classic/frame.ts'
import { CODE, type CommandCode, commandName } from '../../../../src/sdk/wire/codes.ts'
import {
  decodeCommand,
  decodeResponse,
  encodeCommand,
  encodeResponse,
  type RequestBody,
  type ResponseBody,
} from '../../../../src/sdk/wire/commands/index.ts'
import type { Dialect } from '../../../../src/sdk/wire/dialect.ts'
import { sharedKernel } from '../../../../src/sdk/wire/kernel/shared-kernel.ts'
import { decodeRecords } from '../../../../src/sdk/wire/messages.ts'
import { optionsToEnd } from '../../../../src/sdk/wire/options.ts'
import { Reader } from '../../../../src/sdk/wire/reader.ts'
import { decodeUserHeaders } from '../../../../src/sdk/wire/user-headers.ts'
import {
  bodyOf,
  decodeEviction,
  decodeReplyHead,
  decodeRequestHead,
  writeRequest,
} from '../../../../src/sdk/wire/vsr/frame.ts'
import { readOutcome } from '../../../../src/sdk/wire/vsr/reply.ts'
import { Writer } from '../../../../src/sdk/wire/writer.ts'
import vectors from '../../../fixtures/iggy/vectors.json' with { type: 'json' }
import { rewritten } from './support/rewrite.ts'

const byName = new Map(vectors.map((vector) => [vector.name, vector]))
const textDecoder = new TextDecoder()

/** Vectors that are no whole frame: tested one by one below. */
const PARTS = new Set([
  'vsr_request_header_golden',
  'vsr_send_messages_body_golden',
  'vsr_poll_messages_body_golden',
  'vsr_options_block_golden',
])

function bytesOf(name: string): Uint8Array {
  const vector = byName.get(name)
  assert.ok(vector, name)
  return Uint8Array.fromHex(vector.hex)
}

/** Which command a reply answers: what its name begins with. */
function codeOfName(name: string): CommandCode | undefined {
  const bare = name.replace(/^(classic|vsr|v5|v4)_/, '').replace('cluster_metadata', 'get_cluster_metadata')
  const special = { register: CODE.loginRegister, metadata_rejection: CODE.createStream, logout: CODE.logoutUser }
  for (const [prefix, code] of Object.entries(special)) if (bare.startsWith(prefix)) return code
  const codes = Object.values(CODE).toSorted((a, b) => commandName(b).length - commandName(a).length)
  if (bare.startsWith('send_')) return CODE.sendMessages
  if (bare.startsWith('poll_')) return CODE.pollMessages
  if (bare.startsWith('login_')) return CODE.loginUser
  return codes.find((code) => bare.startsWith(commandName(code)))
}

function dialectOf(name: string): Dialect {
  return name.startsWith('classic') ? 'classic' : 'vsr'
}

function requestOf<C extends CommandCode>(name: string, code: C): RequestBody<C> {
  const bytes = bytesOf(name)
  const isClassic = dialectOf(name) === 'classic'
  const payloadView = isClassic ? decodeRequestFrame(bytes).payloadView : bodyOf(bytes)
  const found = isClassic ? decodeRequestFrame(bytes).code : decodeRequestHead(bytes).code
  assert.equal(found, code)
  return decodeCommand(dialectOf(name), code, payloadView).body as RequestBody<C>
}

function replyOf<C extends CommandCode>(name: string, code: C): ResponseBody<C> {
  const bytes = bytesOf(name)
  if (dialectOf(name) === 'classic') return decodeResponse('classic', code, decodeReplyFrame(bytes).payloadView)
  const outcome = readOutcome(decodeReplyHead(bytes), bodyOf(bytes))
  assert.equal(outcome.error, 0)
  return decodeResponse('vsr', code, outcome.payloadView)
}

test('each of the 73 vectors that is a frame encodes to its own bytes again', () => {
  assert.equal(vectors.length, 73)
  let same = 0
  for (const { name, hex, direction } of vectors) {
    if (PARTS.has(name)) continue
    const isRequest = direction === 'client->server'
    const frame = {
      file: 'vectors.json',
      dialect: dialectOf(name),
      direction: isRequest ? ('request' as const) : ('reply' as const),
      code: isRequest ? undefined : (codeOfName(name) ?? CODE.ping),
      bytes: Uint8Array.fromHex(hex),
      isCut: false,
      note: name,
    }
    assert.equal(rewritten(frame).toHex(), hex, name)
    same++
  }
  assert.equal(same + PARTS.size, 73)
})

test('the request head encodes to the golden bytes', () => {
  const bytes = bytesOf('vsr_request_header_golden')
  const head = decodeRequestHead(bytes)
  assert.equal(head.operation, 128)
  assert.equal(head.requestNumber, 2n)
  assert.equal(head.session, 11n)
  const writer = new Writer()
  writeRequest(writer, head, (body) => body.u32(0))
  assert.equal(writer.toBytes().subarray(0, 256).toHex(), bytes.toHex())
})

test('the options block decodes in its order and encodes to the golden bytes', () => {
  const bytes = bytesOf('vsr_options_block_golden')
  const options = optionsToEnd.read(new Reader(bytes, 'options'), 'vsr')
  assert.deepEqual(options, [
    { key: 'enforce_fsync', kind: 3, valueBytes: Uint8Array.of(1) },
    { key: 'segment_size', kind: 12, valueBytes: Uint8Array.of(0, 0, 0, 0x40, 0, 0, 0, 0) },
  ])
  const writer = new Writer()
  optionsToEnd.write(writer, options, 'vsr')
  assert.equal(writer.toBytes().toHex(), bytes.toHex())
})

test('the golden send body decodes with all its checksums and encodes to the same bytes', () => {
  const bytes = bytesOf('vsr_send_messages_body_golden')
  const request = decodeCommand('vsr', CODE.sendMessages, bytes)
  assert.ok(request.code === CODE.sendMessages)
  const { stream, topic, partitioning, batch } = request.body
  assert.deepEqual({ stream, topic, partitioning }, { stream: 1, topic: 2, partitioning: { kind: 'balanced' } })
  assert.equal(batch.count, 2)
  assert.equal(batch.baseOriginUs, 1000n)
  const owned = { ...batch, recordsView: batch.recordsView.slice() }
  const writer = new Writer()
  encodeCommand('vsr', { code: CODE.sendMessages, body: { ...request.body, batch: owned } }, writer)
  assert.equal(writer.toBytes().toHex(), bytes.toHex())
})

test('the golden poll body decodes to its messages and encodes to the same bytes', () => {
  const bytes = bytesOf('vsr_poll_messages_body_golden')
  const response = decodeResponse('vsr', CODE.pollMessages, bytes)
  assert.equal(response.partitionId, 3)
  assert.equal(response.currentOffset, 101n)
  const messages = response.batches.flatMap((batch) => decodeRecords(batch))
  assert.deepEqual(
    messages.map(({ id, offset, appendTimeUs, originUs }) => ({ id, offset, appendTimeUs, originUs })),
    [
      { id: 7n, offset: 100n, appendTimeUs: 5000n, originUs: 1000n },
      { id: 8n, offset: 101n, appendTimeUs: 5000n, originUs: 1050n },
    ],
  )
  const writer = new Writer()
  encodeResponse('vsr', CODE.pollMessages, response, writer)
  assert.equal(writer.toBytes().toHex(), bytes.toHex())
})

test('requests decode to the values that the vectors name', () => {
  assert.deepEqual(requestOf('classic_login_request_rust_style', CODE.loginUser), {
    username: 'iggy',
    password: 'iggy',
    version: '0.10.0',
    context: '',
  })
  const topic = requestOf('classic_create_topic_request', CODE.createTopic)
  assert.equal(topic.stream, 1)
  assert.equal(topic.name, 'topic1')
  assert.equal(topic.partitionsCount, 3)
  assert.equal(topic.replicationFactor, 1)
  assert.deepEqual(
    topic.options.map(({ key, valueBytes }) => [key, valueBytes.toHex()]),
    [
      ['compression_algorithm', '01'],
      ['message_expiry', '0000000000000000'],
      ['max_topic_size', '0000000000000000'],
    ],
  )
  assert.deepEqual(requestOf('classic_poll_messages_request', CODE.pollMessages), {
    consumer: { kind: 'consumer', id: 42 },
    stream: 'test_stream_id',
    topic: 'test_topic_id',
    partitionId: 123,
    strategy: { kind: 'first' },
    count: 100,
    autoCommit: true,
  })
  assert.equal(requestOf('vsr_store_consumer_offset_frame', CODE.storeConsumerOffset).ack, 1)
  const v5Topic = requestOf('v5_create_topic_request', CODE.createTopic)
  assert.deepEqual(
    v5Topic.options.map(({ key, valueBytes }) => [key, textDecoder.decode(valueBytes)]),
    [
      ['consumer_offset_durability', 'replicated'],
      ['durability', 'replicated'],
    ],
  )
  const attach = requestOf('v5_attach_consumer_session_request', CODE.attachConsumerSession)
  assert.equal(attach.session, 71n)
  assert.equal(attach.metadataWatermark, 73n)
})

test('passwords and tokens are told apart by the register body', () => {
  const password = requestOf('v5_register_request_password_rust', CODE.loginRegister)
  assert.deepEqual(password, {
    protocolVersion: 11264,
    sdkName: 'rust-sdk',
    sdkVersion: '0.11.0',
    credentials: { kind: 'password', username: 'iggy', password: 'iggy' },
    context: '',
  })
  assert.deepEqual(requestOf('vsr_register_request_pat', CODE.loginRegister).credentials, {
    kind: 'token',
    token: 'token-value',
  })
  const { credentials } = requestOf('v5_register_request_pat_rust', CODE.loginRegister)
  assert.equal(credentials.kind === 'token' ? credentials.token.length : 0, 68)
})

test('a classic send and a recorded VSR send decode to their messages, user headers included', () => {
  const classic = requestOf('classic_send_messages_request', CODE.sendMessages)
  assert.deepEqual(classic.partitioning, { kind: 'partition', partitionId: 0 })
  const stored = { baseOffset: 0n, appendTimeUs: 1n, idSeed: 0n, skip: 0, take: 2, isClockTrusted: true }
  const messages = decodeRecords({ ...classic.batch, recordsView: classic.batch.recordsView.slice(), ...stored })
  assert.deepEqual(
    messages.map(({ id, originUs, payloadView }) => [id, originUs, textDecoder.decode(payloadView)]),
    [
      [1n, 1000n, 'hello'],
      [2n, 1001n, 'world!'],
    ],
  )
  const v5 = requestOf('v5_send_messages_request', CODE.sendMessages)
  assert.equal(v5.batch.count, 10)
  const [first] = decodeRecords({ ...v5.batch, recordsView: v5.batch.recordsView.slice(), ...stored, take: 10 })
  assert.ok(first)
  const headers = decodeUserHeaders(first.userHeadersView)
  assert.deepEqual(
    headers.map(({ key, value }) => [textDecoder.decode(key.bytes), value.kind]),
    [
      ['k1', 'string'],
      ['k2', 'uint64'],
    ],
  )
})

test('replies decode to the values that the vectors name', () => {
  const topic = replyOf('classic_get_topic_response', CODE.getTopic)
  assert.ok(topic)
  assert.equal(topic.name, 'topic1')
  assert.equal(topic.messageExpiryUs, 0xffff_ffff_ffff_ffffn)
  assert.deepEqual(
    topic.partitions.map(({ id }) => id),
    [0, 1],
  )
  const group = replyOf('classic_get_consumer_group_response', CODE.getConsumerGroup)
  assert.deepEqual(group?.members, [
    { id: 0, partitions: [0, 2] },
    { id: 1, partitions: [1, 3] },
  ])
  const login = replyOf('v5_register_reply', CODE.loginRegister)
  assert.deepEqual(login, { userId: 0, session: 1n, protocolVersion: 11264, serverVersion: '0.9.0-edge.5' })
  const sync = replyOf('v5_sync_consumer_group_reply', CODE.syncConsumerGroup)
  assert.deepEqual(sync, { generation: 1n, partitions: [0, 1, 2, 3] })
  const options = replyOf('v5_describe_options_topic_reply', CODE.describeOptions)
  assert.equal(options.options.length, 9)
  const sent = replyOf('v5_send_messages_reply', CODE.sendMessages)
  assert.deepEqual(sent.confirmations, [{ streamId: 0, topicId: 0, partitionId: 1, baseOffset: 3n }])
  const slice = replyOf('v5_poll_reply_slice', CODE.pollMessages)
  assert.deepEqual(
    slice.batches.map(({ baseOffset, count }) => [baseOffset, count]),
    [[57n, 5]],
  )
  const route = replyOf('v5_get_poll_routing_reply', CODE.getPollRouting)
  assert.equal(route.session, 71n)
  assert.equal(route.node.name, 'iggy-node')
})

test('refusals come on the channel that the vectors name', () => {
  const outcomeOf = (name: string) => readOutcome(decodeReplyHead(bytesOf(name)), bodyOf(bytesOf(name))).error
  assert.equal(outcomeOf('vsr_create_stream_rejected_reply'), 1012)
  assert.equal(outcomeOf('vsr_unauthenticated_deny_reply'), 40)
  assert.equal(outcomeOf('v4_create_topic_refused_durability'), 4041)
  assert.equal(outcomeOf('v5_store_consumer_offset_invalid_reply'), 4100)
  assert.equal(outcomeOf('v5_send_missing_target_reply'), 20)
  assert.equal(decodeEviction(bytesOf('v5_eviction_invalid_token')).reason, 10)
  const old = decodeEviction(bytesOf('vsr_eviction_incompatible_protocol'))
  assert.deepEqual([old.reason, old.newestVersion, old.oldestVersion], [14, 11264, 11264])
})

test('the stamped checksum of an empty body and of a full one is XXH3-64', () => {
  for (const name of ['v5_logout_request', 'v5_create_topic_request', 'vsr_create_topic_frame_rust_checksum']) {
    const bytes = bytesOf(name)
    assert.equal(decodeRequestHead(bytes).requestChecksum, sharedKernel().xxh3(bodyOf(bytes)), name)
  }
})
