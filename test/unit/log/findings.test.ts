import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Findings } from '../../../src/log/findings.ts'
import type { Logger } from '../../../src/logger.ts'

const HOUR_US = 3600e6

/** Findings with a clock that the test sets and the events that were logged. */
function start() {
  const clock = { now: 0, wallUs: () => BigInt(clock.now), monotonicUs: () => clock.now }
  const logged: string[] = []
  const write: Logger['error'] = (_event, fields) => void logged.push(JSON.stringify(fields))
  const logger: Logger = { error: write, warn: write, info: write, debug: write }
  const findings = new Findings(clock, logger)
  const lose = (count: number, series?: string): void =>
    findings.report({
      event: 'loss',
      level: 'error',
      text: `${count} lost`,
      fields: {},
      ...(series === undefined ? {} : { series }),
    })
  const texts = (): string[] => findings.list.map(({ text }) => text)
  return { clock, logged, lose, texts }
}

test('findings are logged and kept, the newest last, up to a bound', () => {
  const { logged, lose, texts } = start()
  for (let count = 0; count < 300; count++) lose(count)
  assert.equal(logged.length, 300)
  assert.deepEqual([texts().length, texts().at(-1)], [256, '299 lost'])
})

test('trouble that goes on stays one finding, and is logged again after an hour', () => {
  const { clock, logged, lose, texts } = start()
  lose(1)
  lose(10, 'unread 7')
  lose(2)
  for (let count = 11; count <= 20; count++) {
    clock.now += HOUR_US / 10
    lose(count, 'unread 7')
  }
  assert.deepEqual(texts(), ['1 lost', '2 lost', '20 lost'])
  assert.deepEqual(
    logged,
    ['1 lost', '10 lost', '2 lost', '20 lost'].map((text) => JSON.stringify({ text })),
  )
})

test('a series whose finding was pushed out is told anew', () => {
  const { logged, lose, texts } = start()
  for (let series = 0; series < 600; series++) lose(series, `unread ${series}`)
  assert.equal(texts().length, 256)
  lose(1000, 'unread 0')
  assert.equal(logged.length, 601)
  assert.equal(texts().at(-1), '1000 lost')
})
