import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatMetrics, METRICS } from '../../../../src/runtime/observe/metrics.ts'

test("names are unique, and our own are told apart from Iggy's", () => {
  const names = Object.values(METRICS).map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  const iggy = names.filter((name) => !name.startsWith('edge_'))
  assert.deepEqual(iggy, [
    'http_requests',
    'streams',
    'topics',
    'partitions',
    'segments',
    'messages',
    'users',
    'clients',
  ])
  for (const name of names) assert.match(name, /^[a-z][a-z0-9_]*$/)
})

test('the text is OpenMetrics: counters end in _total, labels are escaped, the end is marked', () => {
  const text = formatMetrics([
    { metric: 'syncLag', value: 3, labels: ['a"b\\c\nd'] },
    { metric: 'httpRequests', value: 5 },
    { metric: 'syncLag', value: 4, labels: ['second'] },
    { metric: 'diskFree', value: Number.POSITIVE_INFINITY },
  ])
  assert.equal(
    text,
    [
      '# HELP http_requests HTTP requests answered.',
      '# TYPE http_requests counter',
      'http_requests_total 5',
      "# HELP edge_disk_free_bytes Bytes free on the data folder's disk.",
      '# TYPE edge_disk_free_bytes gauge',
      '# UNIT edge_disk_free_bytes bytes',
      'edge_disk_free_bytes +Inf',
      '# HELP edge_sync_lag_messages Durable messages the upstream has not confirmed.',
      '# TYPE edge_sync_lag_messages gauge',
      '# UNIT edge_sync_lag_messages messages',
      'edge_sync_lag_messages{route="a\\"b\\\\c\\nd"} 3',
      'edge_sync_lag_messages{route="second"} 4',
      '# EOF',
      '',
    ].join('\n'),
  )
})
