import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encode } from 'cbor-x'
import { decodeCbor } from '../../../../src/runtime/observe/cbor-view.ts'
import { MAX_SHOWN, viewReading } from '../../../../src/runtime/observe/reading-view.ts'

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'))
const text = (value: string): Uint8Array => new TextEncoder().encode(value)

test('SenML in JSON becomes readings with base fields resolved', () => {
  const view = viewReading(
    text(
      '[{"bn":"urn:dev:1/","bt":1.7e9,"bu":"Cel","n":"t","v":21.5},{"n":"h","u":"%RH","v":40,"t":5},{"n":"ok","vb":true}]',
    ),
  )
  assert.equal(view.format, 'senml+json')
  assert.deepEqual(view.readings, [
    { name: 'urn:dev:1/t', value: 21.5, unit: 'Cel', time: 1.7e9 },
    { name: 'urn:dev:1/h', value: 40, unit: '%RH', time: 1.7e9 + 5 },
    { name: 'urn:dev:1/ok', value: true, unit: 'Cel', time: 1.7e9 },
  ])
})

test('SenML in CBOR has numbers for labels', () => {
  const pack = [
    new Map<number, unknown>([
      [-2, 'pump/'],
      [0, 'rpm'],
      [1, '1/min'],
      [2, 1450],
      [6, -3],
    ]),
  ]
  const view = viewReading(new Uint8Array(encode(pack)))
  assert.equal(view.format, 'senml+cbor')
  assert.deepEqual(view.readings, [{ name: 'pump/rpm', value: 1450, unit: '1/min', time: null }])
})

test('other CBOR, JSON, text and bytes are told apart', () => {
  assert.deepEqual(viewReading(new Uint8Array(encode({ a: [1, -2, 'x', true, null] }))), {
    format: 'cbor',
    text: '{"a":[1,-2,"x",true,null]}',
    isCut: false,
  })
  assert.equal(viewReading(text('{"a":1}')).format, 'json')
  assert.equal(viewReading(text('{not json')).format, 'text')
  assert.equal(viewReading(text('grüße\t7')).format, 'text')
  assert.deepEqual(viewReading(hex('ff00fe')), { format: 'hex', text: 'ff 00 fe', isCut: false })
})

test('long payloads are cut and say so', () => {
  const long = viewReading(text('ä'.repeat(10_000)))
  assert.equal(long.text.length, MAX_SHOWN)
  assert.equal(long.isCut, true)
  assert.equal(viewReading(new Uint8Array(1_000_000).fill(0xff)).isCut, true)
})

test('RFC 8949 examples read as they should', () => {
  const examples: readonly (readonly [string, unknown])[] = [
    ['1bffffffffffffffff', '18446744073709551615'],
    ['3903e7', -1000],
    ['f93c00', 1],
    ['f90001', 2 ** -24],
    ['f97c00', 'Infinity'],
    ['fb3ff199999999999a', 1.1],
    ['fa47c35000', 100000],
    ['c074323031332d30332d32315432303a30343a30305a', '2013-03-21T20:04:00Z'],
    ['4401020304', "h'01020304'"],
    ['5f42010243030405ff', "h'0102'h'030405'"],
    ['9f018202039f0405ffff', [1, [2, 3], [4, 5]]],
    ['bf61610161629f0203ffff', { a: 1, b: [2, 3] }],
    ['f6', null],
  ]
  for (const [bytes, value] of examples) assert.deepEqual(decodeCbor(hex(bytes)), value)
})

test('truncated, nested and boastful CBOR is no CBOR, quickly', () => {
  for (const bytes of [
    '',
    '1b',
    '9bffffffffffffffff',
    '5bffffffffffffffff00',
    'bf6161ff',
    'ff',
    '1c',
    '62c328',
    '81'.repeat(100_000),
  ])
    assert.equal(decodeCbor(hex(bytes)), undefined)
})

test('random bytes never throw', () => {
  let seed = 42
  for (let round = 0; round < 20_000; round++) {
    const bytes = Uint8Array.from({ length: round % 40 }, () => {
      seed = (seed * 1103515245 + 12345) & 0x7fffffff
      return seed >> 16
    })
    const view = viewReading(bytes)
    assert.ok(view.text.length <= MAX_SHOWN)
  }
})
