/** `consumer-offset`: get, set, delete; both `get CONSUMER STREAM TOPIC PARTITION` and `get --consumer-group G ..`. */
import type { StoredOffset } from '../../../sdk/index.ts'
import type { Consumer } from '../../../sdk/wire/primitives.ts'
import type { Command } from '../command.ts'
import type { Argument, Values } from '../grammar.ts'
import type { Row } from '../output.ts'
import { serverCommand } from '../server-command.ts'
import { commandWords, identifierOf, VERBS } from '../words.ts'
import { PARTITION, partitionOf, present, STREAM, streamOf, TOPIC, topicOf } from './arguments.ts'

const NOUNS = ['consumer-offset', 'offset', 'o']
const KINDS = ['consumer', 'consumer-group', 'consumer_group', 'group'] as const

const TARGET: readonly Argument[] = [
  { name: 'consumer', isPositional: true, isRequired: true, summary: 'Id or name of the consumer, or of the group.' },
  STREAM,
  TOPIC,
  PARTITION,
  {
    name: 'consumer-group',
    aliases: ['group'],
    insteadOf: 'consumer',
    summary: 'Id or name of a consumer group, instead of CONSUMER.',
  },
]
const KIND: Argument = {
  name: 'kind',
  aliases: ['k'],
  summary: 'What CONSUMER is: consumer (default) or consumer-group.',
}

export const CONSUMER_OFFSET_COMMANDS: readonly Command[] = [
  serverCommand({
    ...commandWords(NOUNS, VERBS.get),
    summary: 'Show how far a consumer or a group has come in a partition.',
    arguments: [...TARGET, KIND],
    async run(client, values, output) {
      const [stream, topic, partition] = [streamOf(values), topicOf(values), partitionOf(values)]
      const consumer = consumerOf(values)
      const found = await client.offsets.get(consumer, stream, topic, partition)
      if (found !== null) return output.row(offsetRow(consumer, found))
      // Iggy answers a missing topic like an offset that was never stored; only the second is an answer here too.
      present(await client.topics.get(stream, topic), 'EDGE_TOPIC_NOT_FOUND', `topic "${topic}"`)
      output.line(
        output.form === 'json' ? 'null' : `no offset of ${describe(consumer)} in partition ${partition} was found`,
      )
    },
  }),
  serverCommand({
    ...commandWords(NOUNS, ['set', 's', 'store']),
    summary: 'Store the offset of the last message that is done with.',
    arguments: [
      ...TARGET,
      { name: 'offset', isPositional: true, isRequired: true, summary: 'Offset of the last message done with.' },
      KIND,
    ],
    async run(client, values, output) {
      const [stream, topic, partition] = [streamOf(values), topicOf(values), partitionOf(values)]
      const consumer = consumerOf(values)
      const offset = values.bigint('offset', 0n)
      await client.offsets.store(consumer, stream, topic, partition, offset)
      const sentence = `offset ${offset} of ${describe(consumer)} in partition ${partition} stored`
      output.done(sentence, { consumer: consumer.id, kind: consumer.kind, stream, topic, partition, offset })
    },
  }),
  serverCommand({
    ...commandWords(NOUNS, VERBS.delete),
    summary: 'Forget a stored offset: the consumer begins anew.',
    arguments: [...TARGET, KIND],
    async run(client, values, output) {
      const [stream, topic, partition] = [streamOf(values), topicOf(values), partitionOf(values)]
      const consumer = consumerOf(values)
      await client.offsets.delete(consumer, stream, topic, partition)
      const sentence = `offset of ${describe(consumer)} in partition ${partition} deleted`
      output.done(sentence, { consumer: consumer.id, kind: consumer.kind, stream, topic, partition })
    },
  }),
]

function consumerOf(values: Values): Consumer {
  const group = values.text('consumer-group')
  if (group !== undefined) return { kind: 'group', id: identifierOf(group) }
  const kind = values.choice('kind', 'consumer', KINDS)
  return { kind: kind === 'consumer' ? 'consumer' : 'group', id: identifierOf(values.required('consumer')) }
}

const describe = ({ kind, id }: Consumer): string => `${kind === 'group' ? 'consumer group' : 'consumer'} "${id}"`

function offsetRow({ kind, id }: Consumer, found: StoredOffset): Row {
  return {
    consumer: id,
    kind: kind === 'group' ? 'consumer group' : 'consumer',
    partition: found.partitionId,
    current_offset: found.currentOffset,
    stored_offset: found.storedOffset,
  }
}
