import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatSetting, parseAddress, parseSetting } from '../../../../src/runtime/config/value.ts'
import { autoSize, boolean, choice, duration, integer, MIB, size, texts } from '../../../../src/setting.ts'

const limits = { default: 8 * MIB, min: MIB, max: 16 * MIB }

describe('configuration values', () => {
  it('reads a size with a binary, a decimal or no unit', () => {
    for (const [text, bytes] of [
      ['8 MiB', 8 * MIB],
      ['2MB', 2_000_000],
      ['1.5 MiB', 1.5 * MIB],
      [2_000_000, 2_000_000],
    ] as const) {
      assert.deepEqual(parseSetting(size(limits, ''), text), { value: bytes })
    }
  })

  it('says the bounds when a size is outside of them or no size at all', () => {
    for (const found of ['17 MiB', '1 KiB', '8 MiX', '', '-1', true, {}, [], null]) {
      const parsed = parseSetting(size(limits, ''), found)
      assert.ok('expected' in parsed, String(found))
      assert.match(parsed.expected, /from "1 MiB" to "16 MiB"/)
    }
  })

  it('reads durations down to milliseconds', () => {
    const setting = duration({ default: 0, min: 0, max: 86_400_000 }, '')
    assert.deepEqual(parseSetting(setting, '200 ms'), { value: 200 })
    assert.deepEqual(parseSetting(setting, '5 m'), { value: 300_000 })
    assert.deepEqual(parseSetting(setting, '1.5 h'), { value: 5_400_000 })
    assert.deepEqual(parseSetting(setting, '1h 30m'), { value: 5_400_000 })
    assert.deepEqual(parseSetting(setting, '7 hours'), { value: 25_200_000 })
    for (const found of ['5 parsec', '500 us', 'never', 'default', ''])
      assert.ok('expected' in parseSetting(setting, found))
  })

  it('refuses a duration that does not say its unit, but for 0', () => {
    const setting = duration({ default: 0, min: 0, max: 86_400_000 }, '')
    for (const found of [86_400, '86400', 60n])
      assert.deepEqual(parseSetting(setting, found), {
        expected: 'a duration with its unit, such as "200 ms" or "30 s", from "0 ms" to "1 d"',
      })
    for (const found of [0, '0', 0n]) assert.deepEqual(parseSetting(setting, found), { value: 0 })
  })

  it('takes the words of the environment for true and false', () => {
    assert.deepEqual(parseSetting(boolean(false, ''), '1'), { value: true })
    assert.deepEqual(parseSetting(boolean(true, ''), 'false'), { value: false })
    assert.ok('expected' in parseSetting(boolean(true, ''), 'yes'))
  })

  it('lets an automatic size be automatic, off or a number', () => {
    const setting = autoSize({ min: 0, max: 1e12 }, '')
    assert.deepEqual(parseSetting(setting, 'auto'), { value: 'auto' })
    assert.deepEqual(parseSetting(setting, 'off'), { value: 0 })
    assert.deepEqual(parseSetting(setting, '1 GiB'), { value: 1024 * MIB })
  })

  it('reads a list of texts, from the environment with commas between them', () => {
    const setting = texts(['*'], '')
    for (const found of [['a', ' b ', ''], 'a, b', ' a ,b,'])
      assert.deepEqual(parseSetting(setting, found), { value: ['a', 'b'] })
    assert.deepEqual(parseSetting(setting, ''), { value: [] })
    for (const found of [[1], 1, true, {}, null]) assert.ok('expected' in parseSetting(setting, found), String(found))
    assert.equal(formatSetting(setting, ['a', 'b"']), '["a", "b\\""]')
  })

  it('names the choices', () => {
    const parsed = parseSetting(choice('durable', ['durable', 'buffered'], ''), 'maybe')
    assert.deepEqual(parsed, { expected: 'one of "durable", "buffered"' })
  })

  it('refuses fractions and numbers beyond the bounds of an integer', () => {
    const setting = integer({ default: 1, min: 1, max: 10 }, '')
    for (const found of [0, 11, 1.5, '1.5', Number.NaN]) assert.ok('expected' in parseSetting(setting, found))
    assert.deepEqual(parseSetting(setting, '10'), { value: 10 })
  })

  it('splits host and port, with brackets around an IPv6 address', () => {
    assert.deepEqual(parseAddress('127.0.0.1:0'), { host: '127.0.0.1', port: 0 })
    assert.deepEqual(parseAddress('[::]:8443'), { host: '::', port: 8443 })
    for (const text of ['8090', 'host', '::1:80', 'host:65536', 'host:-1', ''])
      assert.equal(parseAddress(text), null, text)
  })

  it('writes a value back as an operator would', () => {
    assert.equal(formatSetting(size(limits, ''), 8 * MIB), '"8 MiB"')
    assert.equal(formatSetting(size(limits, ''), 16_000_000), '"16 MB"')
    assert.equal(formatSetting(size(limits, ''), 2 ** 50), '"1024 TiB"')
    assert.equal(formatSetting(size(limits, ''), 0), '"0 B"')
    assert.equal(formatSetting(size(limits, ''), 1025), '"1025 B"')
    assert.equal(formatSetting(duration({ default: 0, min: 0, max: 1e9 }, ''), 90_000), '"90 s"')
    assert.equal(formatSetting(boolean(true, ''), true), 'true')
  })
})
