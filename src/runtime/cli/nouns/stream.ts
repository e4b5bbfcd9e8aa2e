/** `stream`: create, list, get, update, delete, purge. */
import type { StreamRecord } from '../../../sdk/wire/records.ts'
import type { Command } from '../command.ts'
import { bytes, nested, type Row, time } from '../output.ts'
import { serverCommand } from '../server-command.ts'
import { commandWords, VERBS } from '../words.ts'
import { IGNORED_ID, present, STREAM, streamOf } from './arguments.ts'
import { topicRow } from './topic.ts'

const words = (verb: keyof typeof VERBS) => commandWords(['stream', 's'], VERBS[verb])

export const STREAM_COMMANDS: readonly Command[] = [
  serverCommand({
    ...words('create'),
    summary: 'Create a stream.',
    arguments: [
      { name: 'name', isPositional: true, isRequired: true, summary: 'Name, 1 to 255 bytes.' },
      { name: 'stream-id', aliases: ['s'], ...IGNORED_ID },
    ],
    async run(client, values, output) {
      const stream = await client.streams.create(values.required('name'))
      output.done(`stream "${stream.name}" created, id ${stream.id}`, streamRow(stream))
    },
  }),
  serverCommand({
    ...words('list'),
    summary: 'List all streams.',
    arguments: [],
    async run(client, _values, output) {
      output.rows((await client.streams.list()).map(streamRow))
    },
  }),
  serverCommand({
    ...words('get'),
    summary: 'Show a stream and its topics.',
    arguments: [STREAM],
    async run(client, values, output) {
      const id = streamOf(values)
      const stream = present(await client.streams.get(id), 'EDGE_STREAM_NOT_FOUND', `stream "${id}"`)
      if (output.form === 'json')
        return output.row({ ...streamRow(stream), topics: nested(stream.topics.map(topicRow)) })
      output.row(streamRow(stream))
      if (stream.topics.length === 0) return
      output.line('')
      output.rows(stream.topics.map(topicRow))
    },
  }),
  serverCommand({
    ...words('update'),
    summary: 'Give a stream another name.',
    arguments: [STREAM, { name: 'name', isPositional: true, isRequired: true, summary: 'New name.' }],
    async run(client, values, output) {
      const [stream, name] = [streamOf(values), values.required('name')]
      await client.streams.rename(stream, name)
      output.done(`stream "${stream}" is now "${name}"`, { stream, name })
    },
  }),
  serverCommand({
    ...words('delete'),
    summary: 'Delete a stream with everything in it.',
    arguments: [STREAM],
    async run(client, values, output) {
      const stream = streamOf(values)
      await client.streams.delete(stream)
      output.done(`stream "${stream}" deleted`, { stream })
    },
  }),
  serverCommand({
    ...words('purge'),
    summary: 'Drop all messages of a stream, keep its topics.',
    arguments: [STREAM],
    async run(client, values, output) {
      const stream = streamOf(values)
      await client.streams.purge(stream)
      output.done(`stream "${stream}" purged`, { stream })
    },
  }),
]

function streamRow(stream: StreamRecord): Row {
  return {
    id: stream.id,
    name: stream.name,
    topics: stream.topicsCount,
    messages: stream.messagesCount,
    size: bytes(stream.sizeBytes),
    created_at: time(stream.createdAtUs),
  }
}
