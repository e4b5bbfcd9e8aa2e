import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../../src/clock.ts'
import { EdgeError } from '../../../../src/errors.ts'
import { silentLogger } from '../../../../src/logger.ts'
import { messageId } from '../../../../src/sync/core/message-id.ts'
import type { OpenUpstream, Upstream } from '../../../../src/sync/io/upstream.ts'
import { UpstreamLoop } from '../../../../src/sync/io/upstream-loop.ts'
import { readSyncOptions, type UpstreamSpec } from '../../../../src/sync/options.ts'
import type { SourcePartition } from '../../../../src/sync/ports.ts'
import { eventually } from '../../../support/eventually.ts'
import { QUICK_FORWARDER } from '../../../support/forwarder-options.ts'
import { MemorySource } from '../../../support/memory-source.ts'

/** What servers of both generations answer for a topic that is not there. */
const MISSING = { iggyCode: 2010 }

/** Knows the topics that were asked for and not forgotten, as a link does. */
function knowingUpstream(): Upstream & { readonly known: ReadonlySet<string> } {
  const known = new Set<string>()
  return {
    known,
    protocol: 'vsr',
    peer: 'nowhere',
    closed: new Promise<EdgeError>(() => {}),
    async ensureTopic({ topicName }) {
      known.add(topicName)
      return '1'
    },
    findTopic: async () => '1',
    forgetTopic: ({ topicName }) => void known.delete(topicName),
    pollTail: async () => ({ currentOffset: 0n, messages: [], sizeBytes: 0, contentAt: () => null }),
    send: async () => 0n,
    abort() {},
  }
}

/** A link that is up, and what adds partitions of a topic to it. */
async function startLoop(
  context: TestContext,
  upstream: Upstream | OpenUpstream,
  source: MemorySource,
  logger = silentLogger,
  more: Partial<UpstreamSpec> = {},
) {
  const { upstreams, routes } = readSyncOptions({
    upstreams: [{ name: 'central', url: 'iggy+tcp://user:password@127.0.0.1:1', ...more }],
    routes: [{ from: 'sensors/*', to: 'central:site/{topic}' }],
  })
  const [settings] = upstreams
  const [route] = routes
  assert.ok(settings && route)
  const ports = { log: source, cursors: source, clock: systemClock, logger }
  const open = typeof upstream === 'function' ? upstream : async () => upstream
  const loop = new UpstreamLoop(settings, ports, open, () => {})
  context.after(() => loop.close({} as EdgeError))
  loop.start()
  await eventually(() => loop.link.state === 'up', 'the link is up')
  const add = (topicName: string, partition: SourcePartition) =>
    loop.add(`${topicName}/${partition.partitionId}`, {
      route,
      source: { streamName: 'sensors', topicName },
      target: { streamName: 'site', topicName },
      partition,
      partitionCount: () => 1,
      forwarder: QUICK_FORWARDER,
      cursors: source,
      deadLetters: undefined,
      slots: loop.slots,
      budget: loop.budget,
      clock: systemClock,
      logger,
    })
  return { loop, add }
}

test('of topics that come and go while the link stands, the link keeps nothing', async (context) => {
  const source = new MemorySource()
  const upstream = knowingUpstream()
  const { loop, add } = await startLoop(context, upstream, source)
  for (let count = 0; count < 100; count++) {
    const topicName = `t${count}`
    const [partition] = source.addTopic('sensors', topicName, 1)
    assert.ok(partition)
    add(topicName, partition)
    assert.equal(upstream.known.size, 1)
    loop.keepOnly(() => false)
  }
  assert.equal(upstream.known.size, 0)
})

