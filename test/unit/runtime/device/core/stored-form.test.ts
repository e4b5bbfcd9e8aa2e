import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeviceClock } from '../../../../../src/runtime/device/core/device-clock.ts'
import type { Moment } from '../../../../../src/runtime/device/core/exchange.ts'
import { StoredForm } from '../../../../../src/runtime/device/core/stored-form.ts'
import type { Frame, Value } from '../../../../../src/sdk/wire/edge/index.ts'
import { recordsOf } from '../../../../support/memory-device-broker.ts'

const WALL_US = 1_764_439_281_234_000n
const three = [
  { name: 'temp', unit: 'Cel', scale: -2 },
  { name: 'hum', unit: '%RH', scale: -1 },
  { name: 'count', unit: '', scale: 0 },
]

test("numbers become a SenML pack in JSON, scaled without rounding errors, with the edge's headers", () => {
  const [record] = stored({ kind: 3, options: { fields: three, storedAs: 1 } }, [[2157, null, 3]])
  assert.equal(
    record?.payload,
    '[{"bn":"dev-0042/","bt":1764439281.234,"n":"temp","u":"Cel","v":21.57},{"n":"count","v":3}]',
  )
  assert.deepEqual(record?.headers, { device: 'dev-0042', 'content-type': 'application/senml+json' })
  assert.equal(record?.originUs, WALL_US)
})

test('a number that is written with an exponent is scaled as any other, and one beyond all numbers is named', () => {
  const given = { kind: 3, options: { fields: three.slice(0, 1), storedAs: 1 } }
  const values = [5e-7, -1e-9, 1e21, 2.5e-300, 1.5].map(
    (value) => JSON.parse(stored(given, [value])[0]?.payload ?? '')[0].v,
  )
  assert.deepEqual(values, [5e-9, -1e-11, 1e19, 2.5e-302, 0.015])
  const form = formOf({ kind: 3, options: { fields: [{ name: 'force', unit: 'N', scale: 12 }] } })
  assert.deepEqual(form.problemOf(1e297, 100), { isTooLarge: false, text: 'a number that its scale makes infinite' })
  assert.equal(form.problemOf(1e296, 100), undefined)
  assert.equal(form.problemOf(null, 100), undefined)
})

test('the same in CBOR uses the integer labels of RFC 8428', () => {
  const form = formOf({ kind: 3, options: { fields: three.slice(0, 1) } })
  const { recordsView } = form.pack([{ originUs: WALL_US, value: 2157 }])
  const hex = Buffer.from(recordsView).toString('hex')
  // [{-2: "dev-0042/", -3: 1764439281.234, 0: "temp", 1: "Cel", 2: 21.57}]
  const time = Buffer.alloc(8)
  time.writeDoubleBE(1764439281.234)
  const value = Buffer.alloc(8)
  value.writeDoubleBE(21.57)
  const pack = `81a521696465762d303034322f22fb${time.toString('hex')}006474656d70016343656c02fb${value.toString('hex')}`
  assert.ok(hex.includes(pack), hex)
})

test('a reading without any value keeps name and time', () => {
  const [record] = stored({ kind: 3, options: { fields: three, storedAs: 1 } }, [[null, null, null]])
  assert.equal(record?.payload, '[{"bn":"dev-0042/","bt":1764439281.234}]')
})

test('bytes are stored as they came, with the content type of the alias', () => {
  const [record] = stored({ kind: 0, options: { contentType: 'text/plain' } }, [Buffer.from('door open')])
  assert.equal(record?.payload, 'door open')
  assert.equal(record?.headers['content-type'], 'text/plain')
})

test('values of another shape than declared are named', () => {
  const numbers = formOf({ kind: 3, options: { fields: three } })
  assert.equal(numbers.problemOf([1, 2], 100)?.text, '3 fields declared, 2 sent')
  assert.equal(numbers.problemOf(1, 100)?.text, '3 fields declared, 1 sent')
  assert.equal(numbers.problemOf(new Uint8Array(3), 100)?.isTooLarge, false)
  const single = formOf({ kind: 3, options: { fields: three.slice(0, 1) } })
  assert.equal(single.problemOf([1], 100)?.isTooLarge, false)
  const raw = formOf({ kind: 0 })
  assert.equal(raw.problemOf(new Uint8Array(101), 100)?.isTooLarge, true)
  assert.equal(raw.problemOf(5, 100)?.isTooLarge, false)
})

test("wall time: the device's word from a good source, then the edge's, then its own clock, then the arrival", () => {
  const clock = new DeviceClock()
  clock.begin(7)
  assert.deepEqual(clock.originOf(500, moment()), { originUs: WALL_US, isTrusted: false })
  clock.declareCurrent(wall(1_764_000_000, 0), moment())
  assert.equal(clock.originOf(500, moment()).originUs, 1_764_000_000_500_000n)
  clock.observe(1000, moment())
  assert.equal(clock.originOf(500, moment()).originUs, WALL_US - 500_000n)
  clock.declareCurrent(wall(1_764_100_000, 2), moment())
  assert.equal(clock.originOf(500, moment()).originUs, 1_764_100_000_500_000n)
  assert.equal(clock.originOf(null, moment()).originUs, WALL_US)
})

test('a real time clock that was never set, or runs ahead by days, is not believed', () => {
  for (const seconds of [1_000_000, 1_764_439_281 + 3 * 86_400]) {
    const clock = new DeviceClock()
    clock.begin(undefined)
    clock.declareCurrent(wall(seconds, 0), moment())
    assert.equal(clock.originOf(0, moment()).isTrusted, false)
  }
})

test('a reading of an earlier boot is stamped by what is known of that boot', () => {
  const clock = new DeviceClock()
  clock.begin(7)
  clock.declare(6, wall(1_763_000_000, 3), moment())
  assert.equal(clock.originOf({ boot: 6, uptimeMs: 2000 }, moment()).originUs, 1_763_000_002_000_000n)
  assert.equal(clock.originOf({ boot: 5, uptimeMs: 2000 }, moment()).isTrusted, false)
})

function formOf(given: Partial<Frame<'alias'>>): StoredForm {
  return new StoredForm('dev-0042', { type: 'alias', alias: 1, topic: 'sensors/climate', kind: 3, ...given })
}

function stored(given: Partial<Frame<'alias'>>, values: readonly Value[]) {
  return recordsOf(formOf(given).pack(values.map((value) => ({ originUs: WALL_US, value }))))
}

function wall(seconds: number, source: number) {
  return { seconds, milliseconds: 0, accuracyMs: 10, source }
}

function moment(): Moment {
  return { monotonicMs: 0, wallUs: WALL_US, isWallTrusted: true, accuracyMs: 10 }
}
