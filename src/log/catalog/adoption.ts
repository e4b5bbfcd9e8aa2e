/**
 * Partitions that only the journal knows: their descriptors and the copies are lost, their messages are not. They get a
 * topic of their own, at once in memory, and on the disk before anything of the journal is recycled.
 */
import type { Clock } from '../../clock.ts'
import type { Durability } from '../api.ts'
import { NO_ID } from '../metadata/log-tables.ts'
import type { CatalogSteps } from './catalog-steps.ts'
import { formatStream, formatTopic } from './descriptor.ts'
import type { KeyAllocator } from './key-allocator.ts'
import { STREAM_FILE, STREAMS, streamFolder, TOPIC_FILE, topicFolder, topicsFolder } from './layout.ts'
import { type Registry, StreamEntry, TopicEntry } from './registry.ts'
import { RECOVERED_OPTIONS } from './scan.ts'

const STREAM_NAME = 'recovered'

export interface AdoptionParts {
  readonly clock: Clock
  readonly registry: Registry
  readonly keys: KeyAllocator
  readonly seedOf: (key: number) => bigint
}

export class Adoption {
  readonly #parts: AdoptionParts
  readonly #steps: CatalogSteps
  #newStream: StreamEntry | undefined
  readonly #topics: TopicEntry[] = []

  constructor(parts: AdoptionParts, steps: CatalogSteps) {
    this.#parts = parts
    this.#steps = steps
  }

  /** A topic `recovered-<key>` with that one partition, in a stream of that name. */
  adopt(key: number, durability: Durability): TopicEntry {
    const { clock, seedOf } = this.#parts
    const stream = this.#stream()
    const createdAtUs = clock.wallUs()
    const topic = new TopicEntry(stream.id, stream.lowestTopicId(), {
      name: freeTopicName(stream, `${STREAM_NAME}-${key}`),
      createdAtUs,
      options: { ...RECOVERED_OPTIONS, durability },
      partitions: [{ key, idSeed: seedOf(key), createdAtUs, floorOffset: 0n }],
    })
    stream.addTopic(topic)
    this.#topics.push(topic)
    return topic
  }

  /** Makes them durable. A stop before that leaves the journal as it was. @throws EDGE_DISK_FULL, EDGE_IO. */
  async keep(): Promise<void> {
    const { keys } = this.#parts
    const highest = this.#topics.reduce((most, { partitionDescriptors: [only] }) => Math.max(most, only?.key ?? 0), 0)
    await keys.skipTo(highest + 1)
    const stream = this.#newStream
    if (stream !== undefined) {
      const body = formatStream(stream)
      const target = streamFolder(stream.id)
      await this.#steps.make({ target, parent: STREAMS, inner: 'topics', file: STREAM_FILE, body })
      this.#steps.copy({ streamId: stream.id, topicId: NO_ID }, body)
      this.#newStream = undefined
    }
    for (const topic of this.#topics.splice(0)) {
      const { streamId, id: topicId } = topic
      const body = formatTopic(topic.descriptor())
      const [target, parent] = [topicFolder(streamId, topicId), topicsFolder(streamId)]
      await this.#steps.make({ target, parent, inner: null, file: TOPIC_FILE, body })
      this.#steps.copy({ streamId, topicId }, body)
    }
    await keys.allFound()
  }

  #stream(): StreamEntry {
    const { registry, clock } = this.#parts
    const present = registry.stream(STREAM_NAME)
    if (present !== undefined) return present
    const stream = new StreamEntry(registry.lowestStreamId(), STREAM_NAME, clock.wallUs())
    registry.addStream(stream)
    this.#newStream = stream
    return stream
  }
}

function freeTopicName(stream: StreamEntry, name: string): string {
  let candidate = name
  for (let number = 2; stream.topic(candidate) !== undefined; number++) candidate = `${name}-${number}`
  return candidate
}
