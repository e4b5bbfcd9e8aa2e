import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { silentLogger } from '../../../../src/logger.ts'
import type { PartitionRunner } from '../../../../src/sync/io/partition-runner.ts'
import { TopicWatch } from '../../../../src/sync/io/topic-watch.ts'
import { Turns } from '../../../../src/sync/io/turns.ts'
import type { Upstream } from '../../../../src/sync/io/upstream.ts'

test('a look for a topic waits while a record has the link for itself, which would be blamed for its end', async () => {
  const asked: string[] = []
  const findTopic: Upstream['findTopic'] = async ({ topicName }) => {
    asked.push(topicName)
    return '1'
  }
  const runner = { topicIncarnation: '1', options: { target: { streamName: 's', topicName: 'temp' } } }
  const watch = new TopicWatch({ upstreamName: 'central', intervalMs: 1, logger: silentLogger }, 0)
  const turns = new Turns()
  turns.take(3, () => {})
  const upstream = { findTopic } as unknown as Upstream
  const looked = watch.look(upstream, turns, [runner as unknown as PartitionRunner], 10_000)
  await setImmediate()
  assert.deepEqual(asked, [])
  turns.end()
  await looked
  assert.deepEqual(asked, ['temp'])
})
