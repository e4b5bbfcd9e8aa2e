/**
 * Reads a topic as an async iterator: one partition, all of them, or those a consumer group gives to this member. Follows
 * reassignments and reconnects, pauses on empty partitions, and stores offsets of what was handled by its commit mode.
 *
 * A message counts as handled when the next one is asked for. After a crash the messages since the last commit come again
 * (at least once).
 */
import { US_MS } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { Polled } from '../api/messages.ts'
import type { StoredOffset } from '../api/offsets.ts'
import { SDK_DEFAULTS } from '../defaults.ts'
import { sleep } from '../sleep.ts'
import { PARTITION_NOT_OWNED } from '../wire/commands/messages.ts'
import type { Consumer as ConsumerIdentity, Identifier, PollingStrategy } from '../wire/primitives.ts'
import type { Client } from './client.ts'
import { GroupMembership } from './group-membership.ts'
import type { PolledMessage } from './messages.ts'
import { iggyCodeOf } from './server-error.ts'

export type CommitMode =
  /** Nothing is stored. */
  | { readonly kind: 'disabled' }
  /** After each message. */
  | { readonly kind: 'each' }
  /** After so many messages of a partition. */
  | { readonly kind: 'after'; readonly count: number }
  /** At most once in so many ms. */
  | { readonly kind: 'interval'; readonly intervalMs: number }

export interface ConsumerOptions {
  readonly stream: Identifier
  readonly topic: Identifier
  /** Name or number of a single consumer. Default: 1. Not together with `group`. */
  readonly consumer?: Identifier
  /** Name of a consumer group, created when missing. */
  readonly group?: string
  /** Single consumers: one partition, or all (default). */
  readonly partitionId?: number
  /**
   * Where a partition without a stored offset begins. Default: first. Outside of a group `offset` and `timestamp` win over a
   * stored one; in a group others have read on from there.
   */
  readonly start?: PollingStrategy
  /** Default: interval of one second. */
  readonly commit?: CommitMode
  readonly batchCount?: number
}

export interface ConsumedMessage extends PolledMessage {
  readonly partitionId: number
}

interface Position {
  /** null: where the stored offset or `start` says. */
  next: bigint | null
  handled: bigint | null
  committed: bigint | null
  handledSinceCommit: number
}

/** What the server said of a topic: partitions that were made anew under their number have another time. */
interface Look {
  /** Of the client: the one that brought the answer. */
  readonly connection: number
  readonly createdAtUs: ReadonlyMap<number, bigint>
}

const NO_POSITION: Readonly<Position> = { next: null, handled: null, committed: null, handledSinceCommit: 0 }
const DEFAULT_CONSUMER_ID = 1
/** What newer servers answer to the offset of a partition that is no longer ours. */
const RESOURCE_NOT_FOUND = 20

export class Consumer implements AsyncDisposable, AsyncIterable<ConsumedMessage> {
  readonly #client: Client
  readonly #options: ConsumerOptions
  readonly #identity: ConsumerIdentity
  readonly #membership: GroupMembership | null
  readonly #positions = new Map<number, Position>()
  readonly #abort = new AbortController()
  #partitions: readonly number[] = []
  #partitionsAtUs = Number.NEGATIVE_INFINITY
  #committedAtUs = 0
  #joinCount = 0
  /** null before the first, and where this user may not look. A group is told by its membership, which ends with its topic. */
  #look: Look | null = null
  /** Something was polled or stored since then: where the topic is another one by the next look, of the wrong log. */
  #isUsedSinceLook = false
  #isStopping = false
  /** Messages asked for with one poll: fewer than configured while an answer with as many is larger than is taken. */
  #pollCount: number
  #closing: Promise<void> | undefined

  /** Use `client.consumer`. */
  constructor(client: Client, options: ConsumerOptions) {
    this.#client = client
    this.#options = options
    this.#pollCount = batchCountOf(options)
    const { group, consumer } = options
    this.#identity =
      group === undefined ? { kind: 'consumer', id: consumer ?? DEFAULT_CONSUMER_ID } : { kind: 'group', id: group }
    this.#membership = group === undefined ? null : new GroupMembership(client, options.stream, options.topic, group)
  }

  /** Partitions that are read now. */
  get partitions(): readonly number[] {
    return this.#partitions
  }

