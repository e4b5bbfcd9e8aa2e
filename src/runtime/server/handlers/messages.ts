/** Polls and flush. Sends are the connection's own: their answer waits for a receipt, not for a promise. */
import { EdgeError, toEdgeError } from '../../../errors.ts'
import { CODE } from '../../../sdk/wire/codes.ts'
import { PARTITION_NOT_OWNED, type PollMessagesResponse } from '../../../sdk/wire/commands/messages.ts'
import type { PollRequest } from '../../broker/index.ts'
import type { CommandContext, Handlers } from './handler.ts'

export const MESSAGE_HANDLERS = {
  [CODE.pollMessages]: poll,
  [CODE.pollMessagesOnPrimary]: poll,
  async [CODE.flushUnsavedBuffer]({ broker, caller, dialect }, { stream, topic, partitionId }) {
    // Servers of the VSR generation refuse it; what they answer, their clients expect.
    if (dialect === 'vsr') throw new EdgeError('EDGE_FEATURE_UNAVAILABLE', 'flush is not a command of this generation')
    await broker.flush(caller, stream, topic, partitionId)
    return null
  },
} satisfies Partial<Handlers>

function poll(context: CommandContext, request: PollRequest): PollMessagesResponse | Promise<PollMessagesResponse> {
  // A VSR member learns its partitions from a sync; without one it has nothing to poll.
  if (context.dialect === 'vsr' && request.consumer.kind === 'group' && request.partitionId === null)
    return emptyPoll(0)
  try {
    const result = context.broker.poll(context.caller, request)
    return result instanceof Promise ? result.catch((error) => notYours(context, request, error)) : result
  } catch (error) {
    return notYours(context, request, error)
  }
}

/** A poll of what a member does not own is not an error: the answer tells it to look at its assignment again. */
function notYours({ dialect }: CommandContext, request: PollRequest, cause: unknown): PollMessagesResponse {
  const error = toEdgeError(cause)
  if (request.consumer.kind === 'group') {
    if (error.code === 'EDGE_PARTITION_NOT_OWNED') return emptyPoll(dialect === 'vsr' ? PARTITION_NOT_OWNED : 0)
    if (dialect === 'vsr' && RESYNC_CODES.has(error.code)) return emptyPoll(PARTITION_NOT_OWNED)
  }
  throw error
}

const RESYNC_CODES: ReadonlySet<string> = new Set([
  'EDGE_GROUP_NOT_FOUND',
  'EDGE_MEMBER_NOT_FOUND',
  'EDGE_PARTITION_NOT_FOUND',
])

export function emptyPoll(partitionId: number): PollMessagesResponse {
  return { partitionId, currentOffset: 0n, messageCount: 0, batches: [] }
}
