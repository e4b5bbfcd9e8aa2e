/** Every command of both dialects: round trips, every truncation, what is tolerated and what is refused with which code. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError, type ErrorCode } from '../../../../src/errors.ts'
import { CODE, type CommandCode, commandName, isCommandCode } from '../../../../src/sdk/wire/codes.ts'
import {
  COMMANDS,
  decodeCommand,
  decodeResponse,
  encodeCommand,
  encodeResponse,
  type Request,
} from '../../../../src/sdk/wire/commands/index.ts'
import type { Dialect } from '../../../../src/sdk/wire/dialect.ts'
import { Writer } from '../../../../src/sdk/wire/writer.ts'
import { SAMPLES } from './support/samples.ts'

const DIALECTS: readonly Dialect[] = ['classic', 'vsr']
const textEncoder = new TextEncoder()

function eachCommand(visit: (dialect: Dialect, code: CommandCode) => void): void {
  for (const dialect of DIALECTS) {
    for (const code of Object.values(CODE)) if (isCommandCode(dialect, code)) visit(dialect, code)
  }
}

function requestBytes(dialect: Dialect, request: Request): Uint8Array {
  const writer = new Writer()
  encodeCommand(dialect, request, writer)
  return writer.toBytes()
}

function responseBytes(dialect: Dialect, code: CommandCode, body: unknown): Uint8Array {
  const writer = new Writer()
  encodeResponse(dialect, code, body as never, writer)
  return writer.toBytes()
}

function sampleRequest(code: CommandCode): Request {
  return { code, body: SAMPLES[code].request } as Request
}

function assertRefused(action: () => unknown, ...codes: readonly ErrorCode[]): void {
  assert.throws(action, (error) => error instanceof EdgeError && codes.includes(error.code), codes.join())
}

test('each request encodes, decodes and encodes to the same bytes', () => {
  eachCommand((dialect, code) => {
    const bytes = requestBytes(dialect, sampleRequest(code))
    const decoded = decodeCommand(dialect, code, bytes)
    assert.equal(decoded.code, code)
    assert.equal(requestBytes(dialect, decoded).toHex(), bytes.toHex(), `${dialect} ${commandName(code)}`)
  })
})

test('each response encodes, decodes and encodes to the same bytes', () => {
  eachCommand((dialect, code) => {
    const bytes = responseBytes(dialect, code, SAMPLES[code].response)
    const decoded = decodeResponse(dialect, code, bytes)
    assert.equal(responseBytes(dialect, code, decoded).toHex(), bytes.toHex(), `${dialect} ${commandName(code)}`)
  })
})

test('what both dialects carry decodes to what was encoded, in both', () => {
  const { 33: createUser, 100: poll, 604: join, 121: store } = SAMPLES
  for (const dialect of DIALECTS) {
    const bodyOf = (code: CommandCode) => decodeCommand(dialect, code, requestBytes(dialect, sampleRequest(code))).body
    assert.deepEqual(bodyOf(CODE.createUser), createUser.request)
    assert.deepEqual(bodyOf(CODE.pollMessages), poll.request)
    assert.deepEqual(bodyOf(CODE.joinConsumerGroup), join.request)
    assert.deepEqual(bodyOf(CODE.storeConsumerOffset), store.request)
    assert.deepEqual(bodyOf(CODE.createTopic), {
      ...SAMPLES[302].request,
      replicationFactor: dialect === 'vsr' ? 0 : 1,
    })
  }
})

test('every truncation of a request is refused or is a shorter request, never something else', () => {
  let refused = 0
  eachCommand((dialect, code) => {
    const bytes = requestBytes(dialect, sampleRequest(code))
    for (let length = 0; length < bytes.length; length++) {
      try {
        // Option blocks and lists that end with the payload may be whole where it is cut; the rest may not.
        const decoded = decodeCommand(dialect, code, bytes.subarray(0, length))
        assert.equal(requestBytes(dialect, decoded).length, length, `${dialect} ${commandName(code)} cut to ${length}`)
      } catch (error) {
        assert.ok(error instanceof EdgeError, String(error))
        refused++
      }
    }
  })
  assert.ok(refused > 2000, `${refused}`)
})

test('every truncation of a response is refused or is a shorter response', () => {
  eachCommand((dialect, code) => {
    const bytes = responseBytes(dialect, code, SAMPLES[code].response)
    // A send may be answered with an empty body: then its four bytes of count are not there.
    for (let length = code === CODE.sendMessages ? 1 : 0; length < bytes.length; length++) {
      try {
        const decoded = decodeResponse(dialect, code, bytes.subarray(0, length))
        assert.equal(
          responseBytes(dialect, code, decoded).length,
          length,
          `${dialect} ${commandName(code)} cut to ${length}`,
        )
      } catch (error) {
        assert.ok(error instanceof EdgeError, String(error))
      }
    }
  })
})

test('bytes after a request are read over, except where options or messages run to the end', () => {
  const toTheEnd = new Set<number>([CODE.createUser, CODE.updateUser, CODE.createStream, CODE.updateStream])
  for (const code of [CODE.createTopic, CODE.updateTopic, CODE.sendMessages]) toTheEnd.add(code)
  eachCommand((dialect, code) => {
    if (toTheEnd.has(code) && (dialect === 'vsr' || code === CODE.sendMessages)) return
    const bytes = requestBytes(dialect, sampleRequest(code))
    const longer = new Uint8Array(bytes.length + 4)
    longer.set(bytes)
    assert.equal(requestBytes(dialect, decodeCommand(dialect, code, longer)).toHex(), bytes.toHex(), commandName(code))
  })
})

test('a code of the other dialect or of none is unknown', () => {
  for (const [dialect, code] of [
    ['classic', CODE.loginRegister],
    ['classic', CODE.describeOptions],
    ['classic', CODE.syncConsumerGroup],
    ['vsr', CODE.loginUser],
    ['vsr', CODE.loginWithPersonalAccessToken],
    ['vsr', 124],
    ['classic', 0],
  ] as const) {
    assertRefused(() => decodeCommand(dialect, code, new Uint8Array(0)), 'EDGE_COMMAND_UNKNOWN')
  }
})

test('there is a command for every code and it knows it', () => {
  for (const code of Object.values(CODE)) assert.equal(COMMANDS[code].code, code)
  assert.equal(Object.keys(COMMANDS).length, Object.keys(CODE).length)
})

test('bad lengths and text that is not UTF-8 are a bad format, unknown kinds a malformed command', () => {
  const name = (bytes: readonly number[]) => decodeCommand('classic', CODE.createStream, Uint8Array.from(bytes))
  assertRefused(() => name([0]), 'EDGE_FORMAT_INVALID')
  assertRefused(() => name([2, 0xc3, 0x28]), 'EDGE_COMMAND_MALFORMED')
  assertRefused(() => name([3, 65]), 'EDGE_COMMAND_MALFORMED')
  const stream = (bytes: readonly number[]) => decodeCommand('classic', CODE.getStream, Uint8Array.from(bytes))
  assertRefused(() => stream([9, 4, 0, 0, 0, 0]), 'EDGE_COMMAND_MALFORMED')
  assertRefused(() => stream([1, 3, 0, 0, 0, 0]), 'EDGE_FORMAT_INVALID')
  assertRefused(() => stream([2, 0]), 'EDGE_FORMAT_INVALID')
  assert.deepEqual(stream([2, 2, 49, 50]).body, { stream: '12' })
})

test('errors say what, which, expected and found', () => {
  assert.throws(() => decodeCommand('classic', CODE.createPartitions, Uint8Array.of(1, 4, 1, 0, 0, 0, 2, 1, 97, 5)), {
    message: 'create_partitions request: count before byte 9: expected 4 more bytes, found 1',
  })
})

test('a count that the payload cannot hold is refused at its end, not allocated', () => {
  const many = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 1, 97)
  assertRefused(() => decodeResponse('vsr', CODE.describeOptions, many), 'EDGE_COMMAND_MALFORMED')
  assertRefused(() => decodeResponse('vsr', CODE.getTopics, many), 'EDGE_COMMAND_MALFORMED')
})

test('an empty payload of the commands that get one thing says that it is not there', () => {
  const commands = [
    CODE.getStream,
    CODE.getTopic,
    CODE.getUser,
    CODE.getClient,
    CODE.getConsumerGroup,
    CODE.getConsumerOffset,
  ]
  for (const dialect of DIALECTS) {
    for (const code of commands) {
      assert.equal(decodeResponse(dialect, code, new Uint8Array(0)), null)
      assert.equal(responseBytes(dialect, code, null).length, 0)
    }
  }
  assert.equal(decodeResponse('vsr', CODE.syncConsumerGroup, new Uint8Array(0)), null)
})

test('no response is ever of one byte, which old clients would leave in the stream', () => {
  eachCommand((dialect, code) => {
    assert.notEqual(responseBytes(dialect, code, SAMPLES[code].response).length, 1, commandName(code))
  })
})

test('option blocks refuse keys that are no text, keys given twice and more than 100,000 bytes', () => {
  const create = (block: Uint8Array) => {
    const name = Uint8Array.of(1, 97)
    return decodeCommand('vsr', CODE.createStream, Uint8Array.from([...name, ...block]))
  }
  const entry = (keyKind: number, key: string, valueLength: number) => [
    ...[keyKind, key.length, 0, 0, 0],
    ...textEncoder.encode(key),
    ...[1, valueLength & 255, valueLength >> 8, 0, 0],
    ...new Uint8Array(valueLength).fill(1),
  ]
  assertRefused(() => create(Uint8Array.from(entry(1, 'k', 1))), 'EDGE_COMMAND_MALFORMED')
  assertRefused(() => create(Uint8Array.from([...entry(2, 'k', 1), ...entry(2, 'k', 2)])), 'EDGE_COMMAND_MALFORMED')
  assertRefused(() => create(Uint8Array.from(entry(2, 'k', 1)).subarray(0, 9)), 'EDGE_COMMAND_MALFORMED')
  assertRefused(() => create(new Uint8Array(100_001).fill(2)), 'EDGE_OPTIONS_TOO_LARGE')
  const many = Array.from({ length: 1025 }, (_, i) => entry(2, `k${i}`, 1)).flat()
  assertRefused(() => create(Uint8Array.from(many)), 'EDGE_OPTIONS_TOO_LARGE')
})

test('names that do not fit are refused when they are encoded', () => {
  const encode = (name: string) => requestBytes('vsr', { code: CODE.createStream, body: { name, options: [] } })
  assertRefused(() => encode(''), 'EDGE_NAME_INVALID')
  assertRefused(() => encode('ä'.repeat(128)), 'EDGE_NAME_INVALID')
  assert.equal(encode('ä'.repeat(127)).length, 255)
})

test('a number that does not fit its field is refused and becomes no other one', () => {
  const to = (code: CommandCode, body: object) => () => requestBytes('vsr', { code, body } as Request)
  for (const stream of [Number.NaN, -1, 1.5, 2 ** 32]) {
    assertRefused(to(CODE.deleteStream, { stream }), 'EDGE_IDENTIFIER_INVALID')
    assertRefused(to(CODE.deletePartitions, { stream: 1, topic: 1, count: stream }), 'EDGE_FORMAT_INVALID')
  }
  const place = { stream: 1, topic: 1 }
  assertRefused(to(CODE.deleteSegments, { ...place, partitionId: 0, segmentsCount: -1 }), 'EDGE_FORMAT_INVALID')
  const consumer = { kind: 'consumer', id: 1 }
  for (const [partitionId, offset] of [
    [2 ** 32, 0n],
    [0, -1n],
    [0, 2n ** 64n],
  ]) {
    const body = { ...place, consumer, partitionId, offset, ack: 1 }
    assertRefused(to(CODE.storeConsumerOffset, body), 'EDGE_FORMAT_INVALID')
    const strategy = { kind: 'offset', offset }
    const poll = { ...place, consumer, partitionId, strategy, count: 1, autoCommit: false }
    assertRefused(to(CODE.pollMessages, poll), 'EDGE_FORMAT_INVALID')
  }
  // Of a lifetime that is over already: no token for ever.
  assertRefused(to(CODE.createPersonalAccessToken, { name: 'abc', expiryUs: -1n }), 'EDGE_FORMAT_INVALID')
  assert.throws(
    to(CODE.deleteStream, { stream: -1 }),
    /^EdgeError: stream: expected a name, or an id from 0 to 4294967295, found -1$/,
  )
})

test('a register body is a token when it is no password, and refused when it is neither', () => {
  const head = [0, 0x2c, 0, 0, 1, 97, 1, 98]
  const login = (rest: readonly number[]) =>
    decodeCommand('vsr', CODE.loginRegister, Uint8Array.from([...head, ...rest])).body
  assert.deepEqual(login([2, 120, 121, 1, 122, 0, 0, 0, 0]), {
    protocolVersion: 11264,
    sdkName: 'a',
    sdkVersion: 'b',
    credentials: { kind: 'password', username: 'xy', password: 'z' },
    context: '',
  })
  assert.deepEqual(login([2, 120, 121, 3, 0, 0, 0, 99, 99, 99]), {
    protocolVersion: 11264,
    sdkName: 'a',
    sdkVersion: 'b',
    credentials: { kind: 'token', token: 'xy' },
    context: 'ccc',
  })
  assertRefused(() => login([2, 120]), 'EDGE_COMMAND_MALFORMED')
  assertRefused(() => login([0]), 'EDGE_FORMAT_INVALID')
})
