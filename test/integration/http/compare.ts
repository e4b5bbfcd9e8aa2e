/**
 * Compares an answer of ours with a recorded one, field by field. What is not compared stands here once, with its reason;
 * what differs on purpose in single steps stands in `differences.ts`.
 */
import type { Answer, Step } from './recorded.ts'

/** Fields of which only the presence is compared, beside those that differ from run to run. */
const MASKED: Readonly<Record<string, string>> = {
  reason: 'a text for people: ours names what was expected and found',
  options: 'our catalogue of topic options has other keys and other defaults (segments of 16 MiB)',
  segments_count: 'a new topic has none on the newest server, one a partition on 0.8 and here',
  iggy_server_version: 'our own version',
  iggy_server_semver: 'our own version',
  segment_size: 'as options',
  user_id: 'null on 0.8 for clients without a login',
}

/** Fields that one generation does not know and the other one needs: both are always sent. */
const ADDED = new Set(['options', 'replication_factor'])

/** @returns what differs, in words; empty when nothing does. */
export function compare(step: Step, ours: Answer, varyKeys: ReadonlySet<string>): string[] {
  const { response: recorded, vary = [] } = step
  if (ours.status !== recorded.status) return [`status: recorded ${recorded.status}, ours ${ours.status}`]
  const differences = compareHeaders(step, ours)
  if (recorded.json !== undefined) {
    const skipped = vary.map((pointer) => new RegExp(`^${pointer.replaceAll('*', '[^/]+')}$`))
    compareJson(recorded.json, ours.json, '', { varyKeys, skipped, differences })
  } else if (recorded.text !== undefined && !vary.includes('text') && !recorded.text.startsWith('<as in step')) {
    const [expected, found] = [sentence(recorded), sentence({ status: ours.status, text: ours.text })]
    if (expected !== found) differences.push(`text: recorded ${expected}, ours ${found}`)
  }
  return differences
}

/** The words after the colon of a rejection are ours; clients do not read them. */
function sentence({ status, text = '' }: { status: number; text?: string }): string {
  return status === 400 || status === 422 ? (text.split(':')[0] ?? '') : text
}

function compareHeaders({ response, vary = [] }: Step, ours: Answer): string[] {
  return Object.entries(response.headers ?? {}).flatMap(([name, value]) => {
    // The promise we give is another one, and so is the header that shows it.
    if (
      value === null ||
      name === 'iggy-durability' ||
      name.startsWith('access-control-expose') ||
      vary.includes(`/headers/${name}`)
    )
      return []
    // The length of a masked body differs with it.
    if (name === 'content-length' && (response.text ?? '') === '' && Number(value) > 4) return []
    return ours.headers[name] === value ? [] : [`${name}: recorded ${value}, ours ${String(ours.headers[name])}`]
  })
}

interface Comparison {
  readonly varyKeys: ReadonlySet<string>
  readonly skipped: readonly RegExp[]
  readonly differences: string[]
}

function compareJson(recorded: unknown, ours: unknown, path: string, comparison: Comparison): void {
  if (comparison.skipped.some((pattern) => pattern.test(path))) return
  if (Array.isArray(recorded)) {
    const found = Array.isArray(ours) ? ours : []
    if (!Array.isArray(ours) || found.length !== recorded.length)
      comparison.differences.push(`${path}: recorded ${recorded.length} elements, ours ${show(ours)}`)
    else
      for (const [index, value] of recorded.entries()) compareJson(value, found[index], `${path}/${index}`, comparison)
  } else if (isRecord(recorded) && !('exact' in recorded)) {
    if (isRecord(ours)) compareFields(recorded, ours, path, comparison)
    else comparison.differences.push(`${path}: recorded an object, ours ${show(ours)}`)
  } else if (digits(recorded) !== digits(ours)) {
    comparison.differences.push(`${path}: recorded ${digits(recorded)}, ours ${digits(ours)}`)
  }
}

function compareFields(
  recorded: Readonly<Record<string, unknown>>,
  ours: Readonly<Record<string, unknown>>,
  path: string,
  comparison: Comparison,
): void {
  for (const [name, value] of Object.entries(recorded)) {
    if (!(name in ours)) comparison.differences.push(`${path}/${name}: missing`)
    else if (!comparison.varyKeys.has(name) && !(name in MASKED))
      compareJson(value, ours[name], `${path}/${name}`, comparison)
  }
  for (const name of Object.keys(ours))
    if (!(name in recorded) && !ADDED.has(name)) comparison.differences.push(`${path}/${name}: not recorded`)
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** Whole numbers by their digits, whatever holds them. */
function digits(value: unknown): string {
  if (isRecord(value) && 'exact' in value) return String(value.exact)
  return typeof value === 'bigint' ? String(value) : show(value)
}

const show = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) => (typeof inner === 'bigint' ? String(inner) : inner))?.slice(0, 200) ??
  'nothing'
