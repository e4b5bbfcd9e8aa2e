/** Sending and polling: the path every message takes, so nothing here waits or allocates without need. */
import { EdgeError } from '../../errors.ts'
import type { GroupRow, Partition, ReadResult, Topic } from '../../log/index.ts'
import type { Partitioning } from '../../sdk/wire/primitives.ts'
import { partitionOfKey } from '../../sdk/wire/xxh32.ts'
import type { Broker, Caller, Dialect, PollRequest, PollResult, SendResult } from './api.ts'
import { consumerIdOf, findGroupRow, getGroupRow, memberOf, notOwned } from './consumers.ts'
import { type BrokerContext, getTopic, partitionMissing } from './context.ts'
import type { LiveGroup } from './live-groups.ts'
import { usableMemoryBytes } from './machine-stats.ts'
import {
  answerLimit,
  currentOffset,
  expectedBytes,
  fittingAsText,
  lastOffsetOf,
  type StartingPoint,
  startOffset,
} from './polling.ts'
import { hasPersistedOffsets } from './topic-options.ts'

type Messages = Pick<Broker, 'send' | 'maySend' | 'poll' | 'answersLeft' | 'flush' | 'partition'>

/** Who polls which partition, once names are resolved. */
interface PollTarget {
  readonly topic: Topic
  readonly partition: Partition
  readonly consumerId: number
  readonly membership: Membership | undefined
}

interface Membership {
  readonly row: GroupRow
  readonly group: LiveGroup
  /** The poll is answered only while this lasts. */
  readonly tenure: number
}

