import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../../../src/logger.ts'
import { MESSAGE_HEAD_BYTES, MessageSizes } from '../../../../src/runtime/broker/message-sizes.ts'
import { defaultTopicOptions } from '../../../../src/runtime/broker/topic-options.ts'
import { batchOf } from '../../../support/broker-world.ts'
import { MemoryLog, type MemoryPartition } from '../../../support/memory-log.ts'

const DEFAULTS = { durability: 'durable', segmentSizeBytes: 1024, dedupWindow: null } as const

async function world(): Promise<{ log: MemoryLog; partition: MemoryPartition; append: (...texts: string[]) => void }> {
  const log = new MemoryLog()
  const stream = await log.catalog.createStream('s')
  const spec = { name: 't', partitionCount: 1, options: defaultTopicOptions(DEFAULTS) }
  const topic = await log.catalog.createTopic(stream, spec)
  const partition = topic.partitions[0] as MemoryPartition
  return {
    log,
    partition,
    append(...texts) {
      partition.append(batchOf(...texts.map((text): [bigint, string] => [0n, text])), { settled: () => {} })
      log.syncNow()
    },
  }
}

test('a message takes its head and what the client put into it', async () => {
  const { log, partition, append } = await world()
  const sizes = new MessageSizes(log, silentLogger)
  assert.equal(sizes.of(partition), 0)
  append('abc', 'de')
  assert.equal(sizes.of(partition), 2 * MESSAGE_HEAD_BYTES + 5)
  append('f')
  assert.equal(sizes.of(partition), 3 * MESSAGE_HEAD_BYTES + 6)
})

test('nothing is left after a purge, and what comes then counts whole', async () => {
  const { log, partition, append } = await world()
  const sizes = new MessageSizes(log, silentLogger)
  append('abc', 'de')
  await partition.purge()
  assert.equal(sizes.of(partition), 0)
  append('xy')
  assert.equal(sizes.of(partition), MESSAGE_HEAD_BYTES + 2)
})

test('dropped segments take their share', async () => {
  const { log, partition, append } = await world()
  const sizes = new MessageSizes(log, silentLogger)
  append('aa', 'bb', 'cc', 'dd')
  assert.equal(sizes.of(partition), 4 * MESSAGE_HEAD_BYTES + 8)
  partition.logStartOffset = 3n
  assert.equal(sizes.of(partition), MESSAGE_HEAD_BYTES + 2)
})

test('sums survive a restart, and nothing is written when nothing has changed', async () => {
  const { log, partition, append } = await world()
  const before = new MessageSizes(log, silentLogger)
  append('abc', 'de')
  await before.save()
  const written = log.metadata.setting('broker.message_sizes')
  const after = new MessageSizes(log, silentLogger)
  assert.equal(after.of(partition), 2 * MESSAGE_HEAD_BYTES + 5)
  append('f')
  assert.equal(after.of(partition), 3 * MESSAGE_HEAD_BYTES + 6)
  assert.equal(log.metadata.setting('broker.message_sizes'), written)
  await after.save()
  assert.notEqual(log.metadata.setting('broker.message_sizes'), written)
})

test('what came after the last save of a killed edge is taken to be like the rest', async () => {
  const { log, partition, append } = await world()
  const before = new MessageSizes(log, silentLogger)
  append('aaaa', 'bbbb')
  await before.save()
  append('cccc', 'dddd')
  assert.equal(new MessageSizes(log, silentLogger).of(partition), 4 * MESSAGE_HEAD_BYTES + 16)
})

test('offsets that were left out are no messages: they add nothing after a restart', async () => {
  const { log, partition, append } = await world()
  const before = new MessageSizes(log, silentLogger)
  append('aaaa', 'bbbb')
  await before.save()
  // As after a power cut.
  partition.nextOffset += 65_536n
  Object.defineProperty(partition, 'messageCount', { get: () => 2 })
  assert.equal(new MessageSizes(log, silentLogger).of(partition), 2 * MESSAGE_HEAD_BYTES + 8)
})

test('without sums of before the stored bytes stand in', async () => {
  const { log, partition, append } = await world()
  append('aaaa', 'bbbb')
  assert.equal(new MessageSizes(log, silentLogger).of(partition), 2 * MESSAGE_HEAD_BYTES + partition.sizeBytes)
})

test('sums that cannot be read are estimated, and told', async () => {
  const { log, partition, append } = await world()
  append('abc')
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (event: string) => void warnings.push(event) }
  for (const damaged of ['[[1,20,"0","5q]]', '[[1,20,"0","5q"]]', '[["1",{},"0","5"]]', '{}']) {
    await log.metadata.setSetting('broker.message_sizes', damaged)
    assert.equal(new MessageSizes(log, logger).of(partition), MESSAGE_HEAD_BYTES + partition.sizeBytes)
  }
  assert.deepEqual(warnings, Array(4).fill('edge.setting.unreadable'))
})
