/** Messages in and out of both dialects: what is admitted, what is refused with which code, and what polls show. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError, type ErrorCode } from '../../../../src/errors.ts'
import type { RecordBatch, StoredBatch } from '../../../../src/sdk/wire/batch.ts'
import { partsOfPoll } from '../../../../src/sdk/wire/classic/message.ts'
import { CODE } from '../../../../src/sdk/wire/codes.ts'
import {
  decodeCommand,
  decodeResponse,
  encodeCommand,
  encodeResponse,
} from '../../../../src/sdk/wire/commands/index.ts'
import type { SendMessagesRequest } from '../../../../src/sdk/wire/commands/messages.ts'
import type { Dialect } from '../../../../src/sdk/wire/dialect.ts'
import { FLAG } from '../../../../src/sdk/wire/kernel/faults.ts'
import { JsKernel } from '../../../../src/sdk/wire/kernel/js-kernel.ts'
import { sharedKernel } from '../../../../src/sdk/wire/kernel/shared-kernel.ts'
import { decodeRecords, encodeRecords, type OutgoingMessage } from '../../../../src/sdk/wire/messages.ts'
import { originRuns, sliceOf } from '../../../../src/sdk/wire/record-slice.ts'
import { Writer } from '../../../../src/sdk/wire/writer.ts'
import { randomMessages, storedBatch } from './support/batches.ts'
import { seededRandom } from './support/random.ts'

const DIALECTS: readonly Dialect[] = ['classic', 'vsr']
const AT_US = 1_700_000_000_000_000n
const TARGET = { stream: 1, topic: 2, partitioning: { kind: 'balanced' } } as const
/** Where the parts of the payload of a send to TARGET begin: 4 of length, 18 of metadata, then index or batch. */
const INDEX_AT = 22
const BATCH_AT = 22
const message = (text: string, fields: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  payload: new TextEncoder().encode(text),
  originUs: AT_US,
  id: 5n,
  ...fields,
})

function sendBytes(dialect: Dialect, batch: RecordBatch): Uint8Array {
  const writer = new Writer()
  encodeCommand(dialect, { code: CODE.sendMessages, body: { ...TARGET, batch } }, writer)
  return writer.toBytes()
}

function received(dialect: Dialect, payload: Uint8Array): SendMessagesRequest {
  const request = decodeCommand(dialect, CODE.sendMessages, payload)
  assert.ok(request.code === CODE.sendMessages)
  const { batch } = request.body
  return { ...request.body, batch: { ...batch, recordsView: batch.recordsView.slice() } }
}

function polled(dialect: Dialect, batches: readonly StoredBatch[]): Uint8Array {
  const messageCount = batches.reduce((sum, batch) => sum + batch.take, 0)
  const writer = new Writer()
  encodeResponse(dialect, CODE.pollMessages, { partitionId: 3, currentOffset: 999n, messageCount, batches }, writer)
  return writer.toBytes()
}

function polledMessages(dialect: Dialect, payload: Uint8Array) {
  return decodeResponse(dialect, CODE.pollMessages, payload).batches.flatMap((batch) => decodeRecords(batch))
}

function assertRefused(dialect: Dialect, payload: Uint8Array, code: ErrorCode): void {
  assert.throws(
    () => decodeCommand(dialect, CODE.sendMessages, payload),
    (error) => error instanceof EdgeError && error.code === code,
    code,
  )
}

/** The payload with some bytes replaced. */
function edited(payload: Uint8Array, at: number, ...bytes: readonly number[]): Uint8Array {
  const copy = payload.slice()
  copy.set(bytes, at)
  return copy
}

test('what is sent is what is stored, in both dialects', () => {
  const random = seededRandom(31)
  for (const dialect of DIALECTS) {
    for (const clock of ['steady', 'jumping'] as const) {
      const messages = randomMessages(random, 50, 'steady').map((each) => ({
        ...each,
        id: clock === 'steady' ? 0n : 9n,
      }))
      const batch = encodeRecords(messages)
      const request = received(dialect, sendBytes(dialect, batch))
      assert.deepEqual(request.batch, { ...batch, recordsView: batch.recordsView.slice() })
    }
  }
})

