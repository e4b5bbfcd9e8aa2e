/** The examples are those of RFC 8428, section 5 and 6. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeCbor, encodeCbor } from '../../../../src/sdk/senml/cbor.ts'
import { decodeSenmlCbor, decodeSenmlJson, encodeSenmlCbor, encodeSenmlJson } from '../../../../src/sdk/senml/pack.ts'
import { resolveSenml, senmlOfReadings } from '../../../../src/sdk/senml/resolve.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

const NOW_US = 1_700_000_000_000_000n
const json = (text: string): Uint8Array => new TextEncoder().encode(text)

const MULTIPLE = `[{"bn":"urn:dev:ow:10e2073a0108006:","bt":1.276020076001e+09,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},
  {"n":"current","t":-5,"v":1.2},{"n":"current","t":-4,"v":1.3},{"n":"current","v":1.7}]`
/** RFC 8428 section 6: the same pack (with times as numbers) in CBOR. */
const MULTIPLE_CBOR =
  '87a721781b75726e3a6465763a6f773a3130653230373361303130383030363a22fb41d303a15b00106223614120050067766f6c7461676501615602fb405e066666666666a3006763757272656e74062402fb3ff3333333333333a3006763757272656e74062302fb3ff4cccccccccccda3006763757272656e74062202fb3ff6666666666666a3006763757272656e74062102f93e00a3006763757272656e74062002fb3ff999999999999aa3006763757272656e74060002fb3ffb333333333333'

test('base name, time and unit apply until they change', () => {
  const readings = resolveSenml(decodeSenmlJson(json(MULTIPLE)), NOW_US)
  assert.deepEqual(
    readings.map(({ name, unit, value, timeUs }) => [name, unit, value, timeUs]),
    [
      ['urn:dev:ow:10e2073a0108006:voltage', 'V', 120.1, 1276020076001000n],
      ['urn:dev:ow:10e2073a0108006:current', 'A', 1.2, 1276020071001000n],
      ['urn:dev:ow:10e2073a0108006:current', 'A', 1.3, 1276020072001000n],
      ['urn:dev:ow:10e2073a0108006:current', 'A', 1.7, 1276020076001000n],
    ],
  )
})

test('the CBOR example of the RFC decodes, half floats and all, and encodes to the same bytes', () => {
  const pack = decodeSenmlCbor(Uint8Array.fromHex(MULTIPLE_CBOR))
  assert.equal(pack.length, 7)
  assert.deepEqual([pack[0]?.bver, pack[0]?.bu, pack[0]?.v, pack[4]?.v], [5, 'A', 120.1, 1.5])
  const again = decodeSenmlCbor(encodeSenmlCbor(pack))
  assert.deepEqual(again, pack)
  assert.ok(encodeSenmlCbor(pack).length <= MULTIPLE_CBOR.length / 2)
})

test('values of every kind go through both forms', () => {
  const pack = [
    { bn: 'dev:', n: 'on', vb: true },
    { n: 'label', vs: 'æ' },
    { n: 'blob', vd: Uint8Array.of(0, 255, 62) },
    { n: 'energy', u: 'kWh', s: 12.5, ut: 60 },
  ]
  assert.deepEqual(decodeSenmlJson(encodeSenmlJson(pack)), pack)
  assert.deepEqual(decodeSenmlCbor(encodeSenmlCbor(pack)), pack)
  assert.match(new TextDecoder().decode(encodeSenmlJson(pack)), /"vd":"AP8-"/)
})

test('relative times count from now', () => {
  const [reading] = resolveSenml([{ n: 'a', v: 1, t: -10 }], NOW_US)
  assert.equal(reading?.timeUs, NOW_US - 10_000_000n)
})

test('base value and base sum are added', () => {
  const readings = resolveSenml(
    [
      { n: 'a', bv: 20, v: 1.5 },
      { n: 'b', v: 2 },
      { n: 'c', bs: 100, s: 1 },
    ],
    NOW_US,
  )
  assert.deepEqual(
    readings.map(({ value, sum }) => [value, sum]),
    [
      [21.5, undefined],
      [22, undefined],
      [null, 101],
    ],
  )
})

