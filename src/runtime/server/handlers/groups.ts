/** Commands on consumer groups. */
import { EdgeError } from '../../../errors.ts'
import { CODE } from '../../../sdk/wire/codes.ts'
import type { Identifier } from '../../../sdk/wire/primitives.ts'
import type { CommandContext, Handlers } from './handler.ts'
import { groupDetailsOf } from './records.ts'

export const GROUP_HANDLERS = {
  [CODE.getConsumerGroup](context, { stream, topic, group }) {
    const found = context.broker.group(context.caller, stream, topic, group)
    if (found !== undefined) return groupDetailsOf(found)
    needTopic(context, stream, topic)
    return null
  },
  [CODE.getConsumerGroups](context, { stream, topic }) {
    const groups = context.broker.groups(context.caller, stream, topic)
    if (groups === undefined) needTopic(context, stream, topic)
    return { groups: (groups ?? []).map(groupDetailsOf) }
  },
  async [CODE.createConsumerGroup]({ broker, caller }, { stream, topic, name }) {
    return groupDetailsOf(await broker.createGroup(caller, stream, topic, name))
  },
  async [CODE.deleteConsumerGroup]({ broker, caller }, { stream, topic, group }) {
    await broker.deleteGroup(caller, stream, topic, group)
    return null
  },
  [CODE.joinConsumerGroup]({ broker, caller }, { stream, topic, group }) {
    broker.joinGroup(caller, stream, topic, group)
    return null
  },
  [CODE.leaveConsumerGroup]({ broker, caller }, { stream, topic, group }) {
    broker.leaveGroup(caller, stream, topic, group)
    return null
  },
  [CODE.syncConsumerGroup]({ broker, caller }, { stream, topic, group }) {
    return broker.syncGroup(caller, stream, topic, group) ?? null
  },
} satisfies Partial<Handlers>

/** VSR says what is missing where classic answers with nothing. */
function needTopic({ broker, caller, dialect }: CommandContext, stream: Identifier, topic: Identifier): void {
  if (dialect === 'classic') return
  const topics = broker.topics(caller, stream)
  if (topics === undefined) throw new EdgeError('EDGE_STREAM_NOT_FOUND', `stream ${stream} is not there`)
  if (topics.some(({ id, name }) => id === topic || name === topic)) return
  throw new EdgeError('EDGE_TOPIC_NOT_FOUND', `topic ${topic} is not there`)
}
