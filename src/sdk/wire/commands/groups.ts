/** Consumer groups (protocol section 7.5). */
import { list, listToEnd, name, nothing, orEmpty, struct, u32, u64 } from '../codec.ts'
import { CODE } from '../codes.ts'
import { identifier } from '../primitives.ts'
import { groupDetails, groupRecord } from '../records.ts'
import { command } from './command.ts'

const topicTarget = struct({ stream: identifier, topic: identifier })
const groupTarget = struct({ stream: identifier, topic: identifier, group: identifier })

export const getConsumerGroup = command(CODE.getConsumerGroup, groupTarget, orEmpty(groupDetails))
export const getConsumerGroups = command(
  CODE.getConsumerGroups,
  topicTarget,
  struct({ groups: listToEnd(groupRecord) }),
)
export const createConsumerGroup = command(
  CODE.createConsumerGroup,
  struct({ stream: identifier, topic: identifier, name }),
  groupRecord,
)
export const deleteConsumerGroup = command(CODE.deleteConsumerGroup, groupTarget, nothing)
export const joinConsumerGroup = command(CODE.joinConsumerGroup, groupTarget, nothing)
export const leaveConsumerGroup = command(CODE.leaveConsumerGroup, groupTarget, nothing)

/** VSR only. null: the client is no member. */
export const syncConsumerGroup = command(
  CODE.syncConsumerGroup,
  groupTarget,
  orEmpty(struct({ generation: u64, partitions: list(u32, u32) })),
)
