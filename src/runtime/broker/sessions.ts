/** Connections as the broker sees them: opened, bound to a user, ended by either side. */
import type { Broker, ClientSession } from './api.ts'
import type { BrokerContext } from './context.ts'

export interface Sessions {
  readonly operations: Pick<Broker, 'openClient' | 'closeClient' | 'login' | 'logout'>
  endSessionsOf(userId: number): void
  /** The user's members of topics that it may not poll any more are suspended. */
  rightsChanged(userId: number): void
  /** Members that were silent too long lose their groups and their login. @returns how many. */
  evictStale(silentUs: number): number
}

export function createSessions(context: BrokerContext): Sessions {
  const { clients, liveGroups, clock } = context

  function end(client: ClientSession, reason: 'stale' | 'user-deleted'): void {
    liveGroups.leaveAll(client.id, clock.monotonicUs())
    const connected = clients.get(client.id)
    if (connected !== undefined) connected.userId = null
    client.onEvicted?.(reason)
  }

  return {
    operations: {
      openClient: (transport, address, dialect) => clients.open(transport, address, dialect),

      closeClient(client) {
        if (clients.close(client.id)) liveGroups.leaveAll(client.id, clock.monotonicUs())
      },

      login(caller, userId) {
        // Memberships belong to who joined: another user starts without them.
        if (caller.client !== null && caller.userId !== null && caller.userId !== userId)
          liveGroups.leaveAll(caller.client.id, clock.monotonicUs())
        caller.userId = userId
        const client = caller.client === null ? undefined : clients.get(caller.client.id)
        if (client !== undefined) client.userId = userId
      },

      logout(caller) {
        caller.userId = null
        if (caller.client === null) return
        liveGroups.leaveAll(caller.client.id, clock.monotonicUs())
        const client = clients.get(caller.client.id)
        if (client !== undefined) client.userId = null
      },
    },

    endSessionsOf(userId) {
      for (const client of [...clients.all()]) if (client.userId === userId) end(client, 'user-deleted')
    },

    rightsChanged(userId) {
      for (const client of clients.all()) {
        if (client.userId !== userId) continue
        for (const group of liveGroups.ofClient(client.id)) {
          if (context.rights.isAllowed(userId, 'poll', group.topic.streamId, group.topic.id)) continue
          liveGroups.suspend(group, client.id, clock.monotonicUs())
        }
      }
    },

    evictStale(silentUs) {
      const nowUs = clock.monotonicUs()
      let evictedCount = 0
      for (const client of [...clients.all()]) {
        // Only members hold something others wait for; an idle connection harms nobody.
        if (nowUs - client.lastSeenUs < silentUs || !liveGroups.isMember(client.id)) continue
        context.logger.warn('broker.client.stale', { client_id: client.id, peer: client.address })
        end(client, 'stale')
        evictedCount++
      }
      return evictedCount
    },
  }
}
