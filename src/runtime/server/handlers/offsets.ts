/** Commands on stored consumer offsets. */
import { EdgeError, toEdgeError } from '../../../errors.ts'
import { CODE } from '../../../sdk/wire/codes.ts'
import type { OffsetView } from '../../broker/index.ts'
import type { CommandContext, Handlers } from './handler.ts'

export const OFFSET_HANDLERS = {
  [CODE.getConsumerOffset](context, { consumer, stream, topic, partitionId }) {
    const { broker, caller } = context
    return offsetOf(context, () => broker.offset(caller, consumer, stream, topic, partitionId)) ?? null
  },
  async [CODE.storeConsumerOffset](context, { consumer, stream, topic, partitionId, offset }) {
    needPartition(context, partitionId)
    await context.broker.storeOffset(context.caller, consumer, stream, topic, partitionId, offset)
    return null
  },
  async [CODE.deleteConsumerOffset](context, { consumer, stream, topic, partitionId }) {
    needPartition(context, partitionId)
    await context.broker.deleteOffset(context.caller, consumer, stream, topic, partitionId)
    return null
  },
} satisfies Partial<Handlers>

/** Classic answers with nothing where VSR names the partition that is missing. */
function offsetOf({ dialect }: CommandContext, read: () => OffsetView | undefined): OffsetView | undefined {
  try {
    return read()
  } catch (error) {
    if (dialect === 'classic' && toEdgeError(error).kind === 'not-found') return undefined
    throw error
  }
}

/** VSR clients choose the partition themselves, also for a single consumer. */
function needPartition({ dialect }: CommandContext, partitionId: number | null): void {
  if (dialect === 'classic' || partitionId !== null) return
  throw new EdgeError('EDGE_PARTITION_NOT_FOUND', 'the request names no partition')
}
