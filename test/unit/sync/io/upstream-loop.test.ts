import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../../src/clock.ts'
import type { EdgeError } from '../../../../src/errors.ts'
import { silentLogger } from '../../../../src/logger.ts'
import type { Upstream } from '../../../../src/sync/io/upstream.ts'
import { UpstreamLoop } from '../../../../src/sync/io/upstream-loop.ts'
import { readSyncOptions } from '../../../../src/sync/options.ts'
import { QUICK_FORWARDER } from '../../../support/forwarder-options.ts'
import { MemorySource } from '../../../support/memory-source.ts'

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
    pollTail: async () => ({ currentOffset: 0n, messages: [] }),
    send: async () => 0n,
    abort() {},
  }
}

test('of topics that come and go while the link stands, the link keeps nothing', async (context) => {
  const source = new MemorySource()
  const { upstreams, routes } = readSyncOptions({
    upstreams: [{ name: 'central', url: 'iggy+tcp://user:password@127.0.0.1:1' }],
    routes: [{ from: 'sensors/*', to: 'central:site/{topic}' }],
  })
  const [settings] = upstreams
  const [route] = routes
  assert.ok(settings && route)
  const upstream = knowingUpstream()
  const up = Promise.withResolvers<void>()
  const ports = { log: source, cursors: source, clock: systemClock, logger: silentLogger }
  const loop = new UpstreamLoop(settings, ports, async () => upstream, up.resolve)
  context.after(() => loop.close({} as EdgeError))
  loop.start()
  await up.promise
  for (let count = 0; count < 100; count++) {
    const topicName = `t${count}`
    const [partition] = source.addTopic('sensors', topicName, 1)
    assert.ok(partition)
    loop.add(topicName, {
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
      logger: silentLogger,
    })
    assert.equal(upstream.known.size, 1)
    loop.keepOnly(() => false)
  }
  assert.equal(upstream.known.size, 0)
})
