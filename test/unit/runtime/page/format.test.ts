import assert from 'node:assert/strict'
import { test } from 'node:test'

/** The page's modules are plain JavaScript for browsers: their types are written down here. */
interface Format {
  formatBytes(bytes: number): string
  formatCount(count: number): string
  formatRate(perSecond: number | null): string
  formatDuration(us: number): string
  formatAge(atUs: number, nowUs: number): string
  formatTime(us: number, now: Date): string
  formatValue(value: unknown): string
  visible(text: string): string
}
interface RatesModule {
  Rates: new () => { observe(key: string, count: number, atUs: number): number | null; keep(keys: Set<string>): void }
}

const PAGE = '../../../../src/runtime/page'
const format = (await import(`${PAGE}/format.js`)) as Format
const { Rates } = (await import(`${PAGE}/rates.js`)) as RatesModule

test('sizes and counts keep to a few digits', () => {
  assert.deepEqual([0, 999, 1000, 1536, 10_240, 812e6, 2e9, 4e15].map(format.formatBytes), [
    '0 B',
    '999 B',
    '0.98 KiB',
    '1.50 KiB',
    '10.0 KiB',
    '774 MiB',
    '1.86 GiB',
    '3.55 PiB',
  ])
  assert.equal(format.formatCount(1234567), '1\u202f234\u202f567')
})

test('rates change to a minute where a second says nothing', () => {
  assert.deepEqual([null, 0, 0.05, 1, 19.34, 1234].map(format.formatRate), [
    '–',
    '0/s',
    '3.00/min',
    '1.00/s',
    '19.3/s',
    '1\u202f234/s',
  ])
})

test('durations show their two largest units', () => {
  assert.deepEqual([0, 59e6, 60e6, 3_725e6, 90_061e6, -5].map(format.formatDuration), [
    '0 s',
    '59 s',
    '1 min',
    '1 h 2 min',
    '1 d 1 h',
    '0 s',
  ])
  assert.deepEqual(
    [format.formatAge(0, 5e6), format.formatAge(9e6, 5e6), format.formatAge(5e6, 5.5e6)],
    ['5 s ago', 'in 4 s', 'now'],
  )
})

test('times show the day only when it is another one', () => {
  const now = new Date(2026, 10, 29, 12, 0, 0)
  assert.equal(format.formatTime(new Date(2026, 10, 29, 3, 4, 5).getTime() * 1000, now), '03:04:05')
  assert.equal(format.formatTime(new Date(2026, 10, 28, 3, 4, 5).getTime() * 1000, now), '2026-11-28 03:04:05')
})

test('values lose the noise of floats, not their meaning', () => {
  assert.deepEqual([21.500000000000004, 801325.4, 7, true, 'open'].map(format.formatValue), [
    '21.5',
    '801325',
    '7',
    'true',
    'open',
  ])
})

test('a rate needs two looks, spans ten seconds, and begins anew with its counter', () => {
  const rates = new Rates()
  assert.equal(rates.observe('a', 100, 0), null)
  assert.equal(rates.observe('a', 110, 2e6), 5)
  for (let second = 4; second <= 40; second += 2) rates.observe('a', 110, second * 1e6)
  assert.equal(rates.observe('a', 120, 42e6), 1)
  assert.equal(rates.observe('a', 5, 44e6), null)
  rates.keep(new Set())
  assert.equal(rates.observe('a', 7, 46e6), null)
})

test('what would turn a name round is shown, not obeyed', () => {
  assert.equal(format.visible('a\u202egpj.exe\u001b[31m'), 'a\\u{202e}gpj.exe\\u{1b}[31m')
  assert.equal(format.visible('two\nlines\tä 漢字'), 'two\nlines\tä 漢字')
  assert.equal(format.formatValue('\u2066on'), '\\u{2066}on')
})
