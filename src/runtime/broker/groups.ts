/** Consumer groups: create, delete, join, leave, and what a member may poll. */
import { EdgeError } from '../../errors.ts'
import type { GroupRow, Topic } from '../../log/index.ts'
import type { Broker, Caller, ClientSession, GroupView } from './api.ts'
import { findGroupRow, getGroupRow } from './consumers.ts'
import { type BrokerContext, findTopic, getTopic } from './context.ts'

type Groups = Pick<
  Broker,
  'groups' | 'group' | 'createGroup' | 'deleteGroup' | 'joinGroup' | 'leaveGroup' | 'syncGroup'
>

export function createGroups(context: BrokerContext): Groups {
  const { log, clock, liveGroups } = context
  return {
    groups(caller, streamId, topicId) {
      const topic = findTopic(context, caller, streamId, topicId, 'get-topic')
      if (topic === undefined) return undefined
      const rows = log.metadata.groupsOf(topic.streamId, topic.id)
      return rows.map((row) => viewOf(topic, row)).sort((left, right) => left.id - right.id)
    },

    group(caller, streamId, topicId, groupId) {
      const topic = findTopic(context, caller, streamId, topicId, 'get-topic')
      const row = topic === undefined ? undefined : findGroupRow(context, topic, groupId)
      return topic === undefined || row === undefined ? undefined : viewOf(topic, row)
    },

    async createGroup(caller, streamId, topicId, name) {
      const topic = getTopic(context, caller, streamId, topicId, 'get-topic')
      return viewOf(topic, await log.metadata.createGroup(topic.streamId, topic.id, name))
    },

    async deleteGroup(caller, streamId, topicId, groupId) {
      const topic = getTopic(context, caller, streamId, topicId, 'get-topic')
      const row = getGroupRow(context, topic, groupId)
      // First what a full disk may refuse: a group that stays keeps its members and its offsets.
      await log.metadata.deleteGroup(topic.streamId, topic.id, row.id)
      liveGroups.remove(topic, row.id)
      for (const partition of topic.partitions) log.metadata.deleteOffset(partition.key, 'group', row.id)
    },

    joinGroup(caller, streamId, topicId, groupId) {
      const topic = getTopic(context, caller, streamId, topicId, 'get-topic')
      const row = getGroupRow(context, topic, groupId)
      liveGroups.join(topic, row.id, clientOf(caller).id, clock.monotonicUs())
    },

    leaveGroup(caller, streamId, topicId, groupId) {
      const topic = getTopic(context, caller, streamId, topicId, 'get-topic')
      const row = getGroupRow(context, topic, groupId)
      const group = liveGroups.find(topic, row.id)
      const client = clientOf(caller)
      if (group !== undefined && liveGroups.leave(group, client.id, clock.monotonicUs())) return
      throw new EdgeError('EDGE_MEMBER_NOT_FOUND', `client ${client.id} is no member of group "${row.name}"`)
    },

    syncGroup(caller, streamId, topicId, groupId) {
      const topic = findTopic(context, caller, streamId, topicId, 'get-topic')
      const row = topic === undefined ? undefined : findGroupRow(context, topic, groupId)
      if (topic === undefined || row === undefined) return undefined
      const group = liveGroups.find(topic, row.id)
      const client = clientOf(caller)
      if (group === undefined || !liveGroups.resume(group, client.id, clock.monotonicUs())) return undefined
      const { assignment } = group
      return { generation: assignment.generation, partitions: assignment.sync(client.id) ?? [] }
    },
  }

  function viewOf(topic: Topic, row: GroupRow): GroupView {
    const members = liveGroups.find(topic, row.id)?.assignment.view() ?? []
    return { ...row, partitionCount: topic.partitions.length, members }
  }
}

/** Only a connection can be a member: its end is what frees the partitions. */
function clientOf(caller: Caller): ClientSession {
  if (caller.client !== null) return caller.client
  throw new EdgeError('EDGE_FEATURE_UNAVAILABLE', 'consumer groups are joined over a connection, not over HTTP')
}
