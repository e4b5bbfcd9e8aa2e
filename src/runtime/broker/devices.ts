/** Devices by name: which are remembered, and how one that comes back no more is forgotten. */
import { EdgeError } from '../../errors.ts'
import type { Broker } from './api.ts'
import type { BrokerContext } from './context.ts'

/** A device that published within this time may have readings on their way, or send again what it has no ack for. */
const ACTIVE_US = 3_600_000_000n

type Devices = Pick<Broker, 'devices' | 'forgetDevice' | 'holdDevice'>

export function createDevices({ rights, clock, log }: BrokerContext): Devices {
  const held = new Set<{ readonly name: string }>()
  return {
    holdDevice(name) {
      const session = { name }
      held.add(session)
      return () => void held.delete(session)
    },

    devices(caller) {
      rights.allow(caller, 'manage-users')
      return [...log.producers.devices()].sort((a, b) => Number((a.lastSeenUs ?? 0n) - (b.lastSeenUs ?? 0n)))
    },

    async forgetDevice(caller, name) {
      rights.allow(caller, 'manage-users')
      const lastSeenUs = log.producers.devices().find((each) => each.name === name)?.lastSeenUs ?? null
      if (lastSeenUs !== null && clock.wallUs() - lastSeenUs < ACTIVE_US) {
        const text = `device ${JSON.stringify(name)} has published within the last hour: what it sends again would be stored twice`
        throw new EdgeError('EDGE_DEVICE_ACTIVE', text)
      }
      if ([...held].some((session) => session.name === name)) {
        const text = `device ${JSON.stringify(name)} is connected: delete its token, or switch it off, before it is forgotten`
        throw new EdgeError('EDGE_DEVICE_ACTIVE', text)
      }
      const device = log.producers.forget(name)
      const topics = [...log.catalog.streams.values()].flatMap((stream) => [...stream.topics.values()])
      for (const { key } of topics.flatMap(({ partitions }) => partitions))
        log.metadata.deleteOffset(key, 'device', device)
    },
  }
}
