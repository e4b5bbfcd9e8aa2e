/** `message poll`: one partition for a single consumer, or a turn as a member of a consumer group. */
import { writeFile } from 'node:fs/promises'
import { EdgeError, toEdgeError } from '../../../errors.ts'
import type { Client } from '../../../sdk/index.ts'
import type { Identifier, PollingStrategy } from '../../../sdk/wire/primitives.ts'
import { counted } from '../../counted.ts'
import type { CommandContext } from '../command.ts'
import { usageError, type Values } from '../grammar.ts'
import { MAX_PARTITION, streamOf, topicOf } from '../nouns/arguments.ts'
import type { Output } from '../server-command.ts'
import { identifierOf } from '../words.ts'
import { messageLine, messageRow, type PlacedMessage } from './message-row.ts'

const MAX_COUNT = 100_000
const DEFAULT_GROUP_COUNT = 10

/** How far was read is stored when the messages are where they were to go: with a full disk they come again. */
export async function pollMessages(
  client: Client,
  values: Values,
  output: Output,
  { flush }: Pick<CommandContext, 'flush'>,
): Promise<void> {
  const [stream, topic] = [streamOf(values), topicOf(values)]
  const group = values.text('consumer-group')
  const messages =
    group === undefined
      ? await pollPartition(client, stream, topic, values)
      : await pollAsMember(client, { stream, topic, group }, values)
  const file = values.text('output-file')
  if (file !== undefined) await writeLines(file, messages, String(stream), String(topic), output)
  else if (values.has('raw')) for (const { payload } of messages) output.line(Buffer.from(payload))
  else output.rows(messages.map((message) => messageRow(message, { withHeaders: values.has('show-headers') })))
  await flush()
  if (group === undefined ? !values.has('auto-commit') : values.has('no-commit')) return
  const last = new Map(messages.map(({ partitionId, offset }) => [partitionId, offset]))
  const consumer = group === undefined ? consumerOf(values) : ({ kind: 'group', id: identifierOf(group) } as const)
  for (const [partitionId, offset] of last) await client.offsets.store(consumer, stream, topic, partitionId, offset)
}

const consumerOf = (values: Values) => ({ kind: 'consumer', id: identifierOf(values.text('consumer') ?? '1') }) as const

async function pollPartition(
  client: Client,
  stream: Identifier,
  topic: Identifier,
  values: Values,
): Promise<PlacedMessage[]> {
  const polled = await client.messages.poll(stream, topic, {
    consumer: consumerOf(values),
    partitionId: values.integer('partition', 0, { min: 0, max: MAX_PARTITION }),
    strategy: strategyOf(values),
    count: values.integer('message-count', 1, { min: 1, max: MAX_COUNT }),
  })
  return polled.messages.map((message) => ({ ...message, partitionId: polled.partitionId }))
}

/** Joins, reads its partitions one after the other up to the count, and leaves with the end of the connection. */
async function pollAsMember(
  client: Client,
  target: { readonly stream: Identifier; readonly topic: Identifier; readonly group: string },
  values: Values,
): Promise<PlacedMessage[]> {
  const { stream, topic, group } = target
  const id = identifierOf(group)
  if ((await client.groups.get(stream, topic, id)) === null) await createGroup(client, stream, topic, id)
  await client.groups.join(stream, topic, id)
  const count = values.integer('message-count', DEFAULT_GROUP_COUNT, { min: 1, max: MAX_COUNT })
  const messages: PlacedMessage[] = []
  for (const partitionId of await partitionsOf(client, target, values)) {
    if (messages.length >= count) break
    const polled = await client.messages.poll(stream, topic, {
      consumer: { kind: 'group', id },
      partitionId,
      strategy: strategyOf(values),
      count: count - messages.length,
      // Older servers choose the partition, and may choose one twice.
      autoCommit: partitionId === null && !values.has('no-commit'),
    })
    messages.push(...polled.messages.map((message) => ({ ...message, partitionId: polled.partitionId })))
  }
  return messages
}

async function createGroup(client: Client, stream: Identifier, topic: Identifier, group: Identifier): Promise<void> {
  if (typeof group === 'number') throw new EdgeError('EDGE_GROUP_NOT_FOUND', `consumer group ${group} was not found`)
  try {
    await client.groups.create(stream, topic, group)
  } catch (error) {
    // Another one was faster.
    if (!(error instanceof EdgeError && error.code === 'EDGE_GROUP_NAME_TAKEN')) throw error
  }
}

/** Newer servers say which partitions are this member's; older ones choose at each poll. */
async function partitionsOf(
  client: Client,
  { stream, topic, group }: { readonly stream: Identifier; readonly topic: Identifier; readonly group: string },
  values: Values,
): Promise<readonly (number | null)[]> {
  if (values.has('partition')) return [values.integer('partition', 0, { min: 0, max: MAX_PARTITION })]
  if (client.dialect === 'vsr') return (await client.groups.sync(stream, topic, identifierOf(group)))?.partitions ?? []
  const found = await client.groups.get(stream, topic, identifierOf(group))
  return Array.from({ length: found?.partitionsCount ?? 1 }, () => null)
}

function strategyOf(values: Values): PollingStrategy {
  const given = (['strategy', 'offset', 'first', 'last', 'next'] as const).filter((name) => values.has(name))
  if (given.length > 1) throw usageError(`${given.map((name) => `--${name}`).join(' and ')} exclude each other`)
  if (values.has('offset')) return { kind: 'offset', offset: values.bigint('offset', 0n) }
  for (const kind of ['first', 'last', 'next'] as const) if (values.has(kind)) return { kind }
  const text = values.text('strategy') ?? 'next'
  if (text === 'first' || text === 'last' || text === 'next') return { kind: text }
  const match = /^(offset|timestamp)[:=](\d{1,20})$/.exec(text)
  if (match === null)
    throw usageError(`strategy: found "${text}", expected first, last, next, offset:N or timestamp:MICROSECONDS`)
  const value = BigInt(match[2] ?? 0)
  return match[1] === 'offset' ? { kind: 'offset', offset: value } : { kind: 'timestamp', timestampUs: value }
}

async function writeLines(
  path: string,
  messages: readonly PlacedMessage[],
  stream: string,
  topic: string,
  output: Output,
): Promise<void> {
  const text = messages.map((message) => `${messageLine(message, stream, topic)}\n`).join('')
  await writeFile(path, text).catch((cause: unknown) => {
    throw new EdgeError('EDGE_IO', `${path} cannot be written: ${toEdgeError(cause).message}`, { cause })
  })
  output.done(`${counted(messages.length, 'message')} written to ${path}`, { messages: messages.length, path })
}
