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
import { frameOf } from '../../src/runtime/bench/raw-client.ts'
import { CODE } from '../../src/sdk/wire/codes.ts'
import { decodeResponse } from '../../src/sdk/wire/commands/index.ts'
import { encodeRecords } from '../../src/sdk/wire/messages.ts'
import { loginFrame, openRawClient } from './support/load.ts'
import { cpuUsOf, memoryOf, startEdgeServer } from './support/servers.ts'

const IDLE_MS = 10_000
const STREAM = 'bench'
const TOPIC = 'readings'
const NEVER_EXPIRES_US = 0n
const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`

export async function benchStart(rounds: number): Promise<void> {
  console.log('\nstart to first accepted publish, and idle memory after 10 s, all listeners open, started before')
  const folder = mkdtempSync(join(tmpdir(), 'edge-bench-start-'))
  try {
    const token = await prepare(folder)
    for (let round = 0; round < rounds; round++) await measureStart(folder, token)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What is there after a restart: stream, topic, and the token that a client logs in with. */
async function prepare(folder: string): Promise<string> {
  await using server = await startEdgeServer({}, folder)
  const client = await openRawClient(server.host, server.port)
  await client.ask(loginFrame(server.username, server.password))
  await client.ask(frameOf({ code: CODE.createStream, body: { name: STREAM, options: [] } }))
  const topic = { stream: STREAM, name: TOPIC, partitionsCount: 1, options: [], replicationFactor: 1 }
  await client.ask(frameOf({ code: CODE.createTopic, body: topic }))
  const body = { name: 'bench', expiryUs: NEVER_EXPIRES_US }
  const answer = await client.ask(frameOf({ code: CODE.createPersonalAccessToken, body }))
  client.close()
  return decodeResponse('classic', CODE.createPersonalAccessToken, answer).token
}

async function measureStart(folder: string, token: string): Promise<void> {
  const startedMs = performance.now()
  await using server = await startEdgeServer({}, folder)
  const listeningMs = performance.now() - startedMs
  const client = await openRawClient(server.host, server.port)
  await client.ask(frameOf({ code: CODE.loginWithPersonalAccessToken, body: { token } }))
  const batch = encodeRecords([{ payload: new Uint8Array(200), originUs: BigInt(Date.now()) * 1000n }])
  const partitioning = { kind: 'partition', partitionId: 0 } as const
  await client.ask(frameOf({ code: CODE.sendMessages, body: { stream: STREAM, topic: TOPIC, partitioning, batch } }))
  const publishedMs = performance.now() - startedMs
  const cpuMs = cpuUsOf(server.pid) / 1000
  client.close()
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
  const { privateBytes, rssBytes } = memoryOf(server.pid)
  console.log(
    `  ready ${listeningMs.toFixed(0)} ms, first publish ${publishedMs.toFixed(0)} ms (with its login by token; ${cpuMs.toFixed(0)} ms of CPU), private ${mib(privateBytes)}, RSS ${mib(rssBytes)}`,
  )
}