  /**
   * @throws {EdgeError} in the loop, for what does not pass by itself: EDGE_FORBIDDEN, EDGE_TOPIC_NOT_FOUND ..
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<ConsumedMessage, void, undefined> {
    let idleMs: number = SDK_DEFAULTS.consumerIdleMinMs
    try {
      while (!this.#isEnding) {
        let count = 0
        for (const partitionId of await this.#currentPartitions()) {
          if (this.#isEnding) return
          const position = this.#positionOf(partitionId)
          for (const message of await this.#pollSafely(partitionId, position)) {
            if (this.#isEnding) return
            count += 1
            yield { ...message, partitionId }
            await this.#handled(partitionId, position, message.offset)
            if (await this.#isTakenAway(partitionId, position)) break
          }
        }
        await this.#commitDue()
        if (count > 0) {
          idleMs = SDK_DEFAULTS.consumerIdleMinMs
        } else {
          await sleep(idleMs, this.#abort.signal)
          idleMs = Math.min(idleMs * 2, SDK_DEFAULTS.consumerIdleMaxMs)
        }
      }
    } finally {
      await this.close()
    }
  }

  /** Stores the offset of everything handled so far, in any mode but `disabled`. */
  async commit(): Promise<void> {
    for (const [partitionId, position] of this.#positions) await this.#commitPartition(partitionId, position)
    this.#committedAtUs = this.#client.clock.monotonicUs()
  }

  /**
   * Ends the loop once the message that is being handled has been: it counts as handled, is stored in any mode but `disabled`,
   * and the group is left. The way to end a consumer whose handler takes its time.
   */
  stop(): void {
    this.#isStopping = true
    this.#abort.abort()
  }

  /**
   * Commits, leaves the group and ends the iterator; of a message that is being handled nothing is stored, so it comes again.
   * Idempotent: every call ends when all of it is done.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  get #isEnding(): boolean {
    return this.#isStopping || this.#closing !== undefined
  }

  async #close(): Promise<void> {
    this.#abort.abort()
    // What is not stored comes again, and a member that is gone leaves by itself.
    if (this.#client.state === 'connected') await this.commit().catch(() => {})
    await this.#membership?.leave().catch(() => {})
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // ---- partitions --------------------------------------------------------------------------------------------------------

  async #currentPartitions(): Promise<readonly number[]> {
    const ageUs = this.#client.clock.monotonicUs() - this.#partitionsAtUs
    const isStale = this.#membership
      ? this.#membership.isStale
      : this.#isLookOutdated || this.#client.state !== 'connected'
    if (ageUs < this.#lookIntervalMs * US_MS && !isStale) return this.#partitions
    try {
      const partitions = this.#membership ? await this.#membership.partitions() : await this.#ownPartitions()
      this.#partitions = partitions
      this.#partitionsAtUs = this.#client.clock.monotonicUs()
      const joinCount = this.#membership?.joinCount ?? 0
      if (joinCount !== this.#joinCount) this.#positions.clear()
      this.#joinCount = joinCount
      for (const known of [...this.#positions.keys()]) if (!partitions.includes(known)) await this.#giveUp(known)
    } catch (error) {
      await this.#pauseOrThrow(error)
    }
    return this.#partitions
  }

  /** Which partitions there are matters only to who reads all of them. */
  get #lookIntervalMs(): number {
    const isOfOne = this.#membership === null && this.#options.partitionId !== undefined
    return isOfOne ? SDK_DEFAULTS.topicLookIntervalMs : SDK_DEFAULTS.groupSyncIntervalMs
  }

