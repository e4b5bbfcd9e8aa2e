import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HealthWatch } from '../../../../src/runtime/observe/health.ts'
import {
  probeFailure,
  reportCertificate,
  reportClock,
  reportFolders,
  reportLog,
  reportRoute,
  reportSpace,
} from '../../../../src/runtime/observe/part-reports.ts'
import { MemoryLog } from '../../../support/memory-log.ts'

const ROUTE = {
  route: 's/* to central',
  upstream: 'central',
  address: 'central:8090',
  state: 'waiting',
  cause: 'connect ECONNREFUSED',
  action: 'Check address, user and network of the upstream.',
  lagMessages: 12,
  confirmedMessages: 3,
  gapMessages: 0,
  unreadableMessages: 0,
  deadLetterMessages: 0,
  resentMessages: 0,
  today: null,
  failureCount: 9,
  nextTryAtUs: null,
  lastConfirmedAtUs: null,
} as const

test('a listener that cannot be reached for want of file descriptors is not restarted for it', () => {
  const error = (code: string) => Object.assign(new Error(`connect ${code} 127.0.0.1:8090`), { code })
  assert.match(probeFailure(error('EMFILE')).cause, /^EMFILE: no file descriptor is left/)
  assert.match(probeFailure(error('EMFILE')).action, /LimitNOFILE/)
  assert.deepEqual(probeFailure(error('ECONNREFUSED')), { cause: 'connect ECONNREFUSED 127.0.0.1:8090', action: '' })
})

test('a certificate that has ended, or begins in the future of a clock that is wrong, is failed and names both times', () => {
  const certificate = { notBeforeMs: Date.UTC(2026, 0, 1), notAfterMs: Date.UTC(2027, 0, 1) }
  const at = (ms: number) => reportCertificate({ name: 'http', certificate }, BigInt(ms) * 1000n)
  assert.deepEqual([at(Date.UTC(2026, 6)).state, at(Date.UTC(2026, 6)).cause], ['running', ''])
  const [early, late] = [at(0), at(Date.UTC(2027, 0, 1))]
  assert.deepEqual([early.state, late.state, late.isEssential], ['failed', 'failed', false])
  assert.equal(early.cause, 'it begins 2026-01-01T00:00:00.000Z, and the clock says 1970-01-01T00:00:00.000Z')
  assert.equal(late.cause, 'it ended 2027-01-01T00:00:00.000Z, and the clock says 2027-01-01T00:00:00.000Z')
  assert.match(new HealthWatch().observe([late], 0).checks[0]?.action ?? '', /replace the files/)
})

test('a certificate whose files cannot be used any more is failed while it is served on: the next start needs them', () => {
  const certificate = { notBeforeMs: 0, notAfterMs: 10_000, trouble: 'ENOENT: cert.pem' }
  const report = reportCertificate({ name: 'http', certificate }, 5_000_000n)
  const { status, checks } = new HealthWatch().observe([report], 0)
  assert.equal(status, 'degraded')
  assert.match(checks[0]?.cause ?? '', /served on, its files cannot be used: ENOENT: cert\.pem$/)
  assert.match(checks[0]?.action ?? '', /a start, also after a power cut, is refused/)
  const righted = reportCertificate({ name: 'http', certificate: { ...certificate, trouble: '' } }, 5_000_000n)
  assert.equal(righted.state, 'running')
})

test('a clock that is not trusted degrades, and says why; all else goes on', () => {
  const watch = new HealthWatch()
  assert.equal(watch.observe([reportClock('')], 0).status, 'ready')
  const { status, checks } = watch.observe([reportClock('the clock is not set')], 1e6)
  assert.deepEqual([status, checks[0]?.state, checks[0]?.cause], ['degraded', 'starting', 'the clock is not set'])
})

test('a log whose disk refuses is failed, and says why', () => {
  const log = new MemoryLog()
  assert.equal(reportLog(log).state, 'running')
  log.isWritable = false
  assert.deepEqual([reportLog(log).state, reportLog(log).cause], ['failed', 'the disk refuses writes'])
  const finding = {
    atUs: 1n,
    event: 'log.sync.failed',
    level: 'error',
    text: 'no space left on device',
    fields: {},
  } as const
  const refusing = { isWritable: false, hasRoom: () => true, stats: () => log.stats(), findings: () => [finding] }
  assert.equal(reportLog(refusing).cause, 'no space left on device')
  const refusal = { ...finding, event: 'log.append.refused', text: 'the disk refuses' }
  const later = { ...finding, event: 'log.repack.failed', text: 'messages cannot be moved' }
  const findings = () => [finding, refusal, later]
  assert.equal(reportLog({ ...refusing, findings }).cause, 'the disk refuses')
})

test('a data folder that is gone is the cause, not the errors that follow from it, and comes with what to do', () => {
  const log = new MemoryLog()
  const finding = (event: string, text: string) => ({ atUs: 1n, event, level: 'error', text, fields: {} }) as const
  const gone = [finding('log.folder.gone', 'the folder was moved'), finding('log.repack.failed', 'ENOENT')]
  const report = (isWritable: boolean, ...more: readonly ReturnType<typeof finding>[]) =>
    reportLog({ isWritable, hasRoom: () => true, stats: () => log.stats(), findings: () => [...gone, ...more] })
  const [check] = new HealthWatch().observe([report(false)], 0).checks
  assert.deepEqual([check?.state, check?.cause], ['failed', 'the folder was moved'])
  assert.match(check?.action ?? '', /^Move the data folder back/)
  const back = finding('log.folder.back', 'it is back')
  assert.equal(report(false, back, finding('log.sync.failed', 'EIO')).cause, 'EIO')
  assert.equal(report(true, back).cause, '')
})

