/**
 * Looks now and then whether topics are still there upstream, and the same ones. Of one that is gone a send would find out by
 * itself; without one, a topic that somebody deleted there would stay empty, and look caught up, until the next message.
 */
import { US_MS } from '../../clock.ts'
import { EdgeError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import type { TopicName } from '../core/route.ts'
import type { PartitionRunner } from './partition-runner.ts'
import type { Turns } from './turns.ts'
import type { Upstream } from './upstream.ts'

export interface TopicWatchOptions {
  readonly upstreamName: string
  /** 0: never. */
  readonly intervalMs: number
  readonly logger: Logger
}

export class TopicWatch {
  readonly #options: TopicWatchOptions
  #lastUs: number
  #isLooking = false

  constructor(options: TopicWatchOptions, nowUs: number) {
    this.#options = options
    this.#lastUs = nowUs
  }

  /** Called every few seconds while the link is up. One look at a time, topic by topic. */
  async look(upstream: Upstream, turns: Turns, runners: readonly PartitionRunner[], nowUs: number): Promise<void> {
    const { intervalMs } = this.#options
    if (intervalMs === 0 || this.#isLooking || nowUs - this.#lastUs < intervalMs * US_MS) return
    this.#isLooking = true
    this.#lastUs = nowUs
    try {
      // Also where a send would find out: to another topic of that name it goes without an error.
      const linked = runners.filter(({ topicIncarnation }) => topicIncarnation !== null)
      for (const [target, own] of byTarget(linked)) {
        // In its turn: a record that has the link for itself is blamed for what ends it.
        await this.#lookFor(() => turns.share(() => upstream.findTopic(target)), target, own)
      }
    } finally {
      this.#isLooking = false
    }
  }

  async #lookFor(
    find: () => Promise<string | null>,
    target: TopicName,
    runners: readonly PartitionRunner[],
  ): Promise<void> {
    let lost: PartitionRunner[]
    try {
      const incarnation = await find()
      lost = runners.filter(({ topicIncarnation: own }) => own !== null && own !== incarnation)
      if (lost.length === 0) return
    } catch (error) {
      // A lost link is told by itself, and who may not look finds out with the next send.
      if (error instanceof EdgeError) return
      throw error
    }
    reportTopicMissing(this.#options.upstreamName, target, this.#options.logger)
    for (const runner of lost) runner.topicLost()
  }
}

export function reportTopicMissing(upstream: string, { streamName, topicName }: TopicName, logger: Logger): void {
  const text = `${streamName}/${topicName} was deleted upstream: it is made again and filled from the local log`
  logger.warn('sync.topic.missing', { upstream, stream: streamName, topic: topicName, text })
}

function byTarget(runners: readonly PartitionRunner[]): ReadonlyMap<TopicName, readonly PartitionRunner[]> {
  const groups = Map.groupBy(runners, ({ options: { target } }) =>
    JSON.stringify([target.streamName, target.topicName]),
  )
  return new Map([...groups.values()].flatMap((own) => own.slice(0, 1).map(({ options }) => [options.target, own])))
}