test('a partition that finds its topic gone tells the others of that topic, before they send to one made anew', async (context) => {
  const source = new MemorySource()
  const [first, second] = source.addTopic('sensors', 'temp', 2)
  const [other] = source.addTopic('sensors', 'other', 1)
  assert.ok(first && second && other)
  /** Messages of each partition there; the topic "temp" has none once it was made anew. */
  const held = new Map<string, bigint[]>()
  let isDeleted = false
  const steps: string[] = []
  const upstream: Upstream = {
    ...knowingUpstream(),
    async ensureTopic({ topicName }) {
      steps.push(`ensure ${topicName}`)
      if (topicName === 'temp' && isDeleted) held.clear()
      isDeleted = false
      return '1'
    },
    async pollTail({ topicName }, partitionId) {
      const ids = held.get(`${topicName}/${partitionId}`) ?? []
      const messages = ids.slice(-1).map((id) => ({ offset: BigInt(ids.length - 1), id }))
      return { currentOffset: BigInt(Math.max(0, ids.length - 1)), messages, sizeBytes: 0, contentAt: () => null }
    },
    async send({ topicName }, partitionId, { baseOffset, count, idSeed }) {
      if (topicName === 'temp' && isDeleted) throw new EdgeError('EDGE_TOPIC_NOT_FOUND', 'gone', { details: MISSING })
      const key = `${topicName}/${partitionId}`
      steps.push(`send ${key} ${baseOffset}`)
      const ids = held.get(key) ?? []
      held.set(key, ids)
      for (let index = 0; index < count; index++) ids.push(messageId(idSeed ?? 0n, baseOffset + BigInt(index)))
      return null
    },
  }
  const warned: string[] = []
  const logger = { ...silentLogger, warn: (event: string) => void warned.push(event) }
  const { loop, add } = await startLoop(context, upstream, source, logger)
  add('temp', first)
  add('temp', second)
  add('other', other)
  second.append('a', 'b')
  other.append('c')
  await eventually(() => held.get('temp/1')?.length === 2 && held.get('other/0')?.length === 1, 'sent')
  isDeleted = true
  steps.length = 0
  first.append('d')
  await eventually(() => held.get('temp/0')?.length === 1 && held.get('temp/1')?.length === 2, 'filled again')
  await eventually(() => [...loop.runners].every(({ view }) => view.state === 'caught-up'), 'all caught up')
  assert.deepEqual(steps.toSorted(), ['ensure temp', 'ensure temp', 'send temp/0 0', 'send temp/1 0'])
  assert.deepEqual(
    warned.filter((event) => event === 'sync.topic.missing'),
    ['sync.topic.missing'],
  )
})

test('a link that comes and goes, and never carries anything, is told as stalled, once', async (context) => {
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  assert.ok(partition)
  let isReachable = true
  let linkCount = 0
  // Each link ends at the look at the tail.
  const open = async (): Promise<Upstream> => {
    if (!isReachable) throw new EdgeError('EDGE_UPSTREAM_UNREACHABLE', 'gone')
    linkCount++
    const { promise: closed, resolve } = Promise.withResolvers<EdgeError>()
    const pollTail = async (): Promise<never> => {
      const error = new EdgeError('EDGE_UPSTREAM_TIMEOUT', 'no answer in time')
      resolve(error)
      throw error
    }
    return { ...knowingUpstream(), closed, pollTail }
  }
  const warned: string[] = []
  const logger = { ...silentLogger, warn: (event: string) => void warned.push(event) }
  const quick = { retryDelayMinMs: 1, retryDelayMaxMs: 2, stalledAfterMs: 50 }
  const { loop, add } = await startLoop(context, open, source, logger, quick)
  add('temp', partition)
  const stalls = () => warned.filter((event) => event === 'sync.stalled').length
  const passLinks = async () => {
    const end = linkCount + 40
    await eventually(() => {
      loop.watch()
      return linkCount >= end
    }, 'links come and go')
  }
  await passLinks()
  assert.equal(stalls(), 0, 'there is nothing to send')
  partition.append('a')
  await eventually(() => {
    loop.watch()
    return stalls() === 1
  }, 'it is told')
  await passLinks()
  assert.equal(stalls(), 1)
  isReachable = false
  await eventually(() => {
    loop.watch()
    return loop.link.reason?.code === 'EDGE_UPSTREAM_UNREACHABLE'
  }, 'it cannot be reached, which is another trouble')
  await eventually(() => {
    loop.watch()
    isReachable = true
    return stalls() === 2
  }, 'it is told again')
})
