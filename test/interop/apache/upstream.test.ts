/**
 * The client and sync against Apache's own servers, which acknowledge from memory and forget what they acknowledged when
 * they are killed. The environment names their binaries: EDGE_TEST_APACHE_080, EDGE_TEST_APACHE_HEAD.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { benchServer } from '../../../src/runtime/bench/server-bench.ts'
import { connect } from '../../../src/sdk/index.ts'
import { type Sync, startSync } from '../../../src/sync/index.ts'
import { APACHE_SERVERS, ApacheServer, apacheBinary } from '../../support/apache-server.ts'
import { eventually } from '../../support/eventually.ts'
import { MemorySource } from '../../support/memory-source.ts'
import { readAll } from '../../support/upstream-readings.ts'

const PARTITIONS = 4
const TOTAL = 8000
const KILLS = 3
const LIMIT_MS = 60_000

/** By the cursors alone there may be no lag: only a look at the upstream's tail tells that it forgot nothing. */
function isCaughtUp(sync: Sync): boolean {
  return sync.state().upstreams.every(({ partitions }) => partitions.every(({ state }) => state === 'caught-up'))
}

async function serverOf(context: TestContext, binary: string): Promise<ApacheServer> {
  const folder = await mkdtemp(join(tmpdir(), 'apache-'))
  const server = await ApacheServer.start(binary, folder)
  context.after(async () => {
    await server.kill()
    await rm(folder, { recursive: true, force: true })
  })
  return server
}

for (const { name, variable, generation } of APACHE_SERVERS) {
  const binary = apacheBinary(variable)
  const options = 'path' in binary ? { timeout: 2 * LIMIT_MS } : { skip: binary.reason }
  const path = 'path' in binary ? binary.path : ''

  test(`${name}: the client finds out the generation, sends, polls, and shares a group`, options, async (context) => {
    const server = await serverOf(context, path)
    const client = await connect(`iggy://iggy:iggy@127.0.0.1:${server.tcpPort}`)
    context.after(() => client.close())
    assert.equal(client.dialect, generation)
    await client.streams.create('site')
    await client.topics.create('site', 'temp', { partitions: 2 })
    const producer = client.producer({ stream: 'site', topic: 'temp', lingerMs: 2 })
    const payloads = Array.from({ length: 500 }, (_, index) => `m${index}`)
    await Promise.all(payloads.map((text) => producer.send({ payload: new TextEncoder().encode(text) })))
    await producer.close()
    const seen = new Set<string>()
    for await (const message of client.consumer({
      stream: 'site',
      topic: 'temp',
      group: 'g',
      commit: { kind: 'after', count: 50 },
    })) {
      seen.add(new TextDecoder().decode(message.payload))
      if (seen.size === payloads.length) break
    }
    assert.deepEqual([...seen].sort(), payloads.toSorted())
    await assert.rejects(client.streams.create('site'), { code: 'EDGE_STREAM_NAME_TAKEN' })
    const token = await client.tokens.create('ci-token', null)
    const second = await connect(`iggy://${encodeURIComponent(token)}@127.0.0.1:${server.tcpPort}`)
    await second.close()
  })

  test(`${name}: bench measures it, and leaves nothing behind`, options, async (context) => {
    const server = await serverOf(context, path)
    const client = await connect(`iggy://iggy:iggy@127.0.0.1:${server.tcpPort}`)
    context.after(() => client.close())
    const { signal } = new AbortController()
    const ports = { client, disk: async () => null, note() {}, signal }
    const { scenarios } = await benchServer({ connections: 2, payloadBytes: 100, seconds: 0.3 }, ports)
    assert.ok(scenarios.length >= 4 && scenarios.every(({ messages }) => messages > 0))
    assert.deepEqual(await client.streams.list(), [])
  })

  for (const scheme of ['tcp', 'http'] as const) {
    const title = `${name}: over ${scheme} every record arrives once, in order, while both sides are killed`
    test(title, options, async (context) => {
      const server = await serverOf(context, path)
      const port = scheme === 'tcp' ? server.tcpPort : server.httpPort
      const source = new MemorySource()
      const partitions = source.addTopic('sensors', 'temp', PARTITIONS)
      const syncOptions = {
        upstreams: [{ name: 'central', url: `iggy+${scheme}://iggy:iggy@127.0.0.1:${port}`, settleMs: 500 }],
        routes: [{ from: 'sensors/*', to: 'central:site-7/{topic}' }],
      }
      const ports = { log: source, cursors: source, clock: systemClock, logger: silentLogger }
      let sync = await startSync(syncOptions, ports)
      context.after(() => sync.close())
      const expected: string[][] = partitions.map(() => [])
      let appended = 0
      const feed = setInterval(() => {
        for (let count = 0; count < 50 && appended < TOTAL; count++, appended++) {
          partitions[appended % PARTITIONS]?.append(`r${appended}`)
          expected[appended % PARTITIONS]?.push(`r${appended}`)
        }
      }, 10)
      context.after(() => clearInterval(feed))
      for (let kill = 0; kill < KILLS; kill++) {
        // It runs, is away and comes back while records are appended.
        await delay(400)
        await server.kill()
        await delay(100)
        await server.startAgain()
        await delay(700)
        await sync.close()
        if (kill === 1) source.cursors.clear()
        sync = await startSync(syncOptions, ports)
      }
      await eventually(() => appended === TOTAL && isCaughtUp(sync), 'drained', LIMIT_MS)
      const held = await readAll(`iggy://iggy:iggy@127.0.0.1:${server.tcpPort}`, 'site-7', 'temp', PARTITIONS)
      assert.deepEqual(held, expected)
    })
  }
}
