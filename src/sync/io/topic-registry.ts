/**
 * Makes sure once per link that an upstream topic is there with enough partitions, however many partitions of it ask at the
 * same time.
 */
import { EdgeError } from '../../errors.ts'
import { iggyCodeOf } from '../../sdk/index.ts'
import type { TopicName } from '../core/route.ts'

/** The few commands that it takes. */
export interface TopicCommands {
  /** @returns how many partitions the topic has, or null when topic or stream is missing. */
  partitionCount(topic: TopicName): Promise<number | null>
  createStream(streamName: string): Promise<void>
  createTopic(topic: TopicName, partitionCount: number): Promise<void>
  addPartitions(topic: TopicName, count: number): Promise<void>
}

const NAME_TAKEN = new Set([1012, 2013])

export class TopicRegistry {
  readonly #commands: TopicCommands
  readonly #known = new Map<string, Promise<number>>()

  constructor(commands: TopicCommands) {
    this.#commands = commands
  }

  async ensure(topic: TopicName, partitionCount: number): Promise<void> {
    const key = JSON.stringify([topic.streamName, topic.topicName])
    for (;;) {
      const known = this.#known.get(key)
      if (known !== undefined) {
        const count = await known.catch(() => -1)
        if (count >= partitionCount) return
        // Another caller asked for fewer, or failed: it is this one's turn now.
        if (this.#known.get(key) !== known) continue
      }
      const making = this.#make(topic, partitionCount)
      this.#known.set(key, making)
      try {
        await making
        return
      } catch (error) {
        if (this.#known.get(key) === making) this.#known.delete(key)
        throw error
      }
    }
  }

  /** The server says that it is not there after all. */
  forget(topic: TopicName): void {
    this.#known.delete(JSON.stringify([topic.streamName, topic.topicName]))
  }

  async #make(topic: TopicName, partitionCount: number): Promise<number> {
    let count = await this.#commands.partitionCount(topic)
    if (count === null) {
      await ignoringTaken(this.#commands.createStream(topic.streamName))
      await ignoringTaken(this.#commands.createTopic(topic, partitionCount))
      count = await this.#commands.partitionCount(topic)
    }
    if (count === null) {
      const name = `${topic.streamName}/${topic.topicName}`
      throw new EdgeError('EDGE_TOPIC_NOT_FOUND', `upstream topic ${name}: created, and not there`)
    }
    if (count >= partitionCount) return count
    await this.#commands.addPartitions(topic, partitionCount - count)
    return partitionCount
  }
}

async function ignoringTaken(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    // Somebody else was faster.
    if (!NAME_TAKEN.has(iggyCodeOf(error) ?? 0)) throw error
  }
}
