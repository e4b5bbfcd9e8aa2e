/** An edge whose data was restored from a copy, and that grew again before it reached its upstream, which holds what was lost. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { startSync } from '../../../src/sync/index.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestHttpOn } from '../../support/http-server.ts'
import { MemoryLog } from '../../support/memory-log.ts'
import { type MemoryPartition, MemorySource } from '../../support/memory-source.ts'
import { startProtocolServer } from '../../support/protocol-server.ts'
import { readAll } from '../../support/upstream-readings.ts'

const FAST = { retryDelayMinMs: 10, retryDelayMaxMs: 50, settleMs: 50, blockedRetryMs: 50 }
const COPY_COUNT = 30

/** What an upstream is reached by, and read from. */
interface Central {
  readonly url: string
  readonly readUrl: string
}

async function centralOver(context: TestContext, way: 'classic' | 'vsr' | 'http'): Promise<Central> {
  const log = new MemoryLog()
  const server = await startProtocolServer({ log })
  context.after(() => server[Symbol.asyncDispose]())
  const readUrl = `iggy://iggy:iggy@127.0.0.1:${server.listener.port}`
  if (way !== 'http') return { url: `${readUrl}?generation=${way}`, readUrl }
  const http = await startTestHttpOn(log)
  context.after(() => http[Symbol.asyncDispose]())
  return { url: http.url.replace('http://', 'iggy+http://iggy:iggy@'), readUrl }
}

/** One life of the edge's process, until everything is upstream. */
async function forward(source: MemorySource, url: string): Promise<void> {
  const options = {
    upstreams: [{ name: 'central', url, ...FAST }],
    routes: [{ from: 'sensors/*', to: 'central:site-7/{topic}' }],
  }
  const sync = await startSync(options, { log: source, cursors: source, clock: systemClock, logger: silentLogger })
  const lag = () => sync.state().upstreams.flatMap(({ partitions }) => partitions.map(({ lagCount }) => lagCount))
  await eventually(() => lag().length > 0 && lag().every((count) => count === 0n), 'drained')
  await sync.close()
}

function appendOneByOne(partition: MemoryPartition, ...texts: readonly string[]): void {
  for (const text of texts) partition.append(text)
}

const numbered = (name: string, from: number, end: number): string[] =>
  Array.from({ length: end - from }, (_, index) => `${name}${from + index}`)

for (const way of ['classic', 'vsr', 'http'] as const) {
  test(`over ${way}: what the restored log grew by goes up, though the upstream has newer ids, and nothing twice`, async (context) => {
    const { url, readUrl } = await centralOver(context, way)
    const source = new MemorySource()
    const [partition] = source.addTopic('sensors', 'temp', 1)
    assert.ok(partition !== undefined)
    appendOneByOne(partition, ...numbered('r', 0, COPY_COUNT - 10))
    await forward(source, url)
    const cursors = new Map(source.cursors)
    // The copy is made while the link is down: its cursor does not know of the last ten.
    appendOneByOne(partition, ...numbered('r', COPY_COUNT - 10, COPY_COUNT + 20))
    await forward(source, url)

    partition.restore(BigInt(COPY_COUNT))
    for (const [key, cursor] of cursors) source.cursors.set(key, cursor)
    appendOneByOne(partition, ...numbered('n', COPY_COUNT, COPY_COUNT + 40))
    partition.foundEnd = partition.durableEnd
    await forward(source, url)
    const expected = [...numbered('r', 0, COPY_COUNT + 20), ...numbered('n', COPY_COUNT, COPY_COUNT + 40)]
    assert.deepEqual(await readAll(readUrl, 'site-7', 'temp', 1), [expected])
  })

  test(`over ${way}: the same reading at another time is another record`, async (context) => {
    const { url, readUrl } = await centralOver(context, way)
    const source = new MemorySource()
    const [partition] = source.addTopic('sensors', 'door', 1)
    assert.ok(partition !== undefined)
    appendOneByOne(partition, 'open', 'shut', 'open')
    await forward(source, url)
    partition.restore(1n)
    source.cursors.clear()
    // Times are told to the millisecond here.
    await new Promise((resolve) => setTimeout(resolve, 2))
    appendOneByOne(partition, 'shut', 'open', 'shut')
    partition.foundEnd = partition.durableEnd
    await forward(source, url)
    assert.deepEqual(await readAll(readUrl, 'site-7', 'door', 1), [['open', 'shut', 'open', 'shut', 'open', 'shut']])
  })
}
