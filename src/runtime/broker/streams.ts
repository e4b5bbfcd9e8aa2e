/** Streams: create, rename, delete, purge, list. */
import type { Broker } from './api.ts'
import { type BrokerContext, findStream, getStream } from './context.ts'
import { purgePartitions } from './purge.ts'

type Streams = Pick<Broker, 'streams' | 'stream' | 'createStream' | 'renameStream' | 'deleteStream' | 'purgeStream'>

export function createStreams(context: BrokerContext): Streams {
  const { log, rights } = context
  return {
    streams(caller) {
      rights.allow(caller, 'list-streams')
      return [...log.catalog.streams.values()]
    },

    stream: (caller, id) => findStream(context, caller, id, 'get-stream'),

    async createStream(caller, name) {
      rights.allow(caller, 'create-stream')
      return log.catalog.createStream(name)
    },

    async renameStream(caller, id, name) {
      await log.catalog.renameStream(getStream(context, caller, id, 'manage-stream'), name)
    },

    async deleteStream(caller, id) {
      await log.catalog.deleteStream(getStream(context, caller, id, 'manage-stream'))
    },

    async purgeStream(caller, id) {
      const stream = getStream(context, caller, id, 'manage-stream')
      // Those that are there now: what is made while the purge goes on keeps its messages.
      for (const topic of [...stream.topics.values()]) await purgePartitions(context, topic)
    },
  }
}