export function createMessages(context: BrokerContext): Messages {
  const { log, settings, dedup } = context
  /** Next partition of balanced sends, by the topic's first partition: it goes with the topic. */
  const turns = new WeakMap<Partition, number>()
  const memoryBytes = usableMemoryBytes()
  /** Of answers that peers have not taken yet. */
  let unreadBytes = 0
  /** About what polls will have that wait for the disk. */
  let awaitedBytes = 0
  return {
    send(caller, streamId, topicId, partitioning, batch, receipt, tag): SendResult {
      const topic = getTopic(context, caller, streamId, topicId, 'send')
      if (batch.count === 0) throw new EdgeError('EDGE_BATCH_EMPTY', 'a batch without messages')
      const partition = route(topic, partitioning)
      const window = dedup.windowOf(topic)
      const { streamId: id, id: ofTopic } = topic
      if (window !== undefined) {
        return { streamId: id, topicId: ofTopic, ...dedup.append(window, topic, partition, batch, receipt, tag) }
      }
      const { baseOffset, promise, isDropped } = partition.append(batch, receipt, tag)
      return { streamId: id, topicId: ofTopic, partitionId: partition.partitionId, baseOffset, promise, isDropped }
    },

    maySend(caller) {
      return caller.userId !== null && context.rights.isAllowedSomewhere(caller.userId, 'send')
    },

    poll(caller, request) {
      const target = targetOf(caller, request)
      if (target === undefined) return nothingFor(null)
      const { partition } = target
      if (request.count === 0 || partition.visibleEnd === partition.logStartOffset) return nothingFor(partition)
      const point = startingPoint(target, request)
      const { dialect } = caller
      return point instanceof Promise
        ? point.then((offset) =>
            lasting(pollFrom(target, asOfNow(target, request), { kind: 'offset', offset }, dialect)),
          )
        : pollFrom(target, request, point, dialect)
    },

    answersLeft(changeBytes) {
      unreadBytes += changeBytes
    },

    async flush(caller, streamId, topicId, partitionId) {
      const topic = getTopic(context, caller, streamId, topicId, 'send')
      if (topic.partitions[partitionId] === undefined) throw partitionMissing(topic, partitionId)
      await log.flush()
    },

    partition(streamId, topicId, partitionId) {
      const stream = log.catalog.stream(streamId)
      return stream === undefined ? undefined : log.catalog.topic(stream.id, topicId)?.partitions[partitionId]
    },
  }

  function route(topic: Topic, partitioning: Partitioning): Partition {
    const { partitions } = topic
    const partitionId = choose(topic, partitioning)
    const partition = partitions[partitionId]
    if (partition === undefined) throw partitionMissing(topic, partitionId)
    return partition
  }

  function choose({ partitions }: Topic, partitioning: Partitioning): number {
    if (partitioning.kind === 'partition') return partitioning.partitionId
    const first = partitions[0]
    if (first === undefined) return 0
    if (partitioning.kind === 'key') return partitionOfKey(partitioning.keyView, partitions.length)
    const turn = turns.get(first) ?? 0
    turns.set(first, (turn + 1) % partitions.length)
    // A topic may have fewer partitions than at the last turn.
    return turn % partitions.length
  }

  /** @returns undefined for a member that owns nothing to poll. */
  function targetOf(caller: Caller, request: PollRequest): PollTarget | undefined {
    const topic = getTopic(context, caller, request.stream, request.topic, 'poll')
    if (request.consumer.kind === 'consumer' || caller.client === null) {
      const partitionId = request.partitionId ?? 0
      const partition = topic.partitions[partitionId]
      if (partition === undefined) throw partitionMissing(topic, partitionId)
      const consumerId =
        consumerIdOf(context, topic, request.consumer) ?? getGroupRow(context, topic, request.consumer.id).id
      return { topic, partition, consumerId, membership: undefined }
    }
    const row = getGroupRow(context, topic, request.consumer.id)
    const group = memberOf(context, topic, row, caller.client)
    const partitionId = request.partitionId ?? group.assignment.take(caller.client.id)
    if (partitionId === null) return undefined
    const partition = topic.partitions[partitionId]
    if (partition === undefined) throw partitionMissing(topic, partitionId)
    const isByOwnCount = request.partitionId !== null && request.strategy.kind !== 'next'
    const tenure = group.assignment.startPoll(caller.client.id, partitionId, isByOwnCount)
    if (tenure === null) throw notOwned(partitionId, row)
    return { topic, partition, consumerId: row.id, membership: { row, group, tenure } }
  }

  function startingPoint(target: PollTarget, { strategy, consumer }: PollRequest): StartingPoint | Promise<bigint> {
    const { partition } = target
    switch (strategy.kind) {
      case 'timestamp': {
        const offset = partition.offsetAt(strategy.timestampUs)
        return typeof offset === 'bigint' ? { kind: 'offset', offset } : offset
      }
      case 'next':
        return { kind: 'next', storedOffset: log.metadata.offset(partition.key, consumer.kind, target.consumerId) }
      default:
        return strategy
    }
  }

  function pollFrom(
    target: PollTarget,
    request: PollRequest,
    point: StartingPoint,
    dialect: Dialect,
  ): PollResult | Promise<PollResult> {
    const { partition } = target
    const maxCount = Math.min(request.count, settings.broker.max_poll_count)
    const fromOffset = startOffset(point, partition, maxCount)
    if (fromOffset >= partition.visibleEnd) return nothingFor(partition)
    const maxBytes = answerLimit(dialect, settings.broker.max_poll_size, memoryBytes, unreadBytes + awaitedBytes)
    const read = partition.read({ fromOffset, maxCount, maxBytes })
    if (!(read instanceof Promise)) return finish(target, request, answered(read, dialect))
    const expected = expectedBytes({ maxCount, maxBytes, fromOffset }, partition, context.sizes.of(partition))
    awaitedBytes += expected
    // What a read promised stays as it is.
    return read
      .finally(() => {
        awaitedBytes -= expected
      })
      .then((result) => finish(target, asOfNow(target, request), answered(result, dialect)))
  }

  /** What was being read may be of a topic, partition or group that is gone by now: an offset there would stay for ever. */
  function asOfNow({ topic, partition, consumerId }: PollTarget, request: PollRequest): PollRequest {
    const isThere =
      log.catalog.topic(topic.streamId, topic.id) === topic &&
      topic.partitions[partition.partitionId] === partition &&
      (request.consumer.kind !== 'group' || findGroupRow(context, topic, consumerId) !== undefined)
    return isThere ? request : { ...request, autoCommit: false }
  }

  /** Commits what is about to be answered. Views of the batches are still valid: nothing here calls the log. */
  function finish(target: PollTarget, request: PollRequest, read: Answered): PollResult | Promise<PollResult> {
    const { topic, partition, consumerId, membership } = target
    if (membership?.group.assignment.isCurrent(partition.partitionId, membership.tenure) === false) {
      throw notOwned(partition.partitionId, membership.row)
    }
    const result = {
      partitionId: partition.partitionId,
      currentOffset: currentOffset(partition),
      messageCount: read.messageCount,
      batches: read.batches,
    }
    const lastOffset = lastOffsetOf(read.batches)
    if (lastOffset === undefined || (membership === undefined && !request.autoCommit)) return result
    const { kind } = request.consumer
    const stored = log.metadata.offset(partition.key, kind, consumerId)
    const isBeyondStored = stored === undefined || lastOffset > stored
    if (!request.autoCommit) {
      // A second look at what is committed keeps nobody waiting.
      if (isBeyondStored) membership?.group.assignment.polled(partition.partitionId, lastOffset)
      return result
    }
    // Never backwards: a second look at old messages must not deliver the newer ones again.
    if (isBeyondStored) log.metadata.setOffset(partition.key, kind, consumerId, lastOffset)
    const live = membership?.group ?? (kind === 'group' ? context.liveGroups.find(topic, consumerId) : undefined)
    live?.assignment.committed(partition.partitionId, lastOffset)
    return hasPersistedOffsets(topic.options) ? persisted(result) : result
  }

  async function persisted(result: PollResult): Promise<PollResult> {
    const kept = owning(result)
    await log.metadata.flush()
    return kept
  }

  function nothingFor(partition: Partition | null): PollResult {
    const partitionId = partition?.partitionId ?? 0
    const end = partition === null || isPurged(partition) ? 0n : currentOffset(partition)
    return { partitionId, currentOffset: end, messageCount: 0, batches: [] }
  }

  /**
   * A purge takes the stored offsets too, and Iggy's clients are told 0 then. Who has an offset in what retention has emptied
   * reckons with its end.
   */
  function isPurged({ key, visibleEnd, logStartOffset }: Partition): boolean {
    return visibleEnd === logStartOffset && [...log.metadata.offsetsOf(key)].length === 0
  }
}

type Answered = Pick<ReadResult, 'batches' | 'messageCount'>

/** Before anything is committed: what is not answered was not seen. */
function answered(read: ReadResult, dialect: Dialect): Answered {
  if (dialect !== 'http') return read
  const batches = fittingAsText(read.batches)
  return { batches, messageCount: batches.reduce((count, { take }) => count + take, 0) }
}

/** Views of what was read at once do not outlive the turn, a promise does: what goes through one owns its bytes. */
function lasting(result: PollResult | Promise<PollResult>): PollResult | Promise<PollResult> {
  return result instanceof Promise ? result : owning(result)
}

function owning(result: PollResult): PollResult {
  const batches = result.batches.map((batch) => ({ ...batch, recordsView: new Uint8Array(batch.recordsView) }))
  return { ...result, batches }
}
