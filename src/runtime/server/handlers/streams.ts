/** Commands on streams. */
import { EdgeError } from '../../../errors.ts'
import { CODE } from '../../../sdk/wire/codes.ts'
import type { Options } from '../../../sdk/wire/options.ts'
import type { Handlers } from './handler.ts'
import { streamRecordOf, topicRecordOf } from './records.ts'

export const STREAM_HANDLERS = {
  [CODE.getStream]({ broker, caller }, { stream }) {
    const found = broker.stream(caller, stream)
    if (found === undefined) return null
    const topics = [...found.topics.values()].map((topic) =>
      topicRecordOf(topic, broker.topicDefaults, broker.messageSizeOf),
    )
    return { ...streamRecordOf(found, broker.messageSizeOf), topics }
  },
  [CODE.getStreams]: ({ broker, caller }) => ({
    streams: broker.streams(caller).map((stream) => streamRecordOf(stream, broker.messageSizeOf)),
  }),
  async [CODE.createStream]({ broker, caller }, { name, options }) {
    refuseOptions(options)
    return streamRecordOf(await broker.createStream(caller, name), broker.messageSizeOf)
  },
  async [CODE.updateStream]({ broker, caller }, { stream, name, options }) {
    refuseOptions(options)
    await broker.renameStream(caller, stream, name)
    return null
  },
  async [CODE.deleteStream]({ broker, caller }, { stream }) {
    await broker.deleteStream(caller, stream)
    return null
  },
  async [CODE.purgeStream]({ broker, caller }, { stream }) {
    await broker.purgeStream(caller, stream)
    return null
  },
} satisfies Partial<Handlers>

/** Streams and users have no options in any generation. @throws EDGE_OPTION_UNKNOWN. */
export function refuseOptions(options: Options): void {
  const [first] = options
  if (first === undefined) return
  throw new EdgeError('EDGE_OPTION_UNKNOWN', `option "${first.key}" is not known here`, { details: { key: first.key } })
}
