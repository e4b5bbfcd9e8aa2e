/** `consumer-group`: create, list, get (with members and their partitions), delete. */
import type { GroupRecord } from '../../../sdk/wire/records.ts'
import type { Command } from '../command.ts'
import type { Argument } from '../grammar.ts'
import { list, nested, type Row } from '../output.ts'
import { serverCommand } from '../server-command.ts'
import { commandWords, identifierOf, VERBS } from '../words.ts'
import { IGNORED_ID, present, STREAM, streamOf, TOPIC, topicOf } from './arguments.ts'

const words = (verb: keyof typeof VERBS) => commandWords(['consumer-group', 'group', 'g'], VERBS[verb])

const GROUP: Argument = {
  name: 'group',
  isPositional: true,
  isRequired: true,
  aliases: ['consumer-group'],
  summary: 'Id or name of the group.',
}

export const CONSUMER_GROUP_COMMANDS: readonly Command[] = [
  serverCommand({
    ...words('create'),
    summary: 'Create a consumer group.',
    arguments: [
      STREAM,
      TOPIC,
      { name: 'name', isPositional: true, isRequired: true, summary: 'Name, 1 to 255 bytes.' },
      { name: 'group-id', aliases: ['g'], ...IGNORED_ID },
    ],
    async run(client, values, output) {
      const group = await client.groups.create(streamOf(values), topicOf(values), values.required('name'))
      output.done(`consumer group "${group.name}" created, id ${group.id}`, groupRow(group))
    },
  }),
  serverCommand({
    ...words('list'),
    summary: 'List the consumer groups of a topic.',
    arguments: [STREAM, TOPIC],
    async run(client, values, output) {
      const [stream, topic] = [streamOf(values), topicOf(values)]
      const groups = await client.groups.list(stream, topic)
      if (groups.length === 0)
        present(await client.topics.get(stream, topic), 'EDGE_TOPIC_NOT_FOUND', `topic "${topic}"`)
      output.rows(groups.map(groupRow))
    },
  }),
  serverCommand({
    ...words('get'),
    summary: 'Show a consumer group, its members and their partitions.',
    arguments: [STREAM, TOPIC, GROUP],
    async run(client, values, output) {
      const id = identifierOf(values.required('group'))
      const found = await client.groups.get(streamOf(values), topicOf(values), id)
      const group = present(found, 'EDGE_GROUP_NOT_FOUND', `consumer group "${id}"`)
      const members = group.members.map((member): Row => ({ member: member.id, partitions: list(member.partitions) }))
      if (output.form === 'json') return output.row({ ...groupRow(group), members: nested(members) })
      output.row(groupRow(group))
      if (members.length === 0) return
      output.line('')
      output.rows(members)
    },
  }),
  serverCommand({
    ...words('delete'),
    summary: 'Delete a consumer group with its offsets.',
    arguments: [STREAM, TOPIC, GROUP],
    async run(client, values, output) {
      const [stream, topic] = [streamOf(values), topicOf(values)]
      const group = identifierOf(values.required('group'))
      await client.groups.delete(stream, topic, group)
      output.done(`consumer group "${group}" deleted`, { stream, topic, group })
    },
  }),
]

function groupRow(group: GroupRecord): Row {
  return { id: group.id, name: group.name, partitions: group.partitionsCount, members: group.membersCount }
}