  /**
   * The partition is another member's, as soon as what was handled here is stored: the server waits for that. When it comes
   * back, others have read on, so it begins at its stored offset again.
   */
  async #giveUp(partitionId: number): Promise<void> {
    const position = this.#positions.get(partitionId)
    this.#positions.delete(partitionId)
    if (position === undefined) return
    // Refused when the server has waited too long: then the messages since the last commit come again, elsewhere.
    await this.#commitPartition(partitionId, position).catch(() => {})
  }

  /** Whether the rest of what was polled is not ours any more: the membership ended, and others may have it already. */
  async #isTakenAway(partitionId: number, position: Position): Promise<boolean> {
    if (this.#membership?.isStale !== true) return false
    while (this.#membership.isStale && !this.#isEnding) await this.#currentPartitions()
    return !this.#isCurrent(partitionId, position)
  }

  async #ownPartitions(): Promise<readonly number[]> {
    const { stream, topic, partitionId } = this.#options
    const looking = this.#client.topics.get(stream, topic)
    // Who names a partition may be allowed to poll it and nothing else.
    const found = await (partitionId === undefined ? looking : looking.catch(nullIfRefused))
    if (found === null && partitionId === undefined) {
      throw new EdgeError('EDGE_TOPIC_NOT_FOUND', `topic ${topic} of stream ${stream} is not there`)
    }
    const partitions = found?.partitions ?? []
    const connection = this.#client.connectionCount
    this.#looked({ connection, createdAtUs: new Map(partitions.map(({ id, createdAtUs }) => [id, createdAtUs])) })
    return partitionId === undefined ? partitions.map(({ id }) => id) : [partitionId]
  }

  /** Offsets are numbers of one log: those of a partition that was made anew since the last look are void. */
  #looked(look: Look): void {
    const before = this.#look
    const isMisled = this.#isUsedSinceLook
    this.#look = look
    this.#isUsedSinceLook = false
    for (const [partitionId, createdAtUs] of look.createdAtUs) {
      const wasUs = before?.createdAtUs.get(partitionId)
      if (wasUs === undefined || wasUs === createdAtUs) continue
      // What is stored may be ours then.
      if (isMisled) this.#positions.set(partitionId, { ...NO_POSITION, next: 0n })
      else this.#positions.delete(partitionId)
    }
  }

  /** The connection is another one since: nothing may be taken from it, or stored over it, before it was asked. */
  get #isLookOutdated(): boolean {
    return this.#membership === null && this.#look !== null && this.#look.connection !== this.#client.connectionCount
  }

  // ---- polling -----------------------------------------------------------------------------------------------------------

  async #pollSafely(partitionId: number, position: Position): Promise<readonly PolledMessage[]> {
    try {
      const messages = await this.#poll(partitionId, position)
      this.#pollMore(messages)
      return messages
    } catch (error) {
      if (toEdgeError(error).code === 'EDGE_FRAME_TOO_LARGE' && this.#pollCount > 1) {
        // The connection went with the answer; the client has another one for the next poll.
        this.#pollCount = Math.floor(this.#pollCount / 2)
        return []
      }
      await this.#pauseOrThrow(error)
      return []
    }
  }

  /** As many as would fill half of the largest answer if all were like these. */
  #pollMore(messages: readonly PolledMessage[]): void {
    const most = batchCountOf(this.#options)
    if (this.#pollCount === most || messages.length === 0) return
    const sizeBytes = messages.reduce((sum, { payload, headersBytes }) => sum + payload.length + headersBytes.length, 1)
    const fitting = Math.floor((SDK_DEFAULTS.maxResponseBytes / 2 / sizeBytes) * messages.length)
    this.#pollCount = Math.max(1, Math.min(most, fitting))
  }

  async #poll(partitionId: number, position: Position): Promise<readonly PolledMessage[]> {
    const { stream, topic } = this.#options
    const strategy = await this.#strategyOf(partitionId, position)
    const polled = await this.#client.messages.poll(stream, topic, {
      consumer: this.#identity,
      partitionId,
      strategy,
      count: this.#pollCount,
    })
    if (this.#isLookOutdated || !this.#isCurrent(partitionId, position)) return []
    if (polled.partitionId === PARTITION_NOT_OWNED) {
      this.#membership?.invalidate()
      await this.#giveUp(partitionId)
      return []
    }
    if (this.#membership && isAnothers(partitionId, position, polled, this.#mode)) {
      await this.#giveUp(partitionId)
      return []
    }
    const last = polled.messages.at(-1)
    if (last !== undefined) {
      position.next = last.offset + 1n
      this.#isUsedSinceLook = true
    }
    return polled.messages
  }

  /** By own count once it began; before that by the stored offset, which only the server knows. */
  async #strategyOf(partitionId: number, position: Position): Promise<PollingStrategy> {
    if (position.next !== null) return { kind: 'offset', offset: position.next }
    const { start } = this.#options
    const isStartFixed = start?.kind === 'offset' || start?.kind === 'timestamp'
    if (isStartFixed && this.#membership === null) return start
    const stored = await this.#stored(partitionId)
    if (stored !== null) return { kind: 'offset', offset: stored.storedOffset + 1n }
    return start ?? { kind: 'first' }
  }

  #stored(partitionId: number): Promise<StoredOffset | null> {
    return this.#client.offsets.get(this.#identity, this.#options.stream, this.#options.topic, partitionId)
  }

  #positionOf(partitionId: number): Position {
    const known = this.#positions.get(partitionId)
    if (known) return known
    const position = { ...NO_POSITION }
    this.#positions.set(partitionId, position)
    return position
  }

  /** Another one counts offsets of another log, or begins where others have read on. */
  #isCurrent(partitionId: number, position: Position): boolean {
    return this.#positions.get(partitionId) === position
  }

  // ---- commits -----------------------------------------------------------------------------------------------------------

  async #handled(partitionId: number, position: Position, offset: bigint): Promise<void> {
    if (!this.#isCurrent(partitionId, position)) return
    position.handled = offset
    position.handledSinceCommit += 1
    const mode = this.#mode
    const isDue = mode.kind === 'each' || (mode.kind === 'after' && position.handledSinceCommit >= mode.count)
    if (isDue) await this.#commitSafely(() => this.#commitPartition(partitionId, position))
    else await this.#commitDue()
  }

  async #commitDue(): Promise<void> {
    const mode = this.#mode
    if (mode.kind !== 'interval') return
    const ageMs = (this.#client.clock.monotonicUs() - this.#committedAtUs) / US_MS
    if (ageMs >= mode.intervalMs) await this.#commitSafely(() => this.commit())
  }

  async #commitSafely(commit: () => Promise<void>): Promise<void> {
    try {
      await commit()
    } catch (error) {
      await this.#pauseOrThrow(error)
    }
  }

  async #commitPartition(partitionId: number, position: Position): Promise<void> {
    const { handled } = position
    if (this.#mode.kind === 'disabled' || handled === null || handled === position.committed) return
    if (this.#isLookOutdated) {
      await this.#ownPartitions()
      if (!this.#isCurrent(partitionId, position)) return
    }
    this.#isUsedSinceLook = true
    try {
      await this.#client.offsets.store(this.#identity, this.#options.stream, this.#options.topic, partitionId, handled)
    } catch (error) {
      if (this.#membership === null || !isNotOurs(toEdgeError(error))) throw error
      // It is another's: what was polled of it is not ours to handle any more.
      this.#positions.delete(partitionId)
      renew(this.#membership, toEdgeError(error))
      return
    }
    position.committed = handled
    position.handledSinceCommit = 0
  }

  get #mode(): CommitMode {
    return this.#options.commit ?? { kind: 'interval', intervalMs: SDK_DEFAULTS.consumerCommitIntervalMs }
  }

  // ---- trouble -----------------------------------------------------------------------------------------------------------

  /** Waits where trouble passes by itself; a lost membership is renewed. @throws everything else. */
  async #pauseOrThrow(cause: unknown): Promise<void> {
    const error = toEdgeError(cause)
    const membership = isNotOurs(error) ? this.#membership : null
    if (this.#isEnding) return
    if (membership === null && !error.isRetryable) throw error
    if (membership !== null) renew(membership, error)
    await sleep(SDK_DEFAULTS.consumerIdleMaxMs, this.#abort.signal)
  }
}

/** The server's no is as good as no answer; a lost connection is not. */
function nullIfRefused(error: unknown): null {
  if (toEdgeError(error).kind === 'auth') return null
  throw error
}

const batchCountOf = ({ batchCount }: ConsumerOptions): number => batchCount ?? SDK_DEFAULTS.consumerBatchCount

/** Older servers answer a member's poll of a partition it does not own like an empty partition 0. */
function isAnothers(partitionId: number, position: Position, polled: Polled, mode: CommitMode): boolean {
  if (polled.messages.length > 0) return false
  // After one message it may be partition 0 itself: that shows in the stored offset, where there is one.
  const least = mode.kind === 'disabled' ? 1n : 0n
  return polled.partitionId !== partitionId || (polled.currentOffset === 0n && (position.next ?? 0n) > least)
}

function isNotOurs(error: EdgeError): boolean {
  return MEMBERSHIP_CODES.has(error.code) || iggyCodeOf(error) === RESOURCE_NOT_FOUND
}

/** An older server tells only so that the membership ended: asked for partitions, it names those of the topic. */
function renew(membership: GroupMembership, { code }: EdgeError): void {
  if (MEMBERSHIP_ENDED.has(code)) membership.ended()
  else membership.invalidate()
}

const MEMBERSHIP_ENDED: ReadonlySet<string> = new Set(['EDGE_MEMBER_NOT_FOUND', 'EDGE_GROUP_NOT_FOUND'])

const MEMBERSHIP_CODES: ReadonlySet<string> = new Set([
  ...MEMBERSHIP_ENDED,
  'EDGE_PARTITION_NOT_OWNED',
  'EDGE_UNAUTHENTICATED',
])
