/** What an upstream topic holds, by partition, as text: read through the client. */
import { type Client, connect } from '../../src/sdk/index.ts'

const PAGE_COUNT = 1000

export async function readAll(url: string, stream: string, topic: string, partitionCount: number): Promise<string[][]> {
  const client = await connect(url)
  try {
    const partitions: string[][] = []
    for (let partitionId = 0; partitionId < partitionCount; partitionId++) {
      partitions.push(await readPartition(client, stream, topic, partitionId))
    }
    return partitions
  } finally {
    await client.close()
  }
}

async function readPartition(client: Client, stream: string, topic: string, partitionId: number): Promise<string[]> {
  const found: string[] = []
  for (;;) {
    const strategy = { kind: 'offset', offset: BigInt(found.length) } as const
    const { messages } = await client.messages.poll(stream, topic, { partitionId, strategy, count: PAGE_COUNT })
    if (messages.length === 0) return found
    for (const { payload } of messages) found.push(new TextDecoder().decode(payload))
  }
}
