import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../../src/clock.ts'
import { EdgeError } from '../../../../src/errors.ts'
import { silentLogger } from '../../../../src/logger.ts'
import type { StoredBatch } from '../../../../src/sdk/wire/batch.ts'
import { parseRoute } from '../../../../src/sync/core/route.ts'
import { KeptBudget } from '../../../../src/sync/io/kept-budget.ts'
import { PartitionRunner, type RunnerOptions } from '../../../../src/sync/io/partition-runner.ts'
import { Slots } from '../../../../src/sync/io/slots.ts'
import { Turns } from '../../../../src/sync/io/turns.ts'
import type { Upstream } from '../../../../src/sync/io/upstream.ts'
import type { DeadLetter, SourceRead } from '../../../../src/sync/ports.ts'
import { eventually } from '../../../support/eventually.ts'
import { QUICK_FORWARDER } from '../../../support/forwarder-options.ts'
import { MemorySource } from '../../../support/memory-source.ts'

/** An empty server that takes what it is sent. */
class EmptyUpstream implements Upstream {
  readonly protocol = 'vsr'
  readonly peer = 'nowhere'
  readonly closed = new Promise<EdgeError>(() => {})
  readonly sent: StoredBatch[] = []
  readonly firstSent = Promise.withResolvers<void>()

  ensureTopic = async () => '1'
  findTopic = async () => '1'
  forgetTopic = () => {}
  pollTail = async () => ({ currentOffset: 0n, messages: [], sizeBytes: 0, contentAt: () => null })
  abort = () => {}

  async send(_topic: unknown, _partitionId: number, batch: StoredBatch): Promise<bigint> {
    this.sent.push(batch)
    this.firstSent.resolve()
    return 0n
  }
}

function runnerOf(
  source: MemorySource,
  partition: RunnerOptions['partition'],
  budget: RunnerOptions['budget'],
  more: Partial<RunnerOptions> = {},
): PartitionRunner {
  return new PartitionRunner({
    route: parseRoute({ from: 'sensors/*', to: 'central:site/{topic}' }),
    source: { streamName: 'sensors', topicName: 'temp' },
    target: { streamName: 'site', topicName: 'temp' },
    partition,
    partitionCount: () => 1,
    forwarder: QUICK_FORWARDER,
    cursors: source,
    deadLetters: undefined,
    slots: new Slots(1),
    budget,
    clock: systemClock,
    logger: silentLogger,
    ...more,
  })
}

test('a read that comes when the link has gone and come back does not take the place of the batch that waits', async () => {
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  assert.ok(partition)
  partition.append('a', 'b', 'c')
  const late = Promise.withResolvers<SourceRead>()
  const read = partition.read.bind(partition)
  let readCount = 0
  const begun = Promise.withResolvers<void>()
  // The first read is slow, and brings less than the second, which waits for the budget of the link.
  partition.read = (...request) => {
    begun.resolve()
    return readCount++ === 0 ? (late.promise as unknown as SourceRead) : read(...request)
  }
  const waiting = Promise.withResolvers<void>()
  let takeCount = 0
  const take = () => {
    waiting.resolve()
    return takeCount++ === 0 ? 20_000 : 0
  }
  const runner = runnerOf(source, partition, { take, leftBytes: () => Number.POSITIVE_INFINITY })
  const [first, second] = [new EmptyUpstream(), new EmptyUpstream()]
  runner.linkUp(first, new Turns())
  await begun.promise
  runner.linkDown(new EdgeError('EDGE_CONNECTION_LOST', 'cut'))
  runner.linkUp(second, new Turns())
  await waiting.promise
  late.resolve(read(0n, 1, 1e6))
  await second.firstSent.promise
  assert.deepEqual(
    [...first.sent, ...second.sent].map(({ baseOffset, count }) => [baseOffset, count]),
    [[0n, 3]],
  )
  runner.close()
})

test('a read takes no more than is left of the day, and as much as ever when nothing is', async () => {
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  assert.ok(partition)
  partition.append('a', 'b', 'c')
  for (const [leftBytes, expected] of [
    [700, 700],
    [0, QUICK_FORWARDER.bounds.maxBytes],
    [Number.POSITIVE_INFINITY, QUICK_FORWARDER.bounds.maxBytes],
  ] as const) {
    const asked = Promise.withResolvers<number>()
    const read = partition.read.bind(partition)
    partition.read = (fromOffset, maxCount, maxBytes) => {
      asked.resolve(maxBytes)
      return read(fromOffset, maxCount, maxBytes)
    }
    const runner = runnerOf(source, partition, { take: () => 0, leftBytes: () => leftBytes })
    runner.linkUp(new EmptyUpstream(), new Turns())
    assert.equal(await asked.promise, expected)
    runner.close()
    partition.read = read
  }
})