test('a classic poll shows offsets, one append time, derived ids and the checksum of each message', () => {
  const batch = storedBatch([message('a', { id: 0n }), message('b', { id: 7n, userHeaders: Uint8Array.of(1, 2, 3) })])
  const payload = polled('classic', [batch])
  const view = new DataView(payload.buffer)
  assert.deepEqual([view.getUint32(0, true), view.getBigUint64(4, true), view.getUint32(12, true)], [3, 999n, 2])
  const [first, second] = polledMessages('classic', payload)
  assert.deepEqual(first, {
    offset: 100n,
    id: (batch.idSeed << 64n) | 100n,
    appendTimeUs: batch.appendTimeUs,
    originUs: AT_US,
    payloadView: Uint8Array.of(97),
    userHeadersView: new Uint8Array(0),
  })
  assert.equal(second?.id, 7n)
  assert.equal(second?.offset, 101n)
  assert.deepEqual(second?.userHeadersView, Uint8Array.of(1, 2, 3))
  assert.equal(view.getBigUint64(16, true), sharedKernel().xxh3(payload.subarray(24, 16 + 65)))
})

test('polls of both dialects show the same messages, whole and sliced, in any number of batches', () => {
  const random = seededRandom(32)
  for (let round = 0; round < 40; round++) {
    const batches = Array.from({ length: 1 + random.below(4) }, (_, i) => {
      const count = 1 + random.below(12)
      const skip = random.below(count)
      const take = 1 + random.below(count - skip)
      const messages = randomMessages(random, count, round % 2 === 0 ? 'steady' : 'jumping')
      return storedBatch(messages, { skip, take, baseOffset: BigInt(i * 100), appendTimeUs: AT_US + BigInt(i) })
    })
    const expected = batches.flatMap((batch) => decodeRecords(batch))
    for (const dialect of DIALECTS) assert.deepEqual(polledMessages(dialect, polled(dialect, batches)), expected)
  }
})

test('a batch larger than the memory of the kernel is polled like any other, whole and sliced', () => {
  const random = seededRandom(5)
  const sizes = [700_000, 3, 2_500_000, 40, 400_000, 400_000, 400_000, 9]
  const messages = sizes.map((size, i) =>
    message('', { payload: random.bytes(size), originUs: AT_US + BigInt(i), id: 0n }),
  )
  const tiny = Array.from({ length: 40_000 }, (_, i) => message(String(i), { id: BigInt(i % 3) }))
  for (const batch of [storedBatch(messages), storedBatch(tiny), storedBatch(messages, { skip: 1, take: 5 })]) {
    const expected = decodeRecords(batch)
    for (const dialect of DIALECTS) assert.deepEqual(polledMessages(dialect, polled(dialect, [batch])), expected)
  }
  const whole = storedBatch(messages)
  const plain = new JsKernel()
  const target = new Uint8Array(whole.recordsView.length + messages.length * 64)
  const size = plain.unpackClassic(sliceOf(whole), target, FLAG.withChecksum | FLAG.stamp | FLAG.deriveIds)
  assert.deepEqual(polled('classic', [whole]).subarray(16), target.subarray(0, size))
})

test('the parts of a classic poll are its messages in order, of about the size that was asked for', () => {
  const random = seededRandom(23)
  const batches = [1, 200, 3, 40, 1, 1].map((count) => storedBatch(randomMessages(random, count, 'jumping')))
  const [, second] = batches
  assert.ok(second)
  const sliced = batches.map((batch) => (batch === second ? { ...second, skip: 7, take: 150 } : batch))
  const expected = polled('classic', sliced)
  for (const partBytes of [1, 100, 5000, 1_000_000]) {
    const { sizeBytes, parts } = partsOfPoll(sliced, partBytes, sharedKernel())
    assert.equal(sizeBytes, expected.length - 16)
    const written = parts.map((part) => polled('classic', part).subarray(16))
    assert.deepEqual(Buffer.concat(written), Buffer.from(expected.subarray(16)))
    const most = Math.max(partBytes, 64 + 700)
    for (const part of written) assert.ok(part.length <= most * 1.5, `${part.length} bytes of ${partBytes}`)
    assert.ok(parts.length <= Math.max(1, 2 * Math.ceil(sizeBytes / partBytes)))
  }
})

test('a VSR poll of clocks more than 71 minutes apart is split, and nothing changes for its reader', () => {
  const hour = 3_600_000_000n
  const origins = [0n, hour, 2n * hour, 0n, 10n * hour].map((shift) => AT_US + shift)
  const batch = storedBatch(origins.map((originUs) => message('x', { originUs })))
  const runs = originRuns(sliceOf(batch))
  assert.deepEqual(
    runs.map(({ skip, take }) => [skip, take]),
    [
      [0, 2],
      [2, 1],
      [3, 1],
      [4, 1],
    ],
  )
  const response = decodeResponse('vsr', CODE.pollMessages, polled('vsr', [batch]))
  assert.equal(response.batches.length, 4)
  assert.deepEqual(polledMessages('vsr', polled('vsr', [batch])), decodeRecords(batch))
  assert.throws(() => sendBytes('vsr', batch), { code: 'EDGE_BATCH_INVALID' })
})

