/** Reader, writer, header values, codes and error numbers. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import {
  CODE,
  codeOfOperation,
  commandName,
  hasResultSection,
  isCommandCode,
  OPERATION,
  operationOf,
} from '../../../../src/sdk/wire/codes.ts'
import {
  IGGY_ERROR_NAMES,
  iggyErrorName,
  isIggyErrorCode,
  VSR_ONLY_ERRORS,
} from '../../../../src/sdk/wire/error-codes.ts'
import {
  type HeaderKind,
  type HeaderScalar,
  headerKindCode,
  headerKindName,
  headerScalarOf,
  headerValueOf,
  stringHeader,
} from '../../../../src/sdk/wire/header-values.ts'
import { Reader } from '../../../../src/sdk/wire/reader.ts'
import { decodeUserHeaders, encodeUserHeaders } from '../../../../src/sdk/wire/user-headers.ts'
import { MAX_WRITER_BYTES, Writer } from '../../../../src/sdk/wire/writer.ts'

test('whatever a writer writes at the edge of its buffer, a reader reads', () => {
  for (let prefix = 0; prefix < 40; prefix++) {
    const writer = new Writer(new Uint8Array(40))
    writer.zeros(prefix)
    writer.u8(255)
    writer.u16(65_535)
    writer.u32(0xffff_fffe)
    writer.u64(0xffff_ffff_ffff_fffdn)
    writer.u128((1n << 128n) - 5n)
    writer.f32(0.5)
    writer.bool(true)
    writer.name('ü')
    writer.text('')
    const reader = new Reader(writer.writtenView, 'values')
    reader.bytesView(prefix)
    assert.deepEqual([reader.u8(), reader.u16(), reader.u32()], [255, 65_535, 0xffff_fffe])
    assert.deepEqual([reader.u64(), reader.u128()], [0xffff_ffff_ffff_fffdn, (1n << 128n) - 5n])
    assert.deepEqual([reader.f32(), reader.bool(), reader.name(), reader.text()], [0.5, true, 'ü', ''])
    assert.equal(reader.remaining, 0)
  }
})

test('a writer returns to its first buffer, and refuses to grow beyond any frame', () => {
  const first = new Uint8Array(16)
  const writer = new Writer(first)
  writer.zeros(100)
  assert.notEqual(writer.bufferView.buffer, first.buffer)
  writer.reset()
  writer.u32(7)
  assert.equal(writer.bufferView.buffer, first.buffer)
  assert.deepEqual(writer.toBytes(), Uint8Array.of(7, 0, 0, 0))
  assert.throws(() => writer.ensure(MAX_WRITER_BYTES), { code: 'EDGE_FRAME_TOO_LARGE' })
})

test('a writer that gives its buffer away writes no more into it', () => {
  const first = new Uint8Array(16)
  const writer = new Writer(first)
  writer.u32(7)
  assert.equal(writer.hasGrown, false)
  assert.equal(writer.replaceFirst(new Uint8Array(8)), first)
  assert.equal(writer.length, 0)
  writer.u32(8)
  assert.deepEqual(first.subarray(0, 4), Uint8Array.of(7, 0, 0, 0))
  assert.deepEqual(writer.toBytes(), Uint8Array.of(8, 0, 0, 0))
  writer.zeros(100)
  assert.equal(writer.hasGrown, true)
})

test('text keeps a byte order mark and refuses what is not UTF-8', () => {
  const bom = Uint8Array.of(4, 0xef, 0xbb, 0xbf, 65)
  assert.equal(new Reader(bom, 'text').name(), '\ufeffA')
  assert.throws(() => new Reader(Uint8Array.of(1, 0xff), 'text').name(), { code: 'EDGE_COMMAND_MALFORMED' })
})

test('a reader of a part does not read beyond it', () => {
  const reader = new Reader(Uint8Array.of(1, 2, 3, 4, 5), 'part')
  const part = reader.sub(2)
  assert.throws(() => part.u32(), { code: 'EDGE_COMMAND_MALFORMED' })
  assert.equal(reader.u8(), 3)
  assert.throws(() => reader.sub(3), { code: 'EDGE_COMMAND_MALFORMED' })
})

test('header values of every kind go in and out', () => {
  const samples: readonly [HeaderKind, HeaderScalar][] = [
    ['raw', Uint8Array.of(1, 2)],
    ['string', 'text'],
    ['bool', true],
    ['int8', -1],
    ['int16', -300],
    ['int32', -70_000],
    ['int64', -(1n << 60n)],
    ['int128', -(1n << 120n)],
    ['uint8', 255],
    ['uint16', 65_535],
    ['uint32', 0xffff_ffff],
    ['uint64', (1n << 64n) - 1n],
    ['uint128', (1n << 128n) - 1n],
    ['float32', 0.5],
    ['float64', Math.PI],
  ]
  assert.equal(samples.length, 15)
  const headers = samples.map(([kind, value]) => ({ key: stringHeader(kind), value: headerValueOf(kind, value) }))
  const decoded = decodeUserHeaders(encodeUserHeaders(headers))
  decoded.forEach(({ key, value }, i) => {
    assert.equal(headerScalarOf(key), samples[i]?.[0])
    assert.deepEqual(headerScalarOf(value), samples[i]?.[1])
    assert.equal(headerKindCode(value.kind), i + 1)
    assert.equal(headerKindName(i + 1), value.kind)
  })
  assert.equal(headerKindName(0), undefined)
  assert.equal(headerKindName(16), undefined)
})

test('user headers of wrong kinds, sizes and lengths are refused', () => {
  const key = [2, 1, 0, 0, 0, 107]
  for (const value of [
    [0, 1, 0, 0, 0, 1],
    [16, 1, 0, 0, 0, 1],
    [11, 3, 0, 0, 0, 1, 2, 3],
    [2, 0, 0, 0, 0],
    [2, 0, 1, 0, 0, ...new Uint8Array(256)],
    [2, 5, 0, 0, 0, 1],
  ]) {
    assert.throws(() => decodeUserHeaders(Uint8Array.from([...key, ...value])), { name: 'EdgeError' })
  }
  const many = Array.from({ length: 400 }, () => ({ key: stringHeader('k'), value: stringHeader('v'.repeat(255)) }))
  assert.throws(() => encodeUserHeaders(many), { code: 'EDGE_HEADERS_TOO_LARGE' })
})

test('codes and operations belong to each other as in the protocol', () => {
  assert.equal(operationOf(CODE.pollMessages), OPERATION.nonReplicated)
  assert.equal(operationOf(CODE.sendMessages), 160)
  assert.equal(operationOf(CODE.logoutUser), 3)
  assert.equal(operationOf(CODE.leaveConsumerGroup), 149)
  assert.equal(operationOf(9999), OPERATION.nonReplicated)
  for (const [name, operation] of Object.entries(OPERATION)) {
    if (name === 'nonReplicated') assert.equal(codeOfOperation(operation), undefined)
    else assert.equal(operationOf(codeOfOperation(operation) ?? 0), operation, name)
  }
  assert.equal(commandName(CODE.loginWithPersonalAccessToken), 'login_with_personal_access_token')
  assert.equal(commandName(9999), 'unknown_9999')
  assert.ok(isCommandCode('classic', CODE.ping) && isCommandCode('vsr', CODE.ping))
})

test('result sections belong to metadata, offset writes and register alone', () => {
  const framed = Array.from({ length: 256 }, (_, operation) => operation).filter(hasResultSection)
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
  assert.deepEqual(framed, [1, ...range(64, 68), ...range(128, 137), ...range(139, 149), 161, 162])
})

test('every error number has one name', () => {
  assert.equal(Object.keys(IGGY_ERROR_NAMES).length, 240)
  assert.equal(new Set(Object.values(IGGY_ERROR_NAMES)).size, 240)
  assert.equal(IGGY_ERROR_NAMES[1009], 'stream_id_not_found')
  assert.equal(iggyErrorName(3), 'invalid_command')
  assert.equal(iggyErrorName(77_777), 'error')
  assert.ok([...VSR_ONLY_ERRORS].every(isIggyErrorCode))
  assert.ok(VSR_ONLY_ERRORS.has(58) && !VSR_ONLY_ERRORS.has(40))
})

test('the table of commands in the docs is the one in the code', async () => {
  const text = await readFile(new URL('../../../../docs/protocol/iggy.md', import.meta.url), 'utf8')
  const rows = [...text.matchAll(/^\| (\d+) \| `(\w+)` \| (\d+|–) \| (both|classic|vsr) \|/gm)]
  const expected = Object.values(CODE)
    .toSorted((a, b) => a - b)
    .map((code) => {
      const dialects = (['classic', 'vsr'] as const).filter((dialect) => isCommandCode(dialect, code))
      const dialect = dialects.length === 2 ? 'both' : dialects[0]
      return [`${code}`, commandName(code), dialect === 'classic' ? '–' : `${operationOf(code)}`, dialect]
    })
  assert.deepEqual(
    rows.map((row) => row.slice(1)),
    expected,
  )
})
