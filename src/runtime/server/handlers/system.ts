/** Commands about the server itself, and the routing of clusters as one node answers it. */
import { EdgeError } from '../../../errors.ts'
import { CODE } from '../../../sdk/wire/codes.ts'
import { OPTION_SCOPE } from '../../../sdk/wire/commands/system.ts'
import { describeTopicOptions } from '../../broker/index.ts'
import type { CommandContext, Handlers } from './handler.ts'
import { clientDetailsOf, nodeRecordOf } from './records.ts'

/** A VSR frame, its head included, is at most this large. */
const MAX_SNAPSHOT_BYTES = 64 * 1024 * 1024 - 256

export const SYSTEM_HANDLERS = {
  [CODE.ping]: () => null,
  [CODE.getStats]({ broker, caller }) {
    const stats = broker.stats(caller)
    return {
      ...stats,
      memoryUsage: BigInt(stats.memoryUsage),
      totalMemory: BigInt(stats.totalMemory),
      availableMemory: BigInt(stats.availableMemory),
      readBytes: BigInt(stats.readBytes),
      writtenBytes: BigInt(stats.writtenBytes),
      messagesSizeBytes: BigInt(stats.messagesSizeBytes),
      messagesCount: BigInt(stats.messagesCount),
      freeDiskSpace: BigInt(stats.freeDiskSpace),
      totalDiskSpace: BigInt(stats.totalDiskSpace),
      // We cache no segments: the log reads from the page cache.
      cacheMetrics: [],
    }
  },
  async [CODE.getSnapshot]({ broker, caller }, request) {
    const zipBytes = await broker.snapshot(caller, request)
    if (zipBytes.length > MAX_SNAPSHOT_BYTES) {
      throw new EdgeError(
        'EDGE_FRAME_TOO_LARGE',
        `snapshot: expected at most ${MAX_SNAPSHOT_BYTES} bytes, found ${zipBytes.length}`,
      )
    }
    return { zipBytes }
  },
  [CODE.getClusterMetadata]({ broker, caller }) {
    const cluster = broker.cluster(caller)
    return { name: cluster.name, nodes: [nodeRecordOf(cluster)] }
  },
  [CODE.describeOptions]({ broker }, { scope }) {
    return { options: scope === OPTION_SCOPE.topic ? describeTopicOptions(broker.topicDefaults) : [] }
  },
  [CODE.getMe]: ({ broker, caller }) => clientDetailsOf(broker.me(caller)),
  [CODE.getClient]({ broker, caller, dialect }, { clientId }) {
    if (clientId === 0 && dialect === 'classic') throw new EdgeError('EDGE_CLIENT_NOT_FOUND', 'client 0 is nobody')
    const found = broker.client(caller, clientId)
    return found === undefined ? null : clientDetailsOf(found)
  },
  [CODE.getClients]: ({ broker, caller }) => ({ clients: broker.clients(caller).map(clientDetailsOf) }),

  // One node: the route leads to where the client is already.
  [CODE.attachConsumerSession]: () => null,
  [CODE.getPollRouting]: routeToSelf,
  [CODE.getConsumerOffsetRouting]: routeToSelf,
} satisfies Partial<Handlers>

function routeToSelf({ broker, caller, session }: CommandContext) {
  const node = nodeRecordOf(broker.cluster(caller))
  return { clientId: session.clientId, session: session.number, metadataWatermark: 0n, node }
}
