/** Start time and idle memory: of the executable where `EDGE_BENCH_EXECUTABLE` names it, else of the checkout. */
import { CODE } from '../../src/sdk/wire/codes.ts'
import { encodeRecords } from '../../src/sdk/wire/messages.ts'
import { frameOf, loginFrame, RawClient } from './support/load.ts'
import { memoryOf, startEdgeServer } from './support/servers.ts'

const IDLE_MS = 10_000
const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`

export async function benchStart(rounds: number): Promise<void> {
  console.log('\nstart to first accepted publish, and idle memory after 10 s, all listeners open')
  for (let round = 0; round < rounds; round++) {
    const startedMs = performance.now()
    await using server = await startEdgeServer({})
    const listeningMs = performance.now() - startedMs
    const client = await RawClient.open(server.host, server.port)
    await client.ask(loginFrame(server.username, server.password))
    await client.ask(frameOf({ code: CODE.createStream, body: { name: 'bench', options: [] } }))
    const topic = { stream: 'bench', name: 'readings', partitionsCount: 1, options: [], replicationFactor: 1 }
    await client.ask(frameOf({ code: CODE.createTopic, body: topic }))
    const batch = encodeRecords([{ payload: new Uint8Array(200), originUs: BigInt(Date.now()) * 1000n }])
    const partitioning = { kind: 'partition', partitionId: 0 } as const
    await client.ask(
      frameOf({ code: CODE.sendMessages, body: { stream: 'bench', topic: 'readings', partitioning, batch } }),
    )
    const publishedMs = performance.now() - startedMs
    client.close()
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
    const { privateBytes, rssBytes } = memoryOf(server.pid)
    console.log(
      `  ready ${listeningMs.toFixed(0)} ms, first publish ${publishedMs.toFixed(0)} ms (login, stream and topic included), private ${mib(privateBytes)}, RSS ${mib(rssBytes)}`,
    )
  }
}
