/** `message`: send, poll, tail, flush. */
import type { Command } from '../command.ts'
import type { Argument } from '../grammar.ts'
import { serverCommand } from '../server-command.ts'
import { commandWords } from '../words.ts'
import { PARTITION, partitionOf, STREAM, streamOf, TOPIC, topicOf } from './arguments.ts'

const words = (...verbs: readonly string[]) => commandWords(['message', 'm'], verbs)

/** Not required: a group has its partitions, a tail takes them all. */
const SOME_PARTITION: Argument = { ...PARTITION, isRequired: false }
const HEADERS: Argument = { name: 'show-headers', aliases: ['s'], isFlag: true, summary: 'Show user headers too.' }
const AS: Argument = { name: 'raw', isFlag: true, summary: 'Print payloads alone, as they are, one a line.' }

export const MESSAGE_COMMANDS: readonly Command[] = [
  serverCommand({
    ...words('send', 's'),
    summary: 'Send messages: as arguments, from a file of JSON lines, or each line of standard input.',
    arguments: [
      STREAM,
      TOPIC,
      {
        name: 'messages',
        isPositional: true,
        isVariadic: true,
        summary: 'Payloads; else standard input, a line each.',
      },
      { name: 'partition', aliases: ['p', 'partition-id'], summary: 'To this partition; else the server chooses.' },
      {
        name: 'message-key',
        aliases: ['m', 'partition-key', 'key'],
        summary: 'Messages of the same key go to the same partition, in order.',
      },
      { name: 'headers', aliases: ['H'], isVariadic: true, summary: 'User headers, key:kind:value,key:kind:value.' },
      { name: 'input-file', summary: 'File of JSON lines, as dump and message poll --output-file write them.' },
    ],
    run: async (...all) => (await import('../messages/send.ts')).sendMessages(...all),
  }),
  serverCommand({
    ...words('poll', 'p'),
    summary: 'Read messages of a partition, or those that a consumer group has not read yet.',
    arguments: [
      STREAM,
      TOPIC,
      SOME_PARTITION,
      { name: 'message-count', aliases: ['m', 'count'], summary: 'At most so many; default 1, for a group 10.' },
      { name: 'strategy', summary: 'first, last, next, offset:N or timestamp:US; default next.' },
      { name: 'offset', aliases: ['o'], summary: 'From this offset on.' },
      { name: 'first', aliases: ['f'], isFlag: true, summary: 'The oldest messages.' },
      { name: 'last', aliases: ['l'], isFlag: true, summary: 'The newest messages.' },
      { name: 'next', aliases: ['n'], isFlag: true, summary: 'Those after the stored offset (default).' },
      { name: 'consumer', aliases: ['c'], summary: 'Id or name of a single consumer; default 1.' },
      {
        name: 'consumer-group',
        aliases: ['group'],
        summary: 'As a member of this group, created when missing; stores how far it has read.',
      },
      { name: 'auto-commit', aliases: ['a'], isFlag: true, summary: 'Store how far was read (always so for a group).' },
      { name: 'no-commit', isFlag: true, summary: 'For a group: look only, store nothing.' },
      HEADERS,
      AS,
      { name: 'output-file', summary: 'Write messages to this file as JSON lines, instead of showing them.' },
    ],
    run: async (...all) => (await import('../messages/poll.ts')).pollMessages(...all),
  }),
  serverCommand({
    ...words('tail', 't'),
    summary: 'Follow a topic: the newest messages, then each as it comes, until Ctrl-C.',
    arguments: [
      STREAM,
      TOPIC,
      { ...SOME_PARTITION, summary: 'Only this partition; else all.' },
      { name: 'newest', aliases: ['n'], summary: 'Begin with so many of each partition; default 10.' },
      { name: 'count', aliases: ['message-count', 'm'], summary: 'End after so many messages.' },
      HEADERS,
      AS,
    ],
    run: async (...all) => (await import('../messages/tail.ts')).tailMessages(...all),
  }),
  serverCommand({
    ...words('flush', 'f'),
    summary: 'Write what waits in memory (older servers; an edge holds back nothing that was acknowledged).',
    arguments: [
      STREAM,
      TOPIC,
      PARTITION,
      { name: 'fsync', aliases: ['f'], isFlag: true, summary: 'And sync the disk.' },
    ],
    async run(client, values, output) {
      const [stream, topic, partition] = [streamOf(values), topicOf(values), partitionOf(values)]
      await client.messages.flush(stream, topic, partition, values.has('fsync'))
      output.done(`partition ${partition} of topic "${topic}" flushed`, { stream, topic, partition })
    },
  }),
]
