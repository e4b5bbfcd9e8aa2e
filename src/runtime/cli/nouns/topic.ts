/** `topic`: create, list, get (`stats`), update, delete, purge. */
import type { Client, TopicSettings } from '../../../sdk/index.ts'
import type { TopicDetails, TopicRecord } from '../../../sdk/wire/records.ts'
import { parseByteText, parseDurationWithUnit } from '../../amount-text.ts'
import type { Command } from '../command.ts'
import { type Argument, usageError, type Values } from '../grammar.ts'
import { bytes, duration, nested, type Row, time } from '../output.ts'
import { serverCommand } from '../server-command.ts'
import { commandWords, VERBS } from '../words.ts'
import { IGNORED_ID, present, STREAM, streamOf, TOPIC, topicOf } from './arguments.ts'

const words = (verb: keyof typeof VERBS) => commandWords(['topic', 't'], VERBS[verb])

const MAX_PARTITIONS = 1000

const NAME: Argument = { name: 'name', isPositional: true, isRequired: true, summary: 'Name, 1 to 255 bytes.' }
const SETTINGS: readonly Argument[] = [
  { name: 'compression', isPositional: true, summary: 'none or gzip; kept and shown, the log compresses by itself.' },
  {
    name: 'expiry',
    aliases: ['message-expiry'],
    isPositional: true,
    isVariadic: true,
    summary: 'Age after which messages may be dropped: 7days, 1h 30m, never; else as the server is configured.',
  },
  { name: 'max-size', aliases: ['m', 'max-topic-size'], summary: 'Size of all partitions: 2GB, unlimited.' },
  {
    name: 'set',
    isVariadic: true,
    summary: 'Further option as KEY=VALUE, such as durability=buffered; see options topic.',
  },
  { name: 'replication-factor', aliases: ['r'], summary: 'Taken for compatibility: there is one node.' },
]

export const TOPIC_COMMANDS: readonly Command[] = [
  serverCommand({
    ...words('create'),
    summary: 'Create a topic.',
    arguments: [
      STREAM,
      NAME,
      {
        name: 'partitions',
        aliases: ['partitions-count'],
        isPositional: true,
        summary: `Partitions, 0 to ${MAX_PARTITIONS}; default 1.`,
      },
      ...SETTINGS,
      { name: 'topic-id', aliases: ['t'], ...IGNORED_ID },
    ],
    async run(client, values, output) {
      const partitions = values.integer('partitions', 1, { min: 0, max: MAX_PARTITIONS })
      const settings = await settingsOf(client, values)
      const stream = streamOf(values)
      const topic = await client.topics.create(stream, values.required('name'), { partitions, ...settings })
      output.done(`topic "${topic.name}" created, id ${topic.id}, partitions ${topic.partitionsCount}`, topicRow(topic))
      if (topic.partitionsCount === 0)
        output.note(
          `it takes no messages without a partition: iggy-edge partition create ${stream} ${topic.name} COUNT adds some`,
        )
    },
  }),
  serverCommand({
    ...words('list'),
    summary: 'List the topics of a stream.',
    arguments: [STREAM],
    async run(client, values, output) {
      const stream = streamOf(values)
      const topics = await client.topics.list(stream)
      // Iggy answers a missing stream like one without topics.
      if (topics.length === 0) present(await client.streams.get(stream), 'EDGE_STREAM_NOT_FOUND', `stream "${stream}"`)
      output.rows(topics.map(topicRow))
    },
  }),
  serverCommand({
    ...commandWords(['topic', 't'], [...VERBS.get, 'stats']),
    summary: 'Show a topic and its partitions.',
    arguments: [STREAM, TOPIC],
    async run(client, values, output) {
      const [stream, id] = [streamOf(values), topicOf(values)]
      const what = `topic "${id}" of stream "${stream}"`
      const topic = present(await client.topics.get(stream, id), 'EDGE_TOPIC_NOT_FOUND', what)
      if (output.form === 'json') return output.row(topicWithPartitions(topic))
      output.row(topicRow(topic))
      output.line('')
      output.rows(topic.partitions.map(partitionRow))
    },
  }),
  serverCommand({
    ...words('update'),
    summary: 'Change name and settings of a topic.',
    arguments: [STREAM, TOPIC, NAME, ...SETTINGS],
    async run(client, values, output) {
      const [stream, topic, name] = [streamOf(values), topicOf(values), values.required('name')]
      await client.topics.update(stream, topic, name, await settingsOf(client, values))
      output.done(`topic "${topic}" updated`, { stream, topic, name })
    },
  }),
  serverCommand({
    ...words('delete'),
    summary: 'Delete a topic with its messages.',
    arguments: [STREAM, TOPIC],
    async run(client, values, output) {
      const [stream, topic] = [streamOf(values), topicOf(values)]
      await client.topics.delete(stream, topic)
      output.done(`topic "${topic}" deleted`, { stream, topic })
    },
  }),
  serverCommand({
    ...words('purge'),
    summary: 'Drop all messages of a topic, keep its offsets going.',
    arguments: [STREAM, TOPIC],
    async run(client, values, output) {
      const [stream, topic] = [streamOf(values), topicOf(values)]
      await client.topics.purge(stream, topic)
      output.done(`topic "${topic}" purged`, { stream, topic })
    },
  }),
]

