/**
 * `message tail`: follows partitions by offset, each from a few messages before its end. Stores nothing on the server, keeps
 * nothing but one offset a partition, and ends with the signal.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../../sdk/index.ts'
import type { Identifier } from '../../../sdk/wire/primitives.ts'
import type { CommandContext } from '../command.ts'
import type { Values } from '../grammar.ts'
import { MAX_PARTITION, present, streamOf, topicOf } from '../nouns/arguments.ts'
import { formatRow } from '../output.ts'
import type { Output } from '../server-command.ts'
import { messageRow, messageText, type PlacedMessage } from './message-row.ts'

const BATCH_COUNT = 100
const DEFAULT_NEWEST = 10
const MAX_NEWEST = 10_000
const MAX_COUNT = 2 ** 31
/** Between looks at partitions that had nothing: quick enough to watch, slow enough for a gateway. */
const IDLE_MS = 200

export async function tailMessages(
  client: Client,
  values: Values,
  output: Output,
  { signal, flush }: CommandContext,
): Promise<void> {
  const [stream, topic] = [streamOf(values), topicOf(values)]
  const limit = values.integer('count', MAX_COUNT, { min: 1, max: MAX_COUNT })
  const positions = await startPositions(client, stream, topic, values)
  let shownCount = 0
  while (!signal.aborted && shownCount < limit) {
    let foundCount = 0
    for (const [partitionId, offset] of positions) {
      if (signal.aborted || shownCount >= limit) break
      const { messages } = await client.messages.poll(stream, topic, {
        partitionId,
        strategy: { kind: 'offset', offset },
        count: Math.min(BATCH_COUNT, limit - shownCount),
      })
      for (const message of messages) output.line(lineOf({ ...message, partitionId }, values, output))
      await flush()
      const last = messages.at(-1)
      if (last !== undefined) positions.set(partitionId, last.offset + 1n)
      foundCount += messages.length
      shownCount += messages.length
    }
    if (foundCount === 0) await sleep(IDLE_MS, undefined, { signal }).catch(() => {})
  }
}

/** Offset to begin with, by partition. */
async function startPositions(
  client: Client,
  stream: Identifier,
  topic: Identifier,
  values: Values,
): Promise<Map<number, bigint>> {
  const found = present(await client.topics.get(stream, topic), 'EDGE_TOPIC_NOT_FOUND', `topic "${topic}"`)
  const newest = BigInt(values.integer('newest', DEFAULT_NEWEST, { min: 0, max: MAX_NEWEST }))
  const only = values.has('partition') ? values.integer('partition', 0, { min: 0, max: MAX_PARTITION }) : null
  const partitions = found.partitions.filter(({ id }) => only === null || id === only)
  if (partitions.length === 0) present(null, 'EDGE_PARTITION_NOT_FOUND', `partition ${only} of topic "${topic}"`)
  return new Map(
    partitions.map(({ id, currentOffset, messagesCount }) => {
      // The current offset is that of the newest message, and 0 also when there is none.
      const end = messagesCount === 0n && currentOffset === 0n ? 0n : currentOffset + 1n
      return [id, end > newest ? end - newest : 0n]
    }),
  )
}

function lineOf(message: PlacedMessage, values: Values, output: Output): string | Buffer {
  const form = { withHeaders: values.has('show-headers') }
  if (values.has('raw')) return Buffer.from(message.payload)
  return output.form === 'json' ? formatRow(messageRow(message, form), 'json') : messageText(message, form)
}