test('a log without room that never syncs is stalled', () => {
  const log = new MemoryLog()
  const watch = new HealthWatch()
  watch.observe([reportLog(log)], 0)
  log.isRoomLeft = false
  watch.observe([reportLog(log)], 1e6)
  assert.equal(watch.observe([reportLog(log)], 60e6).status, 'not-ready')
})

test('a log that waits for room says what keeps it waiting', () => {
  const log = new MemoryLog()
  const text = 'the disk is full'
  const stuck = {
    isWritable: true,
    hasRoom: () => false,
    stats: () => log.stats(),
    findings: () => [{ atUs: 1n, event: 'log.journal.stuck', level: 'error', text, fields: {} } as const],
  }
  const watch = new HealthWatch()
  watch.observe([reportLog(stuck)], 0)
  const [check] = watch.observe([reportLog(stuck)], 60e6).checks
  assert.match(check?.cause ?? '', /1 waiting and no progress for 60 s \(the disk is full\)/)
  assert.match(check?.action ?? '', /free space/)
})

test('a log with room whose messages are never synced is stalled, and says what it last had trouble with', () => {
  const log = new MemoryLog()
  let syncCount = 0
  const text = 'messages cannot be moved into segments'
  const waiting = {
    isWritable: true,
    hasRoom: () => true,
    stats: () => ({ ...log.stats(), syncCount, isSyncAwaited: true }),
    findings: () => [{ atUs: 1n, event: 'log.repack.failed', level: 'error', text, fields: {} } as const],
  }
  const watch = new HealthWatch()
  for (let second = 0; second < 60; second++) {
    syncCount++
    const { status, checks } = watch.observe([reportLog(waiting)], second * 1e6)
    assert.deepEqual([status, checks[0]?.cause], ['ready', ''], 'under load it is always waited for')
  }
  const { status, checks } = watch.observe([reportLog(waiting)], 90e6)
  assert.equal(status, 'not-ready')
  assert.match(checks[0]?.cause ?? '', /no progress for 31 s \(messages cannot be moved into segments\)/)
})

test('an upstream that is away is named within a minute, and the edge stays ready', () => {
  const watch = new HealthWatch()
  assert.equal(watch.observe([reportRoute(ROUTE)], 0).status, 'ready')
  const health = watch.observe([reportRoute(ROUTE)], 59e6)
  assert.equal(health.status, 'degraded')
  assert.match(health.checks[0]?.cause ?? '', /12 waiting and no progress for 59 s \(connect ECONNREFUSED\)/)
})

test('an upstream that is away while nothing waits is no trouble', () => {
  const watch = new HealthWatch()
  watch.observe([reportRoute({ ...ROUTE, lagMessages: 0 })], 0)
  assert.equal(watch.observe([reportRoute({ ...ROUTE, lagMessages: 0 })], 3600e6).status, 'ready')
})

test('an upstream that waits for its budget, as it is meant to, is no trouble', () => {
  const watch = new HealthWatch()
  watch.observe([reportRoute({ ...ROUTE, state: 'paused' })], 0)
  assert.equal(watch.observe([reportRoute({ ...ROUTE, state: 'paused' })], 3600e6).status, 'ready')
})

test('a route that sets poison aside, or passes over what is damaged, gets on; what retention gives up is no progress', () => {
  const healthOf = (count: 'deadLetterMessages' | 'unreadableMessages' | 'gapMessages') => {
    const watch = new HealthWatch()
    for (let minute = 0; minute < 10; minute++)
      watch.observe([reportRoute({ ...ROUTE, [count]: minute })], minute * 30e6)
    return watch.health.status
  }
  assert.deepEqual(
    [healthOf('deadLetterMessages'), healthOf('unreadableMessages'), healthOf('gapMessages')],
    ['ready', 'ready', 'degraded'],
  )
})

test('a route that only a person can mend is failed at once, also while nothing waits, and says what to do', () => {
  const action = 'Correct the password.'
  const blocked = reportRoute({ ...ROUTE, state: 'blocked', lagMessages: 0, action })
  const { status, checks } = new HealthWatch().observe([blocked], 0)
  assert.deepEqual([status, checks[0]?.state, checks[0]?.action], ['degraded', 'failed', action])
})

test('a route that was stopped is failed at once', () => {
  assert.equal(reportRoute({ ...ROUTE, state: 'stopped' }).state, 'failed')
})

test('a folder that takes no files makes the runtime degraded, not unready, until it does', () => {
  const log = new MemoryLog()
  const watch = new HealthWatch()
  const refusing = { stats: () => ({ ...log.stats(), refusingFolderCount: 1 }) }
  const { status, checks } = watch.observe([reportLog(log), reportFolders(refusing)], 0)
  assert.equal(status, 'degraded')
  assert.equal(checks[1]?.cause, 'the folder of 1 partition takes no files, its messages are kept in another one')
  assert.match(checks[1]?.action ?? '', /lsattr/)
  assert.equal(watch.observe([reportLog(log), reportFolders(log)], 1e6).status, 'ready')
})

test('topics that are full and a disk over its budget make the runtime degraded, not unready, until there is room', () => {
  const log = new MemoryLog()
  const watch = new HealthWatch()
  const full = { stats: () => ({ ...log.stats(), fullTopicCount: 2, isOverDiskBudget: true }) }
  const { status, checks } = watch.observe([reportLog(log), reportSpace(full)], 0)
  assert.equal(status, 'degraded')
  assert.match(checks[1]?.cause ?? '', /over its budget.*; 2 full topics take no new messages/)
  assert.match(checks[1]?.action ?? '', /raise the disk budget/)
  assert.equal(watch.observe([reportLog(log), reportSpace(log)], 1e6).status, 'ready')
})