test('readings become a pack that resolves to them again', () => {
  const readings = [
    { name: 'dev:temp', value: 21.5, unit: 'Cel', timeUs: NOW_US },
    { name: 'dev:temp', value: 21.6, unit: 'Cel', timeUs: NOW_US + 250_000n },
    { name: 'dev:door', value: 'open', unit: 'Cel', timeUs: NOW_US + 500_000n },
  ]
  const pack = senmlOfReadings(readings, 'dev:')
  assert.deepEqual(resolveSenml(pack, 0n), readings)
  assert.equal(pack[1]?.u, undefined)
})

test('a base name that not every reading has renames none of them', () => {
  const readings = ['dev:temp', 'gw:load'].map((name) => ({ name, value: 1, timeUs: NOW_US }))
  const again = resolveSenml(senmlOfReadings(readings, 'dev:'), 0n)
  assert.deepEqual(again, readings)
})

test('a reading of a time that SenML takes for one relative to now is refused', () => {
  const at = (timeUs: bigint) => ({ name: 'dev:temp', value: 1, timeUs })
  const leastUs = BigInt(2 ** 28) * 1_000_000n
  assert.deepEqual(resolveSenml(senmlOfReadings([at(leastUs)]), NOW_US), [at(leastUs)])
  for (const readings of [[at(300_000_000n)], [at(NOW_US), at(leastUs - 1n)]])
    assert.throws(() => senmlOfReadings(readings), { code: 'EDGE_READING_INVALID' })
})

test('decimal fractions are exact numbers', () => {
  const pack = decodeSenmlCbor(Uint8Array.fromHex('81a2006161' + '02' + 'c4822119' + '086d'))
  assert.equal(pack[0]?.v, 21.57)
})

test('what RFC 8428 forbids is refused', () => {
  const refused = [
    '{"n":"a","v":1}',
    '[1]',
    '[{"n":"a","v":"x"}]',
    '[{"n":"a","vd":"%"}]',
    '[{"n":"a","v":1,"must_":2}]',
    'nonsense',
  ]
  for (const text of refused) assert.throws(() => decodeSenmlJson(json(text)), { code: 'EDGE_READING_INVALID' }, text)
  const unresolved = [
    [{ n: 'a' }],
    [{ n: ' a', v: 1 }],
    [{ v: 1 }],
    [{ n: 'a', v: 1, vs: 'x' }],
    [{ n: 'a', bver: 11, v: 1 }],
  ]
  for (const pack of unresolved) assert.throws(() => resolveSenml(pack, NOW_US), { code: 'EDGE_READING_INVALID' })
})

test('times and sums beyond all numbers are refused, as everything that is no pack', () => {
  for (const text of [
    '[{"n":"a","v":1,"t":1.7e308}]',
    '[{"n":"a","v":1,"bt":-1e303}]',
    '[{"n":"a","bv":1e308,"v":1e308}]',
  ])
    assert.throws(() => resolveSenml(decodeSenmlJson(json(text)), NOW_US), { code: 'EDGE_READING_INVALID' }, text)
})

test('fields that are not known are passed over', () => {
  assert.deepEqual(decodeSenmlJson(json('[{"n":"a","v":1,"hint":2}]')), [{ n: 'a', v: 1 }])
})

test('cut and random bytes never do more than fail', () => {
  const whole = Uint8Array.fromHex(MULTIPLE_CBOR)
  for (let length = 0; length < whole.length; length++) {
    assert.throws(() => decodeSenmlCbor(whole.subarray(0, length)), { code: 'EDGE_READING_INVALID' })
  }
  const random = new SeededRandom(3)
  for (let round = 0; round < 20_000; round++) {
    const bytes = Uint8Array.from({ length: random.below(40) }, () => random.below(256))
    try {
      decodeCbor(bytes)
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'EDGE_READING_INVALID')
    }
  }
})

test('numbers take the shortest form that keeps them', () => {
  const sizes = [0, 23, 24, 256, 65536, -1, 1.5, 0.1, 1e10, 2 ** 40, Number.NaN].map(
    (value) => encodeCbor(value).length,
  )
  assert.deepEqual(sizes, [1, 1, 2, 3, 5, 1, 3, 9, 9, 9, 3])
  assert.equal(decodeCbor(encodeCbor(16777216.5)), 16777216.5)
  assert.ok(Object.is(decodeCbor(encodeCbor(-0)), -0))
})
