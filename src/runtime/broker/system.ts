/** What the server tells of itself: statistics, clients, the cluster of one node. */
import type { Stream } from '../../log/index.ts'
import type { Broker, ClientView, ClusterView } from './api.ts'
import type { ConnectedClient } from './clients.ts'
import type { BrokerContext } from './context.ts'
import { createMachineStats } from './machine-stats.ts'
import { createSnapshot } from './snapshot.ts'

type System = Pick<Broker, 'stats' | 'me' | 'client' | 'clients' | 'cluster' | 'snapshot'>

export function createSystem(context: BrokerContext): System {
  const { log, rights, sizes, clients, liveGroups, clock, identity } = context
  const machine = createMachineStats(clock)
  return {
    stats(caller) {
      rights.allow(caller, 'read-servers')
      return statsOf()
    },

    me(caller) {
      rights.userOf(caller)
      const client = caller.client === null ? undefined : clients.get(caller.client.id)
      if (client !== undefined) return viewOf(client)
      return { id: 0, userId: caller.userId, transport: 'http', address: '', groups: [] }
    },

    client(caller, id) {
      rights.allow(caller, 'read-servers')
      const client = clients.get(id)
      return client === undefined ? undefined : viewOf(client)
    },

    clients(caller) {
      rights.allow(caller, 'read-servers')
      return [...clients.all()].map(viewOf)
    },

    cluster(caller) {
      rights.userOf(caller)
      return clusterOf()
    },

    async snapshot(caller, request) {
      rights.allow(caller, 'read-servers')
      return createSnapshot(context, statsOf(), clusterOf(), request)
    },
  }

  function viewOf(client: ConnectedClient): ClientView {
    const groups = [...liveGroups.ofClient(client.id)].map(({ topic, groupId }) => ({
      streamId: topic.streamId,
      topicId: topic.id,
      groupId,
    }))
    return { id: client.id, userId: client.userId, transport: client.transport, address: client.address, groups }
  }

  function clusterOf(): ClusterView {
    // Exactly one node: with none or several, clients take other paths through the protocol.
    return { name: 'single-node', node: { name: 'iggy-node', ...identity.addresses() } }
  }

  function statsOf() {
    const streams = [...log.catalog.streams.values()]
    const { diskFreeBytes, diskTotalBytes } = log.stats()
    return {
      ...machine.read(),
      ...countsOf(streams),
      streamsCount: streams.length,
      clientsCount: clients.count,
      serverVersion: identity.version,
      serverSemver: semverNumber(identity.version),
      freeDiskSpace: diskFreeBytes,
      totalDiskSpace: diskTotalBytes,
    }
  }

  function countsOf(streams: readonly Stream[]) {
    let topicsCount = 0
    let partitionsCount = 0
    let segmentsCount = 0
    let messagesCount = 0
    let messagesSizeBytes = 0
    let consumerGroupsCount = 0
    for (const stream of streams) {
      topicsCount += stream.topics.size
      for (const topic of stream.topics.values()) {
        consumerGroupsCount += log.metadata.groupsOf(stream.id, topic.id).length
        for (const partition of topic.partitions) {
          partitionsCount++
          // As Iggy counts: what a partition is written to is its first segment, whether a file is there yet or not.
          segmentsCount += Math.max(1, partition.segmentCount) + partition.closedInJournalCount
          messagesCount += partition.messageCount
          messagesSizeBytes += sizes.of(partition)
        }
      }
    }
    return { topicsCount, partitionsCount, segmentsCount, messagesCount, messagesSizeBytes, consumerGroupsCount }
  }
}

/** Iggy's number of a version: major * 1,000,000 + minor * 1,000 + patch; what follows the patch is dropped. */
export function semverNumber(version: string): number {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(version)
  if (match === null) return 0
  return Number(match[1]) * 1_000_000 + Number(match[2]) * 1000 + Number(match[3])
}
