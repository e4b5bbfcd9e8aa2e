/** Topics, partitions and segments (protocol section 7.4). */
import { type Codec, list, listToEnd, nothing, orEmpty, perDialect, struct, u32 } from '../codec.ts'
import { CODE } from '../codes.ts'
import { type Options, optionsToEnd } from '../options.ts'
import { type Identifier, identifier } from '../primitives.ts'
import { topicDetails, topicRecord } from '../records.ts'
import { type TopicFields, topicFields } from '../topic-fields.ts'
import { command } from './command.ts'

export interface CreateTopicRequest extends TopicFields {
  readonly stream: Identifier
  readonly partitionsCount: number
  readonly name: string
}

export interface UpdateTopicRequest extends TopicFields {
  readonly stream: Identifier
  readonly topic: Identifier
  readonly name: string
  /** A patch in VSR; classic always names its three. */
  readonly options: Options
}

const createHead = struct({ stream: identifier, partitionsCount: u32 })
const topicTarget = struct({ stream: identifier, topic: identifier })

/** Classic: target, fields, name. VSR: target, name, options to the end. */
function withFields<Head>(head: Codec<Head>): Codec<Head & TopicFields & { readonly name: string }> {
  return perDialect({
    classic: {
      read: (reader, dialect) => ({
        ...head.read(reader, dialect),
        ...topicFields.read(reader, dialect),
        name: reader.name(),
      }),
      write(writer, value, dialect) {
        head.write(writer, value, dialect)
        topicFields.write(writer, value, dialect)
        writer.name(value.name)
      },
    },
    vsr: {
      read: (reader, dialect) => ({
        ...head.read(reader, dialect),
        name: reader.name(),
        options: optionsToEnd.read(reader, dialect),
        replicationFactor: 0,
      }),
      write(writer, value, dialect) {
        head.write(writer, value, dialect)
        writer.name(value.name)
        optionsToEnd.write(writer, value.options, dialect)
      },
    },
  })
}

const createTopicRequest: Codec<CreateTopicRequest> = withFields(createHead)
const updateTopicRequest: Codec<UpdateTopicRequest> = withFields(topicTarget)

export const getTopic = command(CODE.getTopic, topicTarget, orEmpty(topicDetails))

/** VSR puts a count before the list, classic ends it with the payload. */
export const getTopics = command(
  CODE.getTopics,
  struct({ stream: identifier }),
  struct({ topics: perDialect({ classic: listToEnd(topicRecord), vsr: list(u32, topicRecord) }) }),
)

export const createTopic = command(CODE.createTopic, createTopicRequest, topicDetails)
export const deleteTopic = command(CODE.deleteTopic, topicTarget, nothing)
export const updateTopic = command(CODE.updateTopic, updateTopicRequest, nothing)
export const purgeTopic = command(CODE.purgeTopic, topicTarget, nothing)

const partitionsChange = struct({ stream: identifier, topic: identifier, count: u32 })

export const createPartitions = command(CODE.createPartitions, partitionsChange, nothing)
export const deletePartitions = command(CODE.deletePartitions, partitionsChange, nothing)

export const deleteSegments = command(
  CODE.deleteSegments,
  struct({ stream: identifier, topic: identifier, partitionId: u32, segmentsCount: u32 }),
  nothing,
)
