/** The result of `bench` for a tired person: where, a table, and what it means for a gateway. Pure. */
import { formatBytes } from '../../byte-text.ts'
import type { BenchOptions } from '../bench/plan.ts'
import type { BenchPlace, BenchReport, ScenarioReport } from '../bench/report.ts'
import { counted } from '../counted.ts'
import { formatRows, type OutputForm, type Row, Shown } from './output.ts'

export function formatBenchHead(place: BenchPlace, { connections, payloadBytes, seconds }: BenchOptions): string {
  const where =
    place.kind === 'own'
      ? `an edge of its own in ${place.folder}, removed at the end`
      : `the server at ${place.address}, in a stream of its own, removed at the end`
  const load = `${counted(connections, 'connection')}, ${formatBytes(payloadBytes)} a message, ${seconds} s each`
  return `Measuring ${where}: ${load}. Durable is acknowledged after the disk's sync, buffered before.`
}

export function formatBenchResult(report: BenchReport, form: OutputForm): string {
  const hasDisk = report.scenarios.some(({ syncs_per_second: syncs }) => syncs !== undefined)
  const rows = report.scenarios.map((scenario) => rowOf(scenario, hasDisk))
  return [formatRows(rows, form), ...stopLines(report), ...memoryLines(report), meaningOf(report)].join('\n')
}

function rowOf(scenario: ScenarioReport, hasDisk: boolean): Row {
  const { written_bytes_per_second: written, syncs_per_second: syncs } = scenario
  return {
    what: scenario.title,
    'messages/s': Math.round(scenario.messages_per_second),
    p50: latency(scenario.p50_us),
    p99: latency(scenario.p99_us),
    ...(hasDisk
      ? {
          'written/s': written === undefined ? null : new Shown(written, formatBytes(written)),
          'syncs/s': syncs === undefined ? null : Math.round(syncs),
        }
      : {}),
  }
}

function stopLines({ scenarios }: BenchReport): string[] {
  return scenarios.flatMap(({ title, seconds, stopped_at_bytes: bytes }) =>
    bytes === undefined
      ? []
      : [`${title}: stopped after ${seconds.toFixed(1)} s, since ${formatBytes(bytes)} were stored.`],
  )
}

function memoryLines({ memory_bytes: bytes }: BenchReport): string[] {
  return bytes === undefined ? [] : [`Memory of the server at the end: ${formatBytes(bytes)}.`]
}

/** Buffered sends that are so much faster than durable ones: then it is the disk that durable ones wait for. */
const DISK_BOUND_RATIO = 1.5

/** One line: what limits here, and what to do with it. */
export function meaningOf({ scenarios, connections, flash_budget_used_up_bytes: budget }: BenchReport): string {
  const rateOf = (name: string) => scenarios.find((each) => each.name === name)?.messages_per_second ?? 0
  const durable = scenarios.find(({ name }) => name === 'durable_singles')
  const single = durable?.messages_per_second ?? rateOf('singles')
  const batches = scenarios.find(({ name }) => name === 'batches')
  const batching = batchingText(single, batches)
  if (budget !== undefined)
    return `The flash budget of ${formatBytes(budget)} a day was used up, so syncs were held back; durable messages wait for them. ${batching}`
  if (durable === undefined) return batching
  if (rateOf('buffered_singles') < single * DISK_BOUND_RATIO)
    return `The processor limits single messages, not the disk: durable costs next to nothing here. ${batching}`
  return `The disk limits durable messages one by one${syncText(durable, connections)}. ${batching}`
}

function batchingText(single: number, batches: ScenarioReport | undefined): string {
  if (batches === undefined || single === 0) return 'Messages of this size are too large for batches.'
  const gain = batches.messages_per_second / single
  if (gain < DISK_BOUND_RATIO) return 'Batches bring next to nothing here.'
  return `Batches of ${batches.batch} take ${times(gain)} as many messages.`
}

/** With one connection there is nobody to share a sync with. */
function syncText({ messages_per_second: rate, syncs_per_second: syncs }: ScenarioReport, connections: number): string {
  if (syncs === undefined || syncs <= 0) return ''
  const each = latency(Math.round(1_000_000 / syncs))
  if (connections === 1) return `: a sync every ${each}, and more connections would share it`
  return `: a sync every ${each}, shared by ${counted(Math.max(1, Math.round(rate / syncs)), 'message')} of ${connections} connections`
}

const times = (ratio: number): string => (ratio < 10 ? `${ratio.toFixed(1)} times` : `${Math.round(ratio)} times`)

/** Three digits say enough: `840 us`, `1.4 ms`, `210 ms`, `1.2 s`. */
export function latency(us: number): string {
  if (us < 1000) return `${us} us`
  const [amount, unit] = us < 1_000_000 ? [us / 1000, 'ms'] : [us / 1_000_000, 's']
  return `${amount < 100 ? amount.toFixed(1) : Math.round(amount)} ${unit}`
}