export function topicRow(topic: TopicRecord): Row {
  return {
    id: topic.id,
    name: topic.name,
    partitions: topic.partitionsCount,
    messages: topic.messagesCount,
    size: bytes(topic.sizeBytes),
    max_size: bytes(topic.maxTopicSizeBytes),
    message_expiry: duration(topic.messageExpiryUs),
    compression: topic.compression === 2 ? 'gzip' : 'none',
    created_at: time(topic.createdAtUs),
  }
}

function partitionRow(partition: TopicDetails['partitions'][number]): Row {
  return {
    partition: partition.id,
    segments: partition.segmentsCount,
    current_offset: partition.currentOffset,
    messages: partition.messagesCount,
    size: bytes(partition.sizeBytes),
    created_at: time(partition.createdAtUs),
  }
}

async function settingsOf(client: Client, values: Values): Promise<TopicSettings> {
  const expiry = values.all('expiry').join(' ')
  const maxSize = values.text('max-size')
  const compression = values.choice('compression', 'none', ['none', 'gzip'])
  const options = await optionsOf(client, values.all('set'))
  return {
    ...(values.has('compression') ? { compression } : {}),
    ...(expiry === ''
      ? {}
      : { messageExpiryUs: amount('expiry', expiry, parseDurationWithUnit, '"7 days", "12h" or "never"') }),
    ...(maxSize === undefined
      ? {}
      : { maxTopicSizeBytes: amount('max-size', maxSize, parseByteText, '"2 GB" or "unlimited"') }),
    ...(Object.keys(options).length === 0 ? {} : { options }),
  }
}

function amount(name: string, text: string, parse: (text: string) => bigint | undefined, expected: string): bigint {
  const value = parse(text)
  if (value === undefined) throw usageError(`${name}: found "${text}", expected ${expected}`)
  return value
}

/** The server says of what kind each option is: a number must not go as text. */
async function optionsOf(
  client: Client,
  pairs: readonly string[],
): Promise<Record<string, string | boolean | number | bigint>> {
  const options: Record<string, string | boolean | number | bigint> = {}
  if (pairs.length === 0) return options
  const { headerKindName } = await import('../../../sdk/wire/header-values.ts')
  const kinds = new Map(
    (await client.system.describeOptions('topic')).map(({ key, kind }) => [key, headerKindName(kind)]),
  )
  for (const pair of pairs) {
    const equals = pair.indexOf('=')
    const [key, value] = [pair.slice(0, equals), pair.slice(equals + 1)]
    if (equals < 1) throw usageError(`set: found "${pair}", expected KEY=VALUE`)
    const kind = kinds.get(key)
    if (kind === undefined) throw usageError(`set: option "${key}" is not known; iggy-edge options topic lists all`)
    options[key] = optionValue(kind, value)
  }
  return options
}

function optionValue(kind: string, value: string): string | boolean | number | bigint {
  if (kind === 'bool' && (value === 'true' || value === 'false')) return value === 'true'
  const isNumber = /^\d{1,20}$/.test(value)
  if (kind === 'uint32' && isNumber) return Number(value)
  return kind === 'uint64' && isNumber ? BigInt(value) : value
}

/** One object for programs, as the table of partitions belongs to the topic. */
const topicWithPartitions = (topic: TopicDetails): Row => ({
  ...topicRow(topic),
  partitions: nested(topic.partitions.map(partitionRow)),
})
