/** Finding out who consumes: ids of named consumers, rows of groups, memberships. */
import { EdgeError } from '../../errors.ts'
import type { GroupRow, Topic } from '../../log/index.ts'
import type { Consumer, Identifier } from '../../sdk/wire/primitives.ts'
import { xxh32OfText } from '../../sdk/wire/xxh32.ts'
import type { ClientSession } from './api.ts'
import { type BrokerContext, quoted } from './context.ts'
import type { LiveGroup } from './live-groups.ts'

/** @returns the id offsets are kept under: a named consumer's hash, a group's id; undefined when the group is missing. */
export function consumerIdOf(context: BrokerContext, topic: Topic, consumer: Consumer): number | undefined {
  if (consumer.kind === 'group') return findGroupRow(context, topic, consumer.id)?.id
  return typeof consumer.id === 'number' ? consumer.id : xxh32OfText(consumer.id)
}

export function findGroupRow(context: BrokerContext, topic: Topic, id: Identifier): GroupRow | undefined {
  const rows = context.log.metadata.groupsOf(topic.streamId, topic.id)
  return rows.find((row) => (typeof id === 'number' ? row.id === id : row.name === id))
}

/** @throws {EdgeError} EDGE_GROUP_NOT_FOUND. */
export function getGroupRow(context: BrokerContext, topic: Topic, id: Identifier): GroupRow {
  const row = findGroupRow(context, topic, id)
  if (row !== undefined) return row
  throw new EdgeError('EDGE_GROUP_NOT_FOUND', `group ${quoted(id)} of topic "${topic.name}" is not there`, {
    details: { group: id, topicId: topic.id },
  })
}

/** For callers who may poll the topic. @throws {EdgeError} EDGE_MEMBER_NOT_FOUND when the client has not joined. */
export function memberOf(context: BrokerContext, topic: Topic, row: GroupRow, client: ClientSession): LiveGroup {
  const { liveGroups, clock } = context
  const group = liveGroups.find(topic, row.id)
  if (group !== undefined && liveGroups.resume(group, client.id, clock.monotonicUs())) return group
  throw new EdgeError('EDGE_MEMBER_NOT_FOUND', `client ${client.id} is no member of group "${row.name}"`, {
    details: { clientId: client.id, groupId: row.id },
  })
}

export function notOwned(partitionId: number, { name }: GroupRow): EdgeError {
  return new EdgeError('EDGE_PARTITION_NOT_OWNED', `partition ${partitionId} of group "${name}" is another member's`)
}
