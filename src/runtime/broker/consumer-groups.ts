/**
 * Which member of a consumer group reads which partition. Pure: time comes in, nothing goes out but the answers.
 *
 * Decides: the split on join (the surplus moves), on leave, disconnect and change of the partition count (round robin, around
 * what is still handled).
 * Relies on: the caller tells what was polled and what was committed. Never: waits, or remembers members over a restart.
 *
 * A join moves the whole surplus to the idle members, so that member counts never differ by more than one partition. A
 * partition whose messages were polled but not committed is only *promised*: its owner may still commit but no longer
 * polls, and it changes hands when the commit catches up or after the timeout. Without this the messages in flight would be
 * handled twice on every change.
 */
import { assert } from '../../assert.ts'

/** A promised partition moves at the latest after this time (Iggy's `consumer_group.rebalancing_timeout`). */
export const REBALANCING_TIMEOUT_US = 30_000_000

export interface GroupMemberView {
  readonly id: number
  readonly clientId: number
  /** All partitions it owns, promised ones included, in the order they were given. */
  readonly partitions: readonly number[]
}

interface Member {
  readonly id: number
  readonly clientId: number
  owned: number[]
  /** Partitions promised to it that others still own. */
  promised: number[]
  turn: number
  lastTaken: number | null
}

interface Slot {
  owner: Member | null
  /** Who gets it when the owner is done. */
  heir: Member | null
  promisedAtUs: number
  /** Highest offset handed to the owner and not committed yet. */
  inFlight: bigint | null
}

export class ConsumerGroup {
  private readonly timeoutUs: number
  private readonly members: Member[] = []
  private slots: Slot[]
  private nextMemberId = 0
  private generationNumber = 0n

  constructor(partitionCount: number, timeoutUs = REBALANCING_TIMEOUT_US) {
    this.timeoutUs = timeoutUs
    this.slots = Array.from({ length: partitionCount }, emptySlot)
  }

  /** Grows with every change of the assignment. */
  get generation(): bigint {
    return this.generationNumber
  }

  get isEmpty(): boolean {
    return this.members.length === 0
  }

  /** In order of joining. */
  view(): readonly GroupMemberView[] {
    return this.members.map(({ id, clientId, owned }) => ({ id, clientId, partitions: [...owned] }))
  }

  has(clientId: number): boolean {
    return this.find(clientId) !== undefined
  }

  /** @returns false when the client is a member already: joining twice changes nothing. */
  join(clientId: number, nowUs: number): boolean {
    if (this.has(clientId)) return false
    const member = { id: this.nextMemberId++, clientId, owned: [], promised: [], turn: 0, lastTaken: null }
    this.members.push(member)
    if (this.members.length === 1) this.assignAll(nowUs)
    else this.moveSurplus(nowUs)
    this.generationNumber++
    return true
  }

  /** @returns false when the client is no member. */
  leave(clientId: number, nowUs: number): boolean {
    const index = this.members.findIndex((member) => member.clientId === clientId)
    if (index < 0) return false
    this.members.splice(index, 1)
    this.assignAll(nowUs)
    this.generationNumber++
    return true
  }

  /** The topic has another number of partitions now. */
  repartition(partitionCount: number, nowUs: number): void {
    if (partitionCount === this.slots.length) return
    const kept = this.slots.slice(0, partitionCount)
    while (kept.length < partitionCount) kept.push(emptySlot())
    this.slots = kept
    this.assignAll(nowUs)
    this.generationNumber++
  }

  /** Partitions the member may poll now; undefined when it is no member. */
  pollable(clientId: number): readonly number[] | undefined {
    const member = this.find(clientId)
    return member === undefined ? undefined : this.pollableOf(member)
  }

  canPoll(clientId: number, partitionId: number): boolean {
    const slot = this.slots[partitionId]
    return slot?.owner?.clientId === clientId && slot.heir === null
  }

  /** A promised partition may still be committed by its owner. */
  canCommit(clientId: number, partitionId: number): boolean {
    return this.slots[partitionId]?.owner?.clientId === clientId
  }

  /** The member's next partition in turn; null when it has none to poll. */
  take(clientId: number): number | null {
    const member = this.find(clientId)
    if (member === undefined) return null
    const pollable = this.pollableOf(member)
    if (pollable.length === 0) return null
    const taken = pollable[member.turn++ % pollable.length] ?? null
    member.lastTaken = taken
    return taken
  }

  /** The partition `take` gave last, while the member still owns it; else its first one. */
  current(clientId: number): number | null {
    const member = this.find(clientId)
    if (member === undefined) return null
    if (member.lastTaken !== null && this.canCommit(clientId, member.lastTaken)) return member.lastTaken
    return member.owned[0] ?? null
  }

  /** Messages up to `lastOffset` were handed to the owner. */
  polled(partitionId: number, lastOffset: bigint): void {
    const slot = this.slots[partitionId]
    if (slot !== undefined && (slot.inFlight === null || lastOffset > slot.inFlight)) slot.inFlight = lastOffset
  }

  /** The group's offset is `offset` now; `null` = it was deleted or the partition purged, so nothing is waited for. */
  committed(partitionId: number, offset: bigint | null): void {
    const slot = this.slots[partitionId]
    if (slot === undefined || slot.inFlight === null) return
    if (offset !== null && offset < slot.inFlight) return
    slot.inFlight = null
    if (this.handOver(partitionId)) this.generationNumber++
  }