test('a stored slice is sent with the ids derived from its offsets, numbered from 0', () => {
  const messages = ['a', 'b', 'c', 'd'].map((text) => message(text, { id: 0n }))
  const slice = storedBatch(messages, { skip: 1, take: 2 })
  const expected = decodeRecords(slice).map(({ id, payloadView }) => [id, payloadView])
  for (const dialect of DIALECTS) {
    const { batch } = received(dialect, sendBytes(dialect, slice))
    const found = decodeRecords({ ...slice, ...batch, skip: 0, take: 2, baseOffset: 0n })
    assert.deepEqual(
      found.map(({ id, payloadView }) => [id, payloadView]),
      expected,
    )
  }
})

test('an empty batch is 4009', () => {
  for (const dialect of DIALECTS) {
    const payload = sendBytes(dialect, encodeRecords([message('a')]))
    assertRefused(dialect, edited(payload, 18, 0, 0, 0, 0), 'EDGE_BATCH_EMPTY')
  }
  assert.throws(() => encodeRecords([]), { code: 'EDGE_BATCH_EMPTY' })
})

test('classic index entries: offset is 4031, timestamp 4032, a position that goes back 10011', () => {
  const payload = sendBytes('classic', encodeRecords([message('a'), message('b')]))
  assertRefused('classic', edited(payload, INDEX_AT, 1), 'EDGE_BATCH_OFFSET_NONZERO')
  assertRefused('classic', edited(payload, INDEX_AT + 8, 1), 'EDGE_BATCH_TIMESTAMP_NONZERO')
  assertRefused('classic', edited(payload, INDEX_AT + 15, 1), 'EDGE_BATCH_TIMESTAMP_NONZERO')
  assertRefused('classic', edited(payload, INDEX_AT + 20, 1), 'EDGE_BATCH_POSITION_INVALID')
  assert.equal(received('classic', edited(payload, INDEX_AT + 4, 1)).batch.count, 2)
})

test('classic messages: a short one is 4033, bytes after the last 4036, an empty payload is taken', () => {
  const payload = sendBytes('classic', encodeRecords([message('a'), message('b')]))
  assertRefused('classic', payload.subarray(0, payload.length - 1), 'EDGE_BATCH_INDEX_MISSING')
  assertRefused('classic', payload.subarray(0, INDEX_AT + 32 + 30), 'EDGE_BATCH_INDEX_MISSING')
  assertRefused('classic', Uint8Array.from([...payload, 0]), 'EDGE_BATCH_SIZE_INVALID')
  assertRefused('classic', payload.subarray(0, INDEX_AT + 20), 'EDGE_COMMAND_MALFORMED')
  assert.equal(received('classic', sendBytes('classic', encodeRecords([message('')]))).batch.count, 1)
})

test('classic messages of 56-byte headers (0.6) are refused with 4033, as Iggy does', () => {
  const payload = sendBytes('classic', encodeRecords([message('hello')]))
  const old = Uint8Array.from([...payload.subarray(0, INDEX_AT + 16 + 56), ...payload.subarray(INDEX_AT + 16 + 64)])
  assertRefused('classic', old, 'EDGE_BATCH_INDEX_MISSING')
})

test('what classic senders put into checksum, offset and append time is ignored', () => {
  const payload = sendBytes('classic', encodeRecords([message('a')]))
  const at = INDEX_AT + 16
  const noisy = edited(edited(edited(payload, at, 9, 9, 9), at + 24, 7), at + 32, 7)
  assert.deepEqual(received('classic', noisy).batch, received('classic', payload).batch)
})

test('metadata that does not end where it says is malformed', () => {
  for (const dialect of DIALECTS) {
    const payload = sendBytes(dialect, encodeRecords([message('a')]))
    assertRefused(dialect, edited(payload, 0, 19), 'EDGE_COMMAND_MALFORMED')
    assertRefused(dialect, edited(payload, 0, 17), 'EDGE_COMMAND_MALFORMED')
    assertRefused(dialect, edited(payload, 0, 255, 255, 255, 255), 'EDGE_COMMAND_MALFORMED')
  }
})

test('VSR batches: frame checksum 4027, batch checksum 4039', () => {
  const payload = sendBytes('vsr', encodeRecords([message('a'), message('b')]))
  assertRefused('vsr', edited(payload, payload.length - 1, 99), 'EDGE_CHECKSUM_INVALID')
  assertRefused('vsr', edited(payload, BATCH_AT + 256, 1, 2), 'EDGE_CHECKSUM_INVALID')
  assertRefused('vsr', edited(payload, BATCH_AT + 40, 1, 2), 'EDGE_BATCH_CHECKSUM_INVALID')
  assertRefused('vsr', edited(payload, BATCH_AT + 24, 1, 2), 'EDGE_BATCH_CHECKSUM_INVALID')
})

