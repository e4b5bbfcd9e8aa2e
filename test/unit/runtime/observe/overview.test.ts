import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_LISTED_TOPICS, type OverviewSources, viewOverview } from '../../../../src/runtime/observe/overview.ts'
import { MemoryLog } from '../../../support/memory-log.ts'
import { topicOptions } from '../../../support/topic-options.ts'

const OPTIONS = topicOptions('durable')

const sourcesOf = (log: MemoryLog, lag: bigint | null = null): OverviewSources => ({
  version: '1.2.3',
  uptimeUs: () => 4_000_000.4,
  catalog: log.catalog,
  metadata: log.metadata,
  logStats: () => log.stats(),
  findings: () => log.findings(),
  isWritable: () => log.isWritable,
  deviceTraffic: () => null,
  listeners: () => [
    { name: 'tcp', isEnabled: true, address: '127.0.0.1:8090', certificate: null },
    { name: 'quic', isEnabled: false, address: '', certificate: null },
  ],
  sync: () => [],
  syncLags: () => ({ lagOf: () => lag }),
  health: () => ({ status: 'ready', checks: [] }),
})

test('nothing at all is an overview too', () => {
  const overview = viewOverview(sourcesOf(new MemoryLog()), { topics: [], filter: '' }, 5_000_000n)
  assert.equal(overview.uptime_us, 4_000_000)
  assert.deepEqual(overview.listeners, [{ name: 'tcp', address: '127.0.0.1:8090', certificate: null }])
  assert.deepEqual([overview.topics, overview.sync, overview.findings], [[], [], []])
})

test('more topics than a page can show are counted', async () => {
  const log = new MemoryLog()
  const stream = await log.catalog.createStream('s')
  const topic = await log.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: OPTIONS })
  const topics = Array.from({ length: MAX_LISTED_TOPICS + 3 }, () => ({ streamName: 's', topic }))
  const overview = viewOverview(sourcesOf(log), { topics, filter: '' }, 2_000_000n)
  assert.equal(overview.topics.length, MAX_LISTED_TOPICS)
  assert.equal(overview.topics_not_listed, 3)
  assert.equal(overview.totals.topics, MAX_LISTED_TOPICS + 3)
})

test('a filter finds a topic behind those that are listed, in either case', async () => {
  const log = new MemoryLog()
  const stream = await log.catalog.createStream('s')
  const crowd = await log.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: OPTIONS })
  const last = await log.catalog.createTopic(stream, { name: 'Zeta', partitionCount: 1, options: OPTIONS })
  const many = Array.from({ length: MAX_LISTED_TOPICS }, () => ({ streamName: 's', topic: crowd }))
  const topics = [...many, { streamName: 's', topic: last }]
  const found = viewOverview(sourcesOf(log), { topics, filter: 'S/ze' }, 2_000_000n)
  assert.deepEqual(
    found.topics.map(({ topic }) => topic),
    ['Zeta'],
  )
  assert.equal(found.topics_not_listed, 0)
  assert.equal(found.totals.topics, MAX_LISTED_TOPICS + 1)
})

test('a topic that no route forwards has no lag, which is not a lag of zero', async () => {
  const log = new MemoryLog()
  const stream = await log.catalog.createStream('s')
  const topic = await log.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: OPTIONS })
  const asked = { topics: [{ streamName: 's', topic }], filter: '' }
  assert.equal(viewOverview(sourcesOf(log), asked, 2_000_000n).topics[0]?.sync_lag, null)
  assert.equal(viewOverview(sourcesOf(log, 0n), asked, 2_000_000n).topics[0]?.sync_lag, 0n)
})

test('older findings than a page can show are counted, and so are further partitions', async () => {
  const log = new MemoryLog()
  const stream = await log.catalog.createStream('s')
  const topic = await log.catalog.createTopic(stream, { name: 't', partitionCount: 67, options: OPTIONS })
  const finding = { level: 'warn', event: 'log.hole', text: 'one', fields: {} } as const
  const findings = () => Array.from({ length: 53 }, (_, at) => ({ ...finding, atUs: BigInt(at) }))
  const asked = { topics: [{ streamName: 's', topic }], filter: '' }
  const shown = viewOverview({ ...sourcesOf(log), findings }, asked, 2_000_000n)
  assert.deepEqual([shown.findings.length, shown.findings[0]?.at_us, shown.findings_not_listed], [50, 52n, 3])
  assert.deepEqual([shown.topics[0]?.partitions.length, shown.topics[0]?.partitions_not_listed], [64, 3])
})

test('more groups than a topic can show are counted', async () => {
  const log = new MemoryLog()
  const stream = await log.catalog.createStream('s')
  const topic = await log.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: OPTIONS })
  const groupsOf = () => Array.from({ length: 18 }, (_, id) => ({ id, name: `g${id}` }))
  const sources = { ...sourcesOf(log), metadata: { groupsOf, offset: () => null } } as unknown as OverviewSources
  const [shown] = viewOverview(sources, { topics: [{ streamName: 's', topic }], filter: '' }, 2_000_000n).topics
  assert.deepEqual([shown?.groups.length, shown?.groups_not_listed], [16, 2])
})
