/** `partition` and `segment`: create, delete. */

import { counted } from '../../counted.ts'
import type { Command } from '../command.ts'
import type { Argument } from '../grammar.ts'
import { serverCommand } from '../server-command.ts'
import { commandWords, VERBS } from '../words.ts'
import { PARTITION, partitionOf, STREAM, streamOf, TOPIC, topicOf } from './arguments.ts'

const MAX_PARTITIONS = 1000
const MAX_SEGMENTS = 2 ** 32 - 1

const COUNT: Argument = { name: 'count', isPositional: true, isRequired: true, summary: 'How many.' }

export const PARTITION_COMMANDS: readonly Command[] = [
  serverCommand({
    ...commandWords(['partition', 'p'], VERBS.create),
    summary: 'Add partitions to a topic.',
    arguments: [STREAM, TOPIC, COUNT],
    async run(client, values, output) {
      const [stream, topic] = [streamOf(values), topicOf(values)]
      const count = values.integer('count', 1, { min: 1, max: MAX_PARTITIONS })
      await client.topics.addPartitions(stream, topic, count)
      output.done(`${counted(count, 'partition')} added to topic "${topic}"`, { stream, topic, count })
    },
  }),
  serverCommand({
    ...commandWords(['partition', 'p'], VERBS.delete),
    summary: 'Remove the highest partitions of a topic, with their messages.',
    arguments: [STREAM, TOPIC, COUNT],
    async run(client, values, output) {
      const [stream, topic] = [streamOf(values), topicOf(values)]
      const count = values.integer('count', 1, { min: 1, max: MAX_PARTITIONS })
      await client.topics.removePartitions(stream, topic, count)
      output.done(`${counted(count, 'partition')} removed from topic "${topic}"`, { stream, topic, count })
    },
  }),
  serverCommand({
    ...commandWords(['segment', 'seg'], VERBS.delete),
    summary: 'Drop the oldest sealed segments of a partition that every consumer has read.',
    arguments: [STREAM, TOPIC, PARTITION, COUNT],
    async run(client, values, output) {
      const [stream, topic, partition] = [streamOf(values), topicOf(values), partitionOf(values)]
      const count = values.integer('count', 1, { min: 1, max: MAX_SEGMENTS })
      await client.topics.deleteSegments(stream, topic, partition, count)
      const sentence = `at most ${counted(count, 'segment')} of partition ${partition} of topic "${topic}" dropped`
      output.done(sentence, { stream, topic, partition, count })
    },
  }),
]