test('VSR batches: counts, lengths and reserved bytes that do not fit are malformed', () => {
  const payload = sendBytes('vsr', encodeRecords([message('a'), message('b')]))
  assertRefused('vsr', edited(payload, BATCH_AT + 48, 3), 'EDGE_COMMAND_MALFORMED')
  assertRefused('vsr', edited(payload, 18, 1), 'EDGE_COMMAND_MALFORMED')
  assertRefused('vsr', edited(payload, BATCH_AT + 32, 0), 'EDGE_COMMAND_MALFORMED')
  assertRefused('vsr', edited(payload, BATCH_AT + 39, 1), 'EDGE_COMMAND_MALFORMED')
  assertRefused('vsr', edited(payload, BATCH_AT + 52, 1), 'EDGE_COMMAND_MALFORMED')
  assertRefused('vsr', edited(payload, BATCH_AT + 255, 1), 'EDGE_COMMAND_MALFORMED')
  assertRefused('vsr', edited(payload, BATCH_AT + 256 + 40, 1), 'EDGE_COMMAND_MALFORMED')
  assertRefused('vsr', edited(payload, BATCH_AT + 256 + 24, 1), 'EDGE_COMMAND_MALFORMED')
  assertRefused('vsr', Uint8Array.from([...payload, 0]), 'EDGE_COMMAND_MALFORMED')
  assertRefused('vsr', payload.subarray(0, BATCH_AT + 100), 'EDGE_COMMAND_MALFORMED')
})

test('payloads above 64,000,000 bytes are 4022 and user headers above 100,000 are 4017', () => {
  const header = (headers: number, payload: number) => {
    const bytes = new Uint8Array(64 + headers + payload)
    const view = new DataView(bytes.buffer)
    view.setUint32(48, headers, true)
    view.setUint32(52, payload, true)
    return bytes
  }
  const kernel = sharedKernel()
  const pack = (bytes: Uint8Array) => kernel.packClassic(bytes, 1, kernel.scratch(bytes.length), 0)
  assert.equal(pack(header(100_001, 5)), -4)
  assert.ok(pack(header(100_000, 5)) > 0)
  assert.equal(pack(header(0, 64_000_001)), -3)
  assert.throws(() => encodeRecords([message('', { payload: new Uint8Array(64_000_001) })]), {
    code: 'EDGE_MESSAGE_TOO_LARGE',
  })
  assert.throws(() => encodeRecords([message('a', { userHeaders: new Uint8Array(100_001) })]), {
    code: 'EDGE_HEADERS_TOO_LARGE',
  })
})

test('a message of 48 MB goes in and out whole', () => {
  const payload = new Uint8Array(48_000_000)
  payload[47_999_999] = 7
  const batch = encodeRecords([message('', { payload })])
  const request = decodeCommand('classic', CODE.sendMessages, sendBytes('classic', batch))
  assert.ok(request.code === CODE.sendMessages)
  assert.equal(request.body.batch.recordsView.length, batch.recordsView.length)
  const found = decodeRecords({ ...storedBatch([message('a')]), ...request.body.batch })
  assert.equal(found[0]?.payloadView.at(-1), 7)
})

test('a poll whose checksums do not fit is refused; one without them is read', () => {
  const payload = polled('classic', [storedBatch([message('abc')])])
  assert.throws(() => polledMessages('classic', edited(payload, payload.length - 1, 0)), {
    code: 'EDGE_CHECKSUM_INVALID',
  })
  const unsummed = edited(payload, 16, 0, 0, 0, 0, 0, 0, 0, 0)
  assert.equal(polledMessages('classic', unsummed).length, 1)
})

test('a message that a VSR server stored with id 0 keeps it', () => {
  const writer = new Writer()
  encodeCommand(
    'vsr',
    { code: CODE.sendMessages, body: { ...TARGET, batch: encodeRecords([message('a', { id: 0n })]) } },
    writer,
  )
  const body = Uint8Array.from([
    ...[3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
    ...writer.toBytes().subarray(BATCH_AT),
  ])
  assert.equal(polledMessages('vsr', body)[0]?.id, 0n)
})

test('records that do not fill their batch are told', () => {
  const stored = storedBatch([message('a')], { take: 2 })
  assert.throws(() => decodeRecords(stored), { code: 'EDGE_BATCH_CORRUPT' })
  for (const dialect of DIALECTS) assert.throws(() => polled(dialect, [stored]), { code: 'EDGE_BATCH_CORRUPT' })
})
