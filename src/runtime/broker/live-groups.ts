/** Consumer groups that have, or had, members since the start. What is durable of a group is its name and its offsets. */
import { EdgeError } from '../../errors.ts'
import { ConsumerGroup } from './consumer-groups.ts'

/**
 * What all groups that have members may hold, in places of partitions: some 80 bytes each, 5 MiB. A program that joins groups
 * under ever new names, or a thousand clients that join all there are, would take any memory.
 */
export const MAX_GROUP_PLACES = 65_536
/** A membership takes as much as so many places. */
const PLACES_PER_MEMBER = 8

export interface LiveGroup {
  readonly streamId: number
  readonly topicId: number
  readonly groupId: number
  readonly assignment: ConsumerGroup
}

export class LiveGroups {
  private readonly timeoutUs: number
  /** By stream, topic, group id. */
  private readonly streams = new Map<number, Map<number, Map<number, LiveGroup>>>()
  private readonly byClient = new Map<number, Set<LiveGroup>>()

  constructor(timeoutUs: number) {
    this.timeoutUs = timeoutUs
  }

  find(streamId: number, topicId: number, groupId: number): LiveGroup | undefined {
    return this.streams.get(streamId)?.get(topicId)?.get(groupId)
  }

  /** @returns whether the client was no member before. @throws EDGE_LIMIT_REACHED over `MAX_GROUP_PLACES`. */
  join(place: Omit<LiveGroup, 'assignment'>, partitionCount: number, clientId: number, nowUs: number): boolean {
    const group = this.find(place.streamId, place.topicId, place.groupId) ?? this.add(place, partitionCount)
    if (!group.assignment.has(clientId)) this.checkPlaces(group.assignment.isEmpty ? partitionCount : 0)
    const ofClient = this.byClient.get(clientId) ?? new Set()
    this.byClient.set(clientId, ofClient.add(group))
    return group.assignment.join(clientId, nowUs)
  }

  /** @returns whether the client was a member. */
  leave(group: LiveGroup, clientId: number, nowUs: number): boolean {
    group.assignment.leave(clientId, nowUs)
    return this.byClient.get(clientId)?.delete(group) === true
  }

  /** The client may not poll the topic now: others get its partitions, or nobody would read them. It need not join again. */
  suspend(group: LiveGroup, clientId: number, nowUs: number): void {
    group.assignment.leave(clientId, nowUs)
  }

  /** @returns whether the client has joined; one that was suspended takes part again. */
  resume(group: LiveGroup, clientId: number, nowUs: number): boolean {
    if (this.byClient.get(clientId)?.has(group) !== true) return false
    group.assignment.join(clientId, nowUs)
    return true
  }

  leaveAll(clientId: number, nowUs: number): void {
    for (const group of this.byClient.get(clientId) ?? []) group.assignment.leave(clientId, nowUs)
    this.byClient.delete(clientId)
  }

  ofClient(clientId: number): Iterable<LiveGroup> {
    return this.byClient.get(clientId) ?? []
  }

  isMember(clientId: number): boolean {
    return (this.byClient.get(clientId)?.size ?? 0) > 0
  }

  ofTopic(streamId: number, topicId: number): Iterable<LiveGroup> {
    return this.streams.get(streamId)?.get(topicId)?.values() ?? []
  }

  /** The group is gone; its members are members no more. */
  remove(streamId: number, topicId: number, groupId: number): void {
    const group = this.find(streamId, topicId, groupId)
    if (group === undefined) return
    group.assignment.dissolve()
    for (const groups of this.byClient.values()) groups.delete(group)
    this.streams.get(streamId)?.get(topicId)?.delete(groupId)
  }

  removeTopic(streamId: number, topicId: number): void {
    for (const group of [...this.ofTopic(streamId, topicId)]) this.remove(streamId, topicId, group.groupId)
    this.streams.get(streamId)?.delete(topicId)
  }

  removeStream(streamId: number): void {
    for (const topicId of [...(this.streams.get(streamId)?.keys() ?? [])]) this.removeTopic(streamId, topicId)
    this.streams.delete(streamId)
  }

  /** Partitions promised too long ago change hands. */
  expirePromises(nowUs: number): void {
    for (const topics of this.streams.values()) {
      for (const groups of topics.values()) {
        for (const group of groups.values()) group.assignment.expirePromises(nowUs)
      }
    }
  }

  private checkPlaces(moreSlots: number): void {
    let count = moreSlots + PLACES_PER_MEMBER
    for (const topics of this.streams.values()) {
      for (const groups of topics.values()) {
        for (const { assignment } of groups.values())
          count += assignment.slotCount + assignment.memberCount * PLACES_PER_MEMBER
      }
    }
    if (count <= MAX_GROUP_PLACES) return
    const text = `members and partitions of all consumer groups together: at most ${MAX_GROUP_PLACES} places, ${count} are wanted: leave some groups`
    throw new EdgeError('EDGE_LIMIT_REACHED', text, { details: { limit: MAX_GROUP_PLACES } })
  }

  private add(place: Omit<LiveGroup, 'assignment'>, partitionCount: number): LiveGroup {
    const topics = this.streams.get(place.streamId) ?? new Map<number, Map<number, LiveGroup>>()
    const groups = topics.get(place.topicId) ?? new Map<number, LiveGroup>()
    const group = { ...place, assignment: new ConsumerGroup(partitionCount, this.timeoutUs) }
    this.streams.set(place.streamId, topics.set(place.topicId, groups.set(place.groupId, group)))
    return group
  }
}
