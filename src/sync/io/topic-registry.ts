/**
 * Makes sure once per link that an upstream topic is there with enough partitions, however many partitions of it ask at the
 * same time.
 */
import { EdgeError } from '../../errors.ts'
import { iggyCodeOf } from '../../sdk/index.ts'
import type { TopicName } from '../core/route.ts'

export interface UpstreamTopic {
  readonly partitionCount: number
  /** Another one for a topic that was deleted and made again under its name. */
  readonly incarnation: string
}

/** The few commands that it takes. */
export interface TopicCommands {
  /** @returns null when topic or stream is missing. */
  find(topic: TopicName): Promise<UpstreamTopic | null>
  createStream(streamName: string): Promise<void>
  createTopic(topic: TopicName, partitionCount: number): Promise<void>
  addPartitions(topic: TopicName, count: number): Promise<void>
}

const NAME_TAKEN = new Set([1012, 2013])

export class TopicRegistry {
  readonly #commands: TopicCommands
  readonly #known = new Map<string, Promise<UpstreamTopic>>()

  constructor(commands: TopicCommands) {
    this.#commands = commands
  }

  /** @returns which topic of that name it is. */
  async ensure(topic: TopicName, partitionCount: number): Promise<string> {
    const key = keyOf(topic)
    for (;;) {
      const known = this.#known.get(key)
      if (known !== undefined) {
        const found = await known.catch(() => null)
        if (found !== null && found.partitionCount >= partitionCount) return found.incarnation
        // Another caller asked for fewer, or failed: it is this one's turn now.
        if (this.#known.get(key) !== known) continue
      }
      const making = this.#make(topic, partitionCount)
      this.#known.set(key, making)
      try {
        return (await making).incarnation
      } catch (error) {
        if (this.#known.get(key) === making) this.#known.delete(key)
        throw error
      }
    }
  }

  /** @returns which topic of that name is there now, null for none. When it is not the known one, that is forgotten. */
  async find(topic: TopicName): Promise<string | null> {
    const key = keyOf(topic)
    const known = this.#known.get(key)
    const before = await known?.catch(() => undefined)
    const now = await this.#commands.find(topic)
    if (now?.incarnation !== before?.incarnation && this.#known.get(key) === known) this.#known.delete(key)
    return now?.incarnation ?? null
  }

  /** The server says that it is not there after all, or nobody sends to it any more. */
  forget(topic: TopicName): void {
    this.#known.delete(keyOf(topic))
  }

  async #make(topic: TopicName, partitionCount: number): Promise<UpstreamTopic> {
    let found = await this.#commands.find(topic)
    if (found === null) {
      await ignoringTaken(this.#commands.createStream(topic.streamName))
      await ignoringTaken(this.#commands.createTopic(topic, partitionCount))
      found = await this.#commands.find(topic)
    }
    if (found === null) {
      const name = `${topic.streamName}/${topic.topicName}`
      throw new EdgeError('EDGE_TOPIC_NOT_FOUND', `upstream topic ${name}: created, and not there`)
    }
    if (found.partitionCount >= partitionCount) return found
    await this.#commands.addPartitions(topic, partitionCount - found.partitionCount)
    return { ...found, partitionCount }
  }
}

const keyOf = ({ streamName, topicName }: TopicName): string => JSON.stringify([streamName, topicName])

async function ignoringTaken(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    // Somebody else was faster.
    if (!NAME_TAKEN.has(iggyCodeOf(error) ?? 0)) throw error
  }
}
