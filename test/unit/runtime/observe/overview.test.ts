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
  listeners: () => [
    { name: 'tcp', isEnabled: true, address: '127.0.0.1:8090', certificate: null },
    { name: 'quic', isEnabled: false, address: '', certificate: null },
  ],
  sync: () => [],
  syncLags: () => ({ lagOf: () => lag }),
  health: () => ({ status: 'ready', checks: [] }),
})

test('nothing at all is an overview too', () => {
  const overview = viewOverview(sourcesOf(new MemoryLog()), [], 5_000_000n)
  assert.equal(overview.uptime_us, 4_000_000)
  assert.deepEqual(overview.listeners, [{ name: 'tcp', address: '127.0.0.1:8090', certificate: null }])
  assert.deepEqual([overview.topics, overview.sync, overview.findings], [[], [], []])
})

test('more topics than a page can show are counted', async () => {
  const log = new MemoryLog()
  const stream = await log.catalog.createStream('s')
  const topic = await log.catalog.createTopic(stream.id, { name: 't', partitionCount: 1, options: OPTIONS })
  const visible = Array.from({ length: MAX_LISTED_TOPICS + 3 }, () => ({ streamName: 's', topic }))
  const overview = viewOverview(sourcesOf(log), visible, 2_000_000n)
  assert.equal(overview.topics.length, MAX_LISTED_TOPICS)
  assert.equal(overview.topics_not_listed, 3)
  assert.equal(overview.totals.topics, MAX_LISTED_TOPICS + 3)
})

test('a topic that no route forwards has no lag, which is not a lag of zero', async () => {
  const log = new MemoryLog()
  const stream = await log.catalog.createStream('s')
  const topic = await log.catalog.createTopic(stream.id, { name: 't', partitionCount: 1, options: OPTIONS })
  const visible = [{ streamName: 's', topic }]
  assert.equal(viewOverview(sourcesOf(log), visible, 2_000_000n).topics[0]?.sync_lag, null)
  assert.equal(viewOverview(sourcesOf(log, 0n), visible, 2_000_000n).topics[0]?.sync_lag, 0n)
})
