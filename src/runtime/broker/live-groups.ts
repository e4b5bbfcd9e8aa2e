/** Consumer groups that have, or had, members since the start. What is durable of a group is its name and its offsets. */
import { EdgeError } from '../../errors.ts'
import type { Topic } from '../../log/index.ts'
import { ConsumerGroup } from './consumer-groups.ts'

/**
 * What all groups that somebody has joined may hold, in places of partitions: some 80 bytes each, 5 MiB. A program that joins groups
 * under ever new names, or a thousand clients that join all there are, would take any memory.
 */
export const MAX_GROUP_PLACES = 65_536
/** A membership takes as much as so many places. */
const PLACES_PER_MEMBER = 8

/** Of the topic itself: another one may have its numbers later. */
export interface LiveGroup {
  readonly topic: Topic
  readonly groupId: number
  readonly assignment: ConsumerGroup
  /** Who has joined, suspended or not. */
  readonly clientIds: Set<number>
}

export class LiveGroups {
  private readonly timeoutUs: number
  /** By group id. */
  private readonly topics = new Map<Topic, Map<number, LiveGroup>>()
  private readonly byClient = new Map<number, Set<LiveGroup>>()
  /** Partitions that are being made. */
  private readonly growth = new Map<Topic, number>()

  constructor(timeoutUs: number) {
    this.timeoutUs = timeoutUs
  }

  find(topic: Topic, groupId: number): LiveGroup | undefined {
    return this.topics.get(topic)?.get(groupId)
  }

  /** @returns whether the client was no member before. @throws EDGE_LIMIT_REACHED over `MAX_GROUP_PLACES`. */
  join(topic: Topic, groupId: number, clientId: number, nowUs: number): boolean {
    const found = this.find(topic, groupId)
    if (found?.clientIds.has(clientId) !== true) {
      const isFirst = found === undefined || found.clientIds.size === 0
      this.checkPlaces(PLACES_PER_MEMBER + (isFirst ? this.partitionCountOf(topic) : 0))
    }
    const group = found ?? this.add(topic, groupId)
    const ofClient = this.byClient.get(clientId) ?? new Set()
    this.byClient.set(clientId, ofClient.add(group))
    group.clientIds.add(clientId)
    return group.assignment.join(clientId, nowUs)
  }

  /** @returns whether the client was a member. */
  leave(group: LiveGroup, clientId: number, nowUs: number): boolean {
    group.assignment.leave(clientId, nowUs)
    this.byClient.get(clientId)?.delete(group)
    return group.clientIds.delete(clientId)
  }

  /**
   * The client may not poll the topic now: others get its partitions, or nobody would read them. It need not join again, and
   * its places stay taken.
   */
  suspend(group: LiveGroup, clientId: number, nowUs: number): void {
    group.assignment.leave(clientId, nowUs)
  }

  /** @returns whether the client has joined; one that was suspended takes part again. */
  resume(group: LiveGroup, clientId: number, nowUs: number): boolean {
    if (!group.clientIds.has(clientId)) return false
    group.assignment.join(clientId, nowUs)
    return true
  }

  leaveAll(clientId: number, nowUs: number): void {
    for (const group of this.byClient.get(clientId) ?? []) this.leave(group, clientId, nowUs)
    this.byClient.delete(clientId)
  }

  ofClient(clientId: number): Iterable<LiveGroup> {
    return this.byClient.get(clientId) ?? []
  }

  isMember(clientId: number): boolean {
    return (this.byClient.get(clientId)?.size ?? 0) > 0
  }

  ofTopic(topic: Topic): Iterable<LiveGroup> {
    return this.topics.get(topic)?.values() ?? []
  }

  /** The group is gone; its members are members no more. */
  remove(topic: Topic, groupId: number): void {
    const group = this.find(topic, groupId)
    if (group === undefined) return
    group.assignment.dissolve()
    for (const clientId of group.clientIds) this.byClient.get(clientId)?.delete(group)
    group.clientIds.clear()
    this.topics.get(topic)?.delete(groupId)
  }

  /** Topics may be gone, and their groups with them, or have another number of partitions, which are dealt out anew. */
  topicsChanged(isThere: (topic: Topic) => boolean, nowUs: number): void {
    for (const [topic, groups] of this.topics) {
      if (isThere(topic)) {
        for (const { assignment } of groups.values()) assignment.repartition(topic.partitions.length, nowUs)
      } else {
        for (const groupId of groups.keys()) this.remove(topic, groupId)
        this.topics.delete(topic)
      }
    }
  }

  /**
   * Around a change that makes `count` more partitions: each group of the topic needs places for them.
   *
   * @throws EDGE_LIMIT_REACHED over `MAX_GROUP_PLACES`, and whatever `change` throws.
   */
  async growing(topic: Topic, count: number, change: () => Promise<void>): Promise<void> {
    const joined = [...this.ofTopic(topic)].filter(({ clientIds }) => clientIds.size > 0)
    this.checkPlaces(joined.length * count)
    this.growth.set(topic, (this.growth.get(topic) ?? 0) + count)
    try {
      await change()
    } finally {
      const left = (this.growth.get(topic) ?? 0) - count
      if (left > 0) this.growth.set(topic, left)
      else this.growth.delete(topic)
    }
  }

  /** Partitions promised too long ago change hands. */
  expirePromises(nowUs: number): void {
    for (const { assignment } of this.all()) assignment.expirePromises(nowUs)
  }

  private *all(): Generator<LiveGroup> {
    for (const groups of this.topics.values()) yield* groups.values()
  }

  private partitionCountOf(topic: Topic): number {
    return topic.partitions.length + (this.growth.get(topic) ?? 0)
  }

  private checkPlaces(more: number): void {
    let count = more
    for (const { topic, clientIds } of this.all())
      if (clientIds.size > 0) count += this.partitionCountOf(topic) + clientIds.size * PLACES_PER_MEMBER
    if (count <= MAX_GROUP_PLACES) return
    const text = `members and partitions of all consumer groups together: at most ${MAX_GROUP_PLACES} places, ${count} are wanted: leave some groups`
    throw new EdgeError('EDGE_LIMIT_REACHED', text, { details: { limit: MAX_GROUP_PLACES } })
  }

  private add(topic: Topic, groupId: number): LiveGroup {
    const groups = this.topics.get(topic) ?? new Map<number, LiveGroup>()
    const assignment = new ConsumerGroup(topic.partitions.length, this.timeoutUs)
    const group = { topic, groupId, assignment, clientIds: new Set<number>() }
    this.topics.set(topic, groups.set(groupId, group))
    return group
  }
}