  /** Moves promised partitions whose owner did not commit in time. @returns whether one moved. */
  expirePromises(nowUs: number): boolean {
    let hasMoved = false
    for (const [partitionId, slot] of this.slots.entries()) {
      if (slot.heir === null || nowUs - slot.promisedAtUs < this.timeoutUs) continue
      slot.inFlight = null
      this.handOver(partitionId)
      hasMoved = true
    }
    if (hasMoved) this.generationNumber++
    return hasMoved
  }

  private find(clientId: number): Member | undefined {
    return this.members.find((member) => member.clientId === clientId)
  }

  private pollableOf(member: Member): number[] {
    return member.owned.filter((partitionId) => this.slots[partitionId]?.heir === null)
  }

  /**
   * Deals everything out anew. What a member still handles stays with it or is only promised, as on a join; but nobody goes
   * away with nothing because of it: Iggy's clients expect a share as soon as a member has left. Who left will not commit any
   * more, so nothing is waited for there.
   */
  private assignAll(nowUs: number): void {
    const heirs = this.dealOut()
    for (const member of this.members) {
      member.owned = []
      member.promised = []
    }
    const waiting: [partitionId: number, heir: Member][] = []
    for (const [partitionId, slot] of this.slots.entries()) {
      const next = heirs[partitionId] ?? null
      if (next !== null && slot.owner !== next && this.handledBy(slot) !== null) {
        slot.owner?.owned.push(partitionId)
        waiting.push([partitionId, next])
        continue
      }
      if (slot.owner !== next) slot.inFlight = null
      slot.owner = next
      slot.heir = null
      next?.owned.push(partitionId)
    }
    for (const [partitionId, heir] of waiting) {
      const slot = this.slots[partitionId]
      assert(slot !== undefined, 'a partition that waits exists')
      if (heir.owned.length === 0 && (slot.owner?.owned.length ?? 0) > 1) slot.inFlight = null
      this.promise(partitionId, heir, nowUs)
    }
  }

  /**
   * Partition i to member i mod n. Where somebody else still handles partition i, it is swapped for one that would go to that
   * member and has to move anyway or may: shares stay as even, and fewer members wait.
   */
  private dealOut(): (Member | null)[] {
    const memberCount = Math.max(1, this.members.length)
    const heirs = this.slots.map((_, partitionId) => this.members[partitionId % memberCount] ?? null)
    for (const [partitionId, slot] of this.slots.entries()) {
      const holder = this.handledBy(slot)
      const heir = heirs[partitionId] ?? null
      if (holder === null || holder === heir) continue
      const swapped = this.slots.findIndex(
        (other, otherId) => heirs[otherId] === holder && this.handledBy(other) !== holder,
      )
      if (swapped < 0) continue
      heirs[partitionId] = holder
      heirs[swapped] = heir
    }
    return heirs
  }

  /** The member that was given messages and has not committed them. */
  private handledBy({ owner, inFlight }: Slot): Member | null {
    return owner !== null && inFlight !== null && this.members.includes(owner) ? owner : null
  }

  /** Takes what is over the fair share from the end of each list and deals it out to the members that have nothing. */
  private moveSurplus(nowUs: number): void {
    const idle = this.members.filter((member) => this.futureOf(member).length === 0)
    const fairCount = Math.floor(this.slots.length / this.members.length)
    let extraCount = this.slots.length % this.members.length
    const surplus: number[] = []
    for (const member of this.members) {
      const future = this.futureOf(member)
      if (future.length <= fairCount) continue
      // The first over-full members keep one more, or the remainder would wander from member to member on every join.
      const keptCount = fairCount + (extraCount > 0 ? 1 : 0)
      extraCount = Math.max(0, extraCount - 1)
      surplus.push(...future.slice(keptCount).reverse())
    }
    for (const [index, partitionId] of surplus.entries()) {
      const heir = idle[index % idle.length]
      assert(heir !== undefined, 'a surplus exists only while a member is idle')
      this.promise(partitionId, heir, nowUs)
    }
  }

  /** What the member owns once every promise is kept. */
  private futureOf(member: Member): number[] {
    return [...this.pollableOf(member), ...member.promised]
  }

  private promise(partitionId: number, heir: Member, nowUs: number): void {
    const slot = this.slots[partitionId]
    assert(slot !== undefined, 'a promised partition exists')
    if (slot.heir !== null) remove(slot.heir.promised, partitionId)
    else slot.promisedAtUs = nowUs
    slot.heir = heir
    heir.promised.push(partitionId)
    if (slot.inFlight === null) this.handOver(partitionId)
  }

  /** @returns whether the partition was promised, and has moved now. */
  private handOver(partitionId: number): boolean {
    const slot = this.slots[partitionId]
    if (slot === undefined || slot.heir === null) return false
    if (slot.owner !== null) remove(slot.owner.owned, partitionId)
    remove(slot.heir.promised, partitionId)
    slot.heir.owned.push(partitionId)
    slot.owner = slot.heir
    slot.heir = null
    return true
  }
}

function emptySlot(): Slot {
  return { owner: null, heir: null, promisedAtUs: 0, inFlight: null }
}

function remove(list: number[], value: number): void {
  const index = list.indexOf(value)
  if (index >= 0) list.splice(index, 1)
}
