/** The state of an edge in sentences: what is, what is wrong, and what to do about it. Pure. */
import { formatBytes } from '../../byte-text.ts'
import { counted } from '../counted.ts'
import type { Overview } from '../observe/overview.ts'
import { formatRows, formatSpan, formatTime, list, type Row, Shown, textOf, time } from './output.ts'

/** As it comes over the wire: whole numbers are `number` where exact, else `bigint`. */
type OverTheWire<T> = T extends bigint
  ? number | bigint
  : T extends readonly (infer E)[]
    ? readonly OverTheWire<E>[]
    : T extends object
      ? { readonly [K in keyof T]: OverTheWire<T[K]> }
      : T

export type OverviewView = OverTheWire<Overview>
export interface HealthView {
  readonly status: string
  readonly checks?: OverviewView['health']['checks']
}

const US_DAY = 86_400_000_000

/** @param overview null when nobody logged in: then only health is known. */
export function formatStatus(url: string, health: HealthView, overview: OverviewView | null): string {
  const sections = [
    `iggy-edge at ${url}: ${health.status}`,
    checksOf(health),
    ...(overview === null
      ? ['More with a user: give --username and --password, or IGGY_USERNAME and IGGY_PASSWORD.']
      : overviewSections(overview)),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}

function checksOf({ checks = [] }: HealthView): string {
  const bad = checks.filter(({ state }) => state !== 'ok' && state !== 'off')
  return bad
    .map(({ name, state, cause, action, for_seconds: seconds }) => {
      const why = cause === '' ? '' : `: ${cause}`
      const since = Number(seconds) === 0 ? 'just now' : `for ${formatSpan(Number(seconds) * 1_000_000)}`
      return `! ${name} ${state} ${since}${why}\n  -> ${action}`
    })
    .map((text) => text.replace(/[^\P{Cc}\n]+/gu, ' '))
    .join('\n')
}

function overviewSections(overview: OverviewView): string[] {
  return [
    [
      `Version ${overview.version}, up ${formatSpan(Number(overview.uptime_us))}`,
      ...overview.listeners.flatMap(listenerLines),
      ...devicesLine(overview.devices),
    ].join('\n'),
    diskText(overview.disk, Number(overview.uptime_us)),
    topicsText(overview),
    syncText(overview),
    findingsText(overview),
  ]
}

function listenerLines({ name, address, certificate }: OverviewView['listeners'][number]): string[] {
  const lines = [`  ${name.padEnd(13)} ${address}`]
  // Whoever pins the hash needs it whole.
  if (certificate !== null)
    lines.push(
      `  ${''.padEnd(13)} certificate ${certificate.sha256} until ${formatTime(BigInt(certificate.ends_at_us))}`,
    )
  return lines
}

function devicesLine(devices: OverviewView['devices']): string[] {
  if (devices === null) return []
  const lost = devices.lost_readings.map(({ reason, count }) => `${count} ${reason}`).join(', ')
  return [`Devices: ${devices.connected} connected, readings lost since the start: ${lost === '' ? 'none' : lost}`]
}

function diskText(disk: OverviewView['disk'], uptimeUs: number): string {
  const written = Number(disk.written_bytes)
  const appended = Number(disk.appended_bytes)
  const lines = [
    `Disk: ${formatBytes(Number(disk.used_bytes))} used${ofBudget(disk)}, ${formatBytes(Number(disk.free_bytes))} of ${formatBytes(Number(disk.total_bytes))} free`,
    `Flash: ${formatBytes(written)} written for ${formatBytes(appended)} taken${perDay(written, uptimeUs)}, ${disk.syncs} syncs`,
  ]
  const budget = Number(disk.flash_budget_per_day_bytes)
  if (budget > 0)
    lines.push(`Flash budget: ${formatBytes(budget)} a day, ${formatBytes(Number(disk.flash_budget_left_bytes))} left`)
  if (Number(disk.failed_syncs) > 0)
    lines.push(`! ${disk.failed_syncs} syncs failed\n  -> Look at dmesg; replace the disk when this comes again.`)
  if (!disk.is_writable)
    lines.push('! The disk refuses writes\n  -> Free space or replace it. Nothing that was acknowledged is lost.')
  return lines.join('\n')
}

const ofBudget = ({ budget_bytes: budget }: OverviewView['disk']): string =>
  Number(budget) > 0 ? ` of ${formatBytes(Number(budget))} allowed` : ''

/** Below an hour a rate a day says nothing. */
const perDay = (written: number, uptimeUs: number): string =>
  uptimeUs < US_DAY / 24 ? '' : ` (${formatBytes(Math.round((written / uptimeUs) * US_DAY))} a day)`

function topicsText({ topics, topics_not_listed: notListed }: OverviewView): string {
  if (topics.length === 0) return 'Topics: none'
  const rows = topics.map(
    (topic): Row => ({
      stream: topic.stream,
      topic: topic.topic,
      promise: topic.promise,
      partitions: Number(topic.partitions_count),
      messages: BigInt(topic.messages),
      size: new Shown(topic.size_bytes, formatBytes(Number(topic.size_bytes))),
      upstream_lag: topic.sync_lag === null ? null : BigInt(topic.sync_lag),
      groups: list([
        ...topic.groups.map(({ name, lag }) => `${name} (lag ${lag})`),
        ...(Number(topic.groups_not_listed) > 0 ? [`${topic.groups_not_listed} more`] : []),
      ]),
    }),
  )
  const holes = topics.flatMap(({ stream, topic, partitions }) =>
    partitions.flatMap(({ id, holes }) =>
      holes.map(
        ({ from, end, reason }) =>
          `! ${stream}/${topic} partition ${id}: offsets ${from} to ${BigInt(end) - 1n} are not there (${reason})`,
      ),
    ),
  )
  const more = Number(notListed) === 0 ? [] : [`and ${notListed} more topics`]
  return [formatRows(rows, 'table'), ...more, ...holes].join('\n')
}

function syncText({ sync, now_us: nowUs }: OverviewView): string {
  if (sync.length === 0) return 'Upstreams: none configured'
  return sync
    .map((route) => {
      const head = `Upstream ${route.upstream} (${route.address}), ${route.route}: ${route.state}, ${route.lag_messages} messages to send, ${route.confirmed_messages} confirmed`
      const last =
        route.last_confirmed_at_us === null ? 'not since the start' : textOf(time(BigInt(route.last_confirmed_at_us)))
      const next =
        route.next_try_at_us === null
          ? ''
          : `, ${route.state === 'paused' ? 'goes on' : 'next try'} in ${formatSpan(Math.max(0, Number(BigInt(route.next_try_at_us) - BigInt(nowUs))))}`
      const today =
        route.daily_budget_bytes === null
          ? ''
          : `, ${formatBytes(Number(route.used_today_bytes))} of ${formatBytes(Number(route.daily_budget_bytes))} sent today`
      return [
        `${head}\n  last confirmed ${last}, failures ${route.failures}${next}${today}`,
        ...troublesOf(route),
      ].join('\n')
    })
    .join('\n')
}

function troublesOf(route: OverviewView['sync'][number]): readonly string[] {
  const told: readonly (readonly [number | bigint | string, string])[] = [
    [route.gap_messages, 'dropped here before being sent, by the disk budget or a purge'],
    [route.unreadable_messages, 'unreadable here, and passed over'],
    [route.dead_letter_messages, 'refused by the upstream, and kept in the topic edge/dead-letters'],
    [route.resent_messages, 'confirmed and lost by the upstream, and sent again'],
  ]
  return [
    ...(route.cause === '' ? [] : [`! ${route.cause}\n  -> ${route.action}`]),
    ...told
      .filter(([count]) => Number(count) > 0)
      .map(([count, what]) => `! ${counted(BigInt(count), 'message')} ${what}`),
  ]
}

function findingsText({ findings, findings_not_listed: notListed }: OverviewView): string {
  if (findings.length === 0) return 'Findings: none'
  const told = findings.map(({ at_us: atUs, level, text, action }) => {
    return `${level === 'error' ? '!' : '-'} ${formatTime(BigInt(atUs))} ${textOf(text)}\n  -> ${action}`
  })
  const more = Number(notListed) > 0 ? [`and ${notListed} older ones`] : []
  // What is over stays in the list, and would else be read as what is wrong now.
  return ['Found since the start, newest first; what is wrong now stands at the top:', ...told, ...more].join('\n')
}
