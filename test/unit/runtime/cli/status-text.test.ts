import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatStatus, type OverviewView } from '../../../../src/runtime/cli/status-text.ts'

const NOW_US = 1_700_000_000_000_000
const DISK = {
  is_writable: true,
  used_bytes: 1024,
  budget_bytes: 4096,
  free_bytes: 2048,
  total_bytes: 8192,
  written_bytes: 3_600_000,
  appended_bytes: 1000,
  syncs: 5,
  failed_syncs: 0,
  last_sync_us: 0,
  flash_budget_per_day_bytes: 0,
  flash_budget_left_bytes: 0,
}
const OVERVIEW: OverviewView = {
  now_us: NOW_US,
  version: '1.2.3',
  uptime_us: 7_200_000_000,
  health: { status: 'ready', checks: [] },
  listeners: [{ name: 'tcp', address: '127.0.0.1:8090', certificate: null }],
  totals: { streams: 1, topics: 1, appended_messages: 1, appended_bytes: 1, dropped_messages: 0 },
  devices: null,
  topics: [],
  topics_not_listed: 0,
  sync: [],
  disk: DISK,
  findings: [],
  findings_not_listed: 0,
}

test('a healthy edge is said in a few lines', () => {
  const text = formatStatus('http://edge', { status: 'ready' }, OVERVIEW)
  assert.match(text, /^iggy-edge at http:\/\/edge: ready\n\nVersion 1\.2\.3, up 2 h\n {2}tcp {11}127\.0\.0\.1:8090/)
  assert.match(text, /1\.0 KiB used of 4\.0 KiB allowed/)
  assert.match(text, /written for 1000 B taken \(41\.2 MiB a day\)/)
  assert.match(text, /Upstreams: none configured/)
  assert.ok(!text.includes('!'))
})

test('devices are counted, with the readings that are stored nowhere', () => {
  const told = (devices: OverviewView['devices']) =>
    formatStatus('http://edge', { status: 'ready' }, { ...OVERVIEW, devices }).match(/^Devices.*$/m)?.[0]
  assert.equal(told({ connected: 2, lost_readings: [] }), 'Devices: 2 connected, readings lost since the start: none')
  const lost_readings = [
    { reason: 'refused', count: 3 },
    { reason: 'topic-full', count: 1 },
  ]
  assert.match(told({ connected: 0, lost_readings }) ?? '', /0 connected, .*: 3 refused, 1 topic-full$/)
})

test('a certificate is shown with its whole hash, for whoever pins it, and when it ends', () => {
  const certificate = { sha256: 'ab'.repeat(32), ends_at_us: 1_797_000_000_000_000 }
  const listeners = [{ name: 'webtransport', address: '0.0.0.0:8443', certificate }]
  const text = formatStatus('http://edge', { status: 'ready' }, { ...OVERVIEW, listeners })
  assert.match(text, /webtransport {2}0\.0\.0\.0:8443\n +certificate (ab){32} until 2026-12-11T14:40:00\.000Z\n/)
})

test('findings that are not listed are counted', () => {
  const finding = { at_us: NOW_US, level: 'warn', event: 'log.hole', text: 'one', action: 'None.' } as const
  const overview = { ...OVERVIEW, findings: [finding], findings_not_listed: 3 }
  assert.match(formatStatus('http://edge', { status: 'ready' }, overview), /-> None\.\nand 3 older ones$/)
})

test('everything that is wrong comes with what to do', () => {
  const check = {
    name: 'listener tcp',
    state: 'stalled',
    cause: '1 waiting',
    action: 'Restart it.',
    for_seconds: 90,
  } as const
  const text = formatStatus(
    'http://edge',
    { status: 'not-ready', checks: [check] },
    {
      ...OVERVIEW,
      disk: { ...DISK, is_writable: false, failed_syncs: 2 },
      findings: [
        {
          at_us: NOW_US,
          level: 'error',
          event: 'log.hole',
          text: 'offsets 3 to 4\nare lost',
          action: 'Check the disk.',
        },
      ],
      sync: [
        {
          route: 'sensors/*',
          upstream: 'central',
          address: 'iggy+tcp://central:8090',
          state: 'waiting',
          cause: 'connection refused',
          action: 'Check the address.',
          lag_messages: 12,
          confirmed_messages: 3,
          gap_messages: 7,
          unreadable_messages: 0,
          dead_letter_messages: 0,
          resent_messages: 0,
          used_today_bytes: 2048,
          daily_budget_bytes: 4096,
          failures: 4,
          next_try_at_us: NOW_US + 5_000_000,
          last_confirmed_at_us: null,
        },
      ],
    },
  )
  assert.match(text, /! listener tcp stalled for 1 m 30 s: 1 waiting\n {2}-> Restart it\./)
  assert.match(text, /! 2 syncs failed\n {2}-> Look at dmesg/)
  assert.match(text, /! The disk refuses writes\n {2}-> /)
  assert.match(
    text,
    /Upstream central .* waiting, 12 messages to send, 3 confirmed\n {2}last confirmed not since the start, failures 4, next try in 5 s, 2.0 KiB of 4.0 KiB sent today/,
  )
  assert.match(text, /! connection refused\n {2}-> Check the address\./)
  assert.match(text, /! 7 messages dropped here before being sent/)
  assert.ok(!text.includes('! 0 messages'))
  assert.match(
    text,
    /^Found since the start, newest first; what is wrong now stands at the top:\n! 2023-11-14T22:13:20/m,
  )
  assert.match(text, /! 2023-11-14T22:13:20\.000Z offsets 3 to 4 are lost\n {2}-> Check the disk\./)
})

test('without a user there is health alone, and how to see more', () => {
  assert.match(formatStatus('http://edge', { status: 'ready' }, null), /ready\n\nMore with a user: give --username/)
})

test('what has just begun is not timed', () => {
  const check = {
    name: 'space',
    state: 'failed',
    cause: 'the disk is full',
    action: 'Free space.',
    for_seconds: 0,
  } as const
  const text = formatStatus('http://edge', { status: 'degraded', checks: [check] }, OVERVIEW)
  assert.match(text, /! space failed just now: the disk is full\n {2}-> Free space\./)
})
