/**
 * Start time and idle memory: of the executable where `EDGE_BENCH_EXECUTABLE` names it, else of the checkout. To be kept by
 * the executable: 300 ms, 20 MB private, 75 MB RSS.
 *
 * As on a gateway that has been started before: the addons lie in the cache folder, certificate and store are there. RSS
 * tells of the page cache, too: a file that has just been written is mapped in larger pieces than one that was read.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CODE } from '../../src/sdk/wire/codes.ts'
import { encodeRecords } from '../../src/sdk/wire/messages.ts'
import { frameOf, loginFrame, RawClient } from './support/load.ts'
import { cpuUsOf, memoryOf, startEdgeServer } from './support/servers.ts'

const IDLE_MS = 10_000
const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`

export async function benchStart(rounds: number): Promise<void> {
  console.log('\nstart to first accepted publish, and idle memory after 10 s, all listeners open, started before')
  const folder = mkdtempSync(join(tmpdir(), 'edge-bench-start-'))
  try {
    await (await startEdgeServer({}, folder))[Symbol.asyncDispose]()
    for (let round = 0; round < rounds; round++) await measureStart(folder, `bench-${round}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureStart(folder: string, stream: string): Promise<void> {
  const startedMs = performance.now()
  await using server = await startEdgeServer({}, folder)
  const listeningMs = performance.now() - startedMs
  const client = await RawClient.open(server.host, server.port)
  await client.ask(loginFrame(server.username, server.password))
  await client.ask(frameOf({ code: CODE.createStream, body: { name: stream, options: [] } }))
  const topic = { stream, name: 'readings', partitionsCount: 1, options: [], replicationFactor: 1 }
  await client.ask(frameOf({ code: CODE.createTopic, body: topic }))
  const batch = encodeRecords([{ payload: new Uint8Array(200), originUs: BigInt(Date.now()) * 1000n }])
  const partitioning = { kind: 'partition', partitionId: 0 } as const
  await client.ask(frameOf({ code: CODE.sendMessages, body: { stream, topic: 'readings', partitioning, batch } }))
  const publishedMs = performance.now() - startedMs
  const cpuMs = cpuUsOf(server.pid) / 1000
  client.close()
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
  const { privateBytes, rssBytes } = memoryOf(server.pid)
  console.log(
    `  ready ${listeningMs.toFixed(0)} ms, first publish ${publishedMs.toFixed(0)} ms (login, stream and topic included; ${cpuMs.toFixed(0)} ms of CPU), private ${mib(privateBytes)}, RSS ${mib(rssBytes)}`,
  )
}
