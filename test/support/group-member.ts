/**
 * A member of a consumer group as a process of its own, for tests that stop, kill and freeze it. Prints one line a message:
 * partition, offset and payload. SIGTERM: handles what it is at,
 * commits, leaves, ends.
 */
import { writeSync } from 'node:fs'
import { connect } from '../../src/sdk/index.ts'

const [url = '', stream = '', topic = '', group = ''] = process.argv.slice(2)
const client = await connect(url)
const consumer = client.consumer({ stream, topic, group, commit: { kind: 'each' }, batchCount: 20 })
process.on('SIGTERM', () => consumer.stop())
const decoder = new TextDecoder()
for await (const { partitionId, offset, payload } of consumer) {
  // At once: a process that is killed has no time for what is buffered.
  writeSync(1, `${partitionId} ${offset} ${decoder.decode(payload)}\n`)
}
await client.close()
