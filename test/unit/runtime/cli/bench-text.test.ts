import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BenchReport, ScenarioReport } from '../../../../src/runtime/bench/report.ts'
import { formatBenchHead, formatBenchResult, latency, meaningOf } from '../../../../src/runtime/cli/bench-text.ts'

const singles = (name: string, title: string, rate: number): ScenarioReport => ({
  name,
  title,
  batch: 1,
  seconds: 3,
  messages: rate * 3,
  messages_per_second: rate,
  p50_us: 1100,
  p99_us: 8400,
})
const durable = {
  ...singles('durable_singles', 'durable, one by one', 4000),
  written_bytes_per_second: 2_097_152,
  syncs_per_second: 250,
}
const buffered = singles('buffered_singles', 'buffered, one by one', 20_000)
const batches = { ...singles('batches', 'durable, batches of 100', 100_000), batch: 100 }
const polls = { ...singles('polls_100', 'polls of 100', 500_000), batch: 100 }
const REPORT: BenchReport = {
  place: { kind: 'own', folder: '/data/iggy-edge-bench-x' },
  connections: 16,
  size_bytes: 200,
  scenarios: [durable, buffered, batches, polls],
  memory_bytes: 70 * 1024 * 1024,
}

describe('the head', () => {
  it('says where, with what, and what the promise is', () => {
    const head = formatBenchHead(REPORT.place, { connections: 1, payloadBytes: 200, seconds: 3 })
    assert.match(head, /in \/data\/iggy-edge-bench-x, removed at the end: 1 connection, 200 B a message, 3 s each/)
    assert.match(head, /Durable is acknowledged after the disk's sync/)
    const place = { kind: 'server', address: '10.0.0.1:8090' } as const
    assert.match(formatBenchHead(place, { connections: 2, payloadBytes: 1, seconds: 1 }), /server at 10\.0\.0\.1:8090/)
  })
})

describe('the result', () => {
  it('is a table, the memory, and what it means', () => {
    assert.deepEqual(formatBenchResult(REPORT, 'table').split('\n'), [
      'WHAT                     MESSAGES/S  P50     P99     WRITTEN/S  SYNCS/S',
      'durable, one by one            4000  1.1 ms  8.4 ms  2.0 MiB        250',
      'buffered, one by one          20000  1.1 ms  8.4 ms  -                -',
      'durable, batches of 100      100000  1.1 ms  8.4 ms  -                -',
      'polls of 100                 500000  1.1 ms  8.4 ms  -                -',
      'Memory of the server at the end: 70.0 MiB.',
      'The disk limits durable messages one by one: a sync every 4.0 ms, shared by 16 messages of 16 connections. Batches of 100 take 25 times as many messages.',
    ])
  })

  it('leaves out what the server does not tell', () => {
    const { memory_bytes: _, ...rest } = REPORT
    const text = formatBenchResult({ ...rest, scenarios: [buffered, batches] }, 'table')
    assert.doesNotMatch(text, /WRITTEN|SYNCS|Memory|\b0\b/)
  })

  it('says what stopped early, and why', () => {
    const scenarios = [{ ...batches, seconds: 1.234, stopped_at_bytes: 16 * 1024 * 1024 }]
    const text = formatBenchResult({ ...REPORT, scenarios }, 'table')
    assert.match(text, /^durable, batches of 100: stopped after 1\.2 s, since 16\.0 MiB were stored\.$/m)
  })
})

describe('what the figures mean', () => {
  const meaning = (changes: Partial<BenchReport>) => meaningOf({ ...REPORT, ...changes })

  it('is that more connections would share a sync, where there is one', () => {
    assert.match(meaning({ connections: 1 }), /a sync every 4\.0 ms, and more connections would share it/)
  })

  it('is that the processor limits where durable costs nothing', () => {
    const scenarios = [durable, { ...buffered, messages_per_second: 4400 }, batches]
    assert.match(meaning({ scenarios }), /^The processor limits single messages, not the disk/)
  })

  it('is that the flash budget holds back syncs', () => {
    assert.match(meaning({ flash_budget_used_up_bytes: 2 ** 30 }), /^The flash budget of 1\.0 GiB a day was used up/)
  })

  it('is about batches alone where the promise is not known', () => {
    const scenarios = [singles('singles', 'one by one', 10_000), batches]
    assert.equal(meaning({ scenarios }), 'Batches of 100 take 10 times as many messages.')
    assert.equal(
      meaning({ scenarios: [singles('singles', 'one by one', 90_000), batches] }),
      'Batches bring next to nothing here.',
    )
  })

  it('is that large messages make no batches', () => {
    assert.match(meaning({ scenarios: [durable, buffered] }), /too large for batches\.$/)
  })
})

it('latencies have three digits at most', () => {
  assert.deepEqual([840, 1400, 99_940, 210_400, 1_240_000].map(latency), [
    '840 us',
    '1.4 ms',
    '99.9 ms',
    '210 ms',
    '1.2 s',
  ])
})