test('a batch that waits for the budget is not blamed for a link that comes and goes, nor in doubt', async () => {
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  assert.ok(partition)
  partition.append('a', 'b', 'c')
  const letters: DeadLetter[] = []
  const deadLetters = { add: async (letter: DeadLetter) => void letters.push(letter) }
  let waitUs = 60_000_000
  const budget = { take: () => waitUs, leftBytes: () => 0 }
  const runner = runnerOf(source, partition, budget, { deadLetters })
  for (let flap = 0; flap < 60; flap++) {
    runner.linkUp(new EmptyUpstream(), new Turns())
    await eventually(() => runner.view.state === 'paused', 'it waits for the budget')
    runner.linkDown(new EdgeError('EDGE_CONNECTION_LOST', 'the carrier resets'))
  }
  waitUs = 0
  const upstream = new EmptyUpstream()
  runner.linkUp(upstream, new Turns())
  await upstream.firstSent.promise
  assert.deepEqual([letters.length, upstream.sent[0]?.count], [0, 3])
  runner.close()
})

test('a batch that loses its link before its turn takes nothing more from the budget for the next one', async () => {
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  assert.ok(partition)
  partition.append('a', 'b', 'c')
  let takenBytes = 0
  const take = (sizeBytes: number) => {
    takenBytes += sizeBytes
    return 0
  }
  const slots = new Slots(1)
  const runner = runnerOf(source, partition, { take, leftBytes: () => Number.POSITIVE_INFINITY }, { slots })
  for (let flap = 0; flap < 3; flap++) {
    const turns = new Turns()
    slots.acquire(() => {})
    runner.linkUp(new EmptyUpstream(), turns)
    await eventually(() => runner.view.state === 'reading', 'it waits for a slot')
    await new Promise((resolve) => setImmediate(resolve))
    turns.take(1, () => {})
    slots.release()
    assert.equal(runner.view.state, 'paused', 'it waits for its turn')
    runner.linkDown(new EdgeError('EDGE_CONNECTION_LOST', 'the other one ended it'))
  }
  const upstream = new EmptyUpstream()
  runner.linkUp(upstream, new Turns())
  await upstream.firstSent.promise
  assert.ok(takenBytes > 0)
  assert.equal(takenBytes, upstream.sent[0]?.recordsView.length)
  runner.close()
})

test('what retention took before the upstream was ever reached is a gap for a later process too', async () => {
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  assert.ok(partition)
  partition.append('a')
  partition.append('b')
  const budget = { take: () => 0, leftBytes: () => Number.POSITIVE_INFINITY }
  const gapOf = async (): Promise<bigint> => {
    const runner = runnerOf(source, partition, budget)
    runner.linkUp(new EmptyUpstream(), new Turns())
    await eventually(() => runner.view.state === 'caught-up', 'caught up')
    runner.close()
    return runner.view.counters.gapCount
  }
  runnerOf(source, partition, budget).close()
  partition.logStartOffset = 1n
  assert.equal(await gapOf(), 1n)
  assert.equal(await gapOf(), 0n, 'it is told once')

  source.cursors.clear()
  assert.equal(await gapOf(), 0n, 'what was gone before the route was there is none')
})

test('several partitions that send at a time end a day one record beyond its budget at most', async () => {
  const source = new MemorySource()
  const partitions = source.addTopic('sensors', 'temp', 4)
  const dailyBudgetBytes = 10_000
  const budget = new KeptBudget({ name: 'central', maxBytesPerSecond: 0, dailyBudgetBytes }, undefined, systemClock)
  const upstream = new EmptyUpstream()
  const turns = new Turns()
  const slots = new Slots(4)
  const runners = partitions.map((partition) => {
    // The log gives batches whole, and takes a while for what lies on the disk.
    for (let batch = 0; batch < 10; batch++) partition.append(...Array(50).fill('x'.repeat(80)))
    const onDisk = {
      key: partition.key,
      partitionId: partition.partitionId,
      logStartOffset: 0n,
      foundEnd: 0n,
      durableEnd: partition.durableEnd,
      onAppended: () => () => {},
      async read(...request: Parameters<typeof partition.read>) {
        await new Promise((resolve) => setImmediate(resolve))
        return partition.read(...request)
      },
    }
    return runnerOf(source, onDisk, budget, { slots })
  })
  for (const runner of runners) runner.linkUp(upstream, turns)
  await eventually(() => budget.pause() !== null, 'the budget is used up')
  await eventually(() => runners.every(({ view }) => view.state === 'paused'), 'all of them wait for the next day')
  const sentBytes = upstream.sent.reduce((sum, { recordsView }) => sum + recordsView.length, 0)
  const oneBytes = Math.max(...upstream.sent.map(({ recordsView, count }) => recordsView.length / count))
  assert.ok(sentBytes >= dailyBudgetBytes && sentBytes < dailyBudgetBytes + oneBytes, `${sentBytes} bytes were sent`)
  for (const runner of runners) runner.close()
})
