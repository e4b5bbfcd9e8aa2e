/**
 * Which member of a consumer group reads which partition. Pure: time comes in, nothing goes out but the answers.
 *
 * Decides: the split on join (the surplus moves), on leave, disconnect and change of the partition count.
 * Relies on: the caller tells what was polled and what was committed. Never: waits, or remembers members over a restart.
 *
 * A join moves the whole surplus to the idle members, so that member counts never differ by more than one partition. A
 * partition whose messages were polled but not committed is only *promised*: its owner may still commit but no longer
 * polls, and it changes hands when the commit catches up or after the timeout. Without this the messages in flight would be
 * handled twice on every change.
 *
 * Two more rules keep messages from being handled twice. A poll belongs to the *tenure* it began in: what was still being
 * read when the partition changed hands is not answered. And a member whose partition went away and came back is told so
 * before it goes on by an offset of its own: others have read on meanwhile.
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
  /** Partitions that went to others, as long as it may go on there as if they had not. */
  readonly lost: Map<number, 'untold' | 'told'>
  /** Whether it ever committed: it is worth waiting for. */
  hasCommitted: boolean
}

interface Slot {
  owner: Member | null
  /** Names the time since the owner changed; no other partition of the group has the same. */
  tenure: number
  /** Who gets it when the owner is done. */
  heir: Member | null
  /** null: not promised. */
  promisedAtUs: number | null
  /** Highest offset handed to the owner and not committed yet. */
  inFlight: bigint | null
}

export class ConsumerGroup {
  private readonly timeoutUs: number
  private readonly members: Member[] = []
  private partitionCount: number
  /** One for each partition; none while nobody is a member: names that programs make up are many, and never deleted. */
  private slots: Slot[] = []
  private nextMemberId = 0
  private nextTenure = 1
  private generationNumber = 0n

  constructor(partitionCount: number, timeoutUs = REBALANCING_TIMEOUT_US) {
    this.timeoutUs = timeoutUs
    this.partitionCount = partitionCount
  }

  /** Grows with every change of the assignment. */
  get generation(): bigint {
    return this.generationNumber
  }

  /** Places of partitions that are kept now. */
  get slotCount(): number {
    return this.slots.length
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
    const member = {
      id: this.nextMemberId++,
      clientId,
      owned: [],
      promised: [],
      turn: 0,
      lastTaken: null,
      lost: new Map(),
      hasCommitted: false,
    }
    if (this.members.length === 0) this.slots = Array.from({ length: this.partitionCount }, emptySlot)
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
    if (this.members.length === 0) this.slots = []
    else this.assignAll(nowUs)
    this.generationNumber++
    return true
  }

  /** The topic has another number of partitions now. */
  repartition(partitionCount: number, nowUs: number): void {
    if (partitionCount === this.partitionCount) return
    this.partitionCount = partitionCount
    this.generationNumber++
    if (this.members.length === 0) return
    const kept = this.slots.slice(0, partitionCount)
    // One that is made anew later is another one.
    for (let id = partitionCount; id < this.slots.length; id++) this.slots[id]?.owner?.lost.set(id, 'untold')
    while (kept.length < partitionCount) kept.push(emptySlot())
    this.slots = kept
    this.assignAll(nowUs)
  }

  /** The group is gone: nothing that is still being read is answered, and nobody is a member. */
  dissolve(): void {
    this.members.length = 0
    this.slots = []
    this.generationNumber++
  }

  /** Tells the member which partitions it may poll now; undefined when it is no member. */
  sync(clientId: number): readonly number[] | undefined {
    const member = this.find(clientId)
    if (member === undefined) return undefined
    const pollable = this.pollableOf(member)
    // What it does not find here it gives up; what came back meanwhile looks as if it had never been away.
    for (const partitionId of member.lost.keys())
      if (!pollable.includes(partitionId)) member.lost.set(partitionId, 'told')
    return pollable
  }

  /**
   * @param isByOwnCount - whether the member says where to go on, instead of asking for what follows the group's offset.
   * @returns the tenure that the poll is part of; null when the partition is not this member's to poll, or was another's
   *   since the member last heard of it: that is told once.
   */
  startPoll(clientId: number, partitionId: number, isByOwnCount: boolean): number | null {
    const slot = this.slots[partitionId]
    const member = this.find(clientId)
    if (slot === undefined || member === undefined) return null
    const { lost } = member
    const isStale = isByOwnCount && lost.get(partitionId) === 'untold'
    if (slot.owner !== member || slot.heir !== null || isStale) {
      if (lost.has(partitionId)) lost.set(partitionId, 'told')
      return null
    }
    lost.delete(partitionId)
    return slot.tenure
  }

  /** Whether what was read for a poll may still be answered. */
  isCurrent(partitionId: number, tenure: number): boolean {
    return this.slots[partitionId]?.tenure === tenure
  }

  /**
   * A promised partition may still be committed by its owner. What a member handled before the partition was another's is
   * older than what the other one stored.
   */
  canCommit(clientId: number, partitionId: number): boolean {
    const owner = this.slots[partitionId]?.owner
    return owner?.clientId === clientId && !owner.lost.has(partitionId)
  }

  /** The member has seen the group's offset of the partition. */
  sawOffset(clientId: number, partitionId: number): void {
    const member = this.find(clientId)
    const slot = this.slots[partitionId]
    if (member === undefined || slot === undefined) return
    // Of another's partition it is old when the partition comes.
    if (slot.owner === member) member.lost.delete(partitionId)
    else member.lost.set(partitionId, 'untold')
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

  /** The partition `take` gave last, also when it is another's by now; before that the member's first one. */
  current(clientId: number): number | null {
    const member = this.find(clientId)
    if (member === undefined) return null
    return member.lastTaken ?? member.owned[0] ?? null
  }

  /** Messages up to `lastOffset` were handed to the owner. */
  polled(partitionId: number, lastOffset: bigint): void {
    const slot = this.slots[partitionId]
    if (slot !== undefined && (slot.inFlight === null || lastOffset > slot.inFlight)) slot.inFlight = lastOffset
  }

  /** The group's offset is `offset` now; `null` = it was deleted or the partition purged, so nothing is waited for. */
  committed(partitionId: number, offset: bigint | null): void {
    const slot = this.slots[partitionId]
    if (slot === undefined) return
    if (slot.owner !== null) slot.owner.hasCommitted = true
    if (slot.inFlight === null) return
    if (offset !== null && offset < slot.inFlight) return
    slot.inFlight = null
    if (this.handOver(partitionId)) this.generationNumber++
  }

  /** Moves promised partitions whose owner did not commit in time. @returns whether one moved. */
  expirePromises(nowUs: number): boolean {
    let hasMoved = false
    for (const [partitionId, slot] of this.slots.entries()) {
      if (slot.promisedAtUs === null || nowUs - slot.promisedAtUs < this.timeoutUs) continue
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

  /** Deals everything out anew; what a member still handles stays with it, or is promised as on a join. */
  private assignAll(nowUs: number): void {
    for (const slot of this.slots) {
      if (slot.owner !== null && this.members.includes(slot.owner)) continue
      slot.owner = null
      slot.tenure = this.nextTenure++
      // Who is gone commits no more.
      slot.inFlight = null
    }
    const waitedSinceUs = this.slots.map(({ promisedAtUs }) => promisedAtUs)
    for (const member of this.members) {
      member.owned = []
      member.promised = []
    }
    for (const slot of this.slots) {
      slot.heir = null
      slot.promisedAtUs = null
    }
    if (this.slots.every(({ inFlight }) => inFlight === null)) this.dealInTurn()
    else this.dealAround(nowUs, waitedSinceUs)
  }

  /** Partition i goes to member i mod n, as with Iggy's server. */
  private dealInTurn(): void {
    for (const partitionId of this.slots.keys()) {
      this.give(partitionId, this.members[partitionId % Math.max(1, this.members.length)] ?? null)
    }
  }

  /**
   * Everybody keeps what it has, and what is nobody's goes to who has least. Where that is not even yet, partitions are
   * promised. But nobody goes away with nothing because of a member that never commits, and may never do: Iggy's clients
   * expect a share as soon as a member has left.
   *
   * @param waitedSinceUs - of each partition: since when it had been promised.
   */
  private dealAround(nowUs: number, waitedSinceUs: readonly (number | null)[]): void {
    for (const [partitionId, slot] of this.slots.entries()) slot.owner?.owned.push(partitionId)
    const shares = new Shares(this.members)
    for (const [partitionId, slot] of this.slots.entries()) {
      if (slot.owner !== null) continue
      const { least } = shares.ends()
      this.give(partitionId, least)
      shares.add(least, 1)
    }
    for (let { least, most } = shares.ends(); shares.of(most) - shares.of(least) > 1; { least, most } = shares.ends()) {
      const future = this.futureOf(most)
      const partitionId = future.findLast((id) => this.slots[id]?.inFlight === null) ?? future.at(-1)
      assert(partitionId !== undefined, 'who has most has something')
      this.promise(partitionId, least, waitedSinceUs[partitionId] ?? nowUs)
      shares.add(most, -1)
      shares.add(least, 1)
    }
    for (const member of this.members) {
      const [first] = member.promised
      if (first === undefined || member.owned.length > 0) continue
      const slot = this.slots[first]
      if (slot?.owner?.hasCommitted === false && slot.owner.owned.length > 1) this.handOver(first)
    }
  }

  /** Nothing of the former owner's time counts any more. */
  private give(partitionId: number, next: Member | null): void {
    const slot = this.slots[partitionId]
    assert(slot !== undefined, 'a partition that is given exists')
    next?.owned.push(partitionId)
    if (slot.owner === next) return
    slot.owner?.lost.set(partitionId, 'untold')
    slot.owner = next
    slot.tenure = this.nextTenure++
    slot.inFlight = null
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

  private promise(partitionId: number, heir: Member, sinceUs: number): void {
    const slot = this.slots[partitionId]
    assert(slot !== undefined, 'a promised partition exists')
    if (slot.heir !== null) remove(slot.heir.promised, partitionId)
    slot.promisedAtUs ??= sinceUs
    slot.heir = heir
    heir.promised.push(partitionId)
    if (slot.inFlight === null) this.handOver(partitionId)
  }

  /** @returns whether the partition was promised, and has moved now. */
  private handOver(partitionId: number): boolean {
    const slot = this.slots[partitionId]
    if (slot === undefined || slot.heir === null) return false
    const { owner, heir } = slot
    if (owner !== null) remove(owner.owned, partitionId)
    remove(heir.promised, partitionId)
    slot.heir = null
    slot.promisedAtUs = null
    this.give(partitionId, heir)
    return true
  }
}

/** How many partitions each member will have once every promise is kept. Counted on: there may be thousands. */
class Shares {
  private readonly counts: Map<Member, number>

  constructor(members: readonly Member[]) {
    this.counts = new Map(members.map((member) => [member, member.owned.length]))
  }

  of(member: Member): number {
    return this.counts.get(member) ?? 0
  }

  add(member: Member, count: number): void {
    this.counts.set(member, this.of(member) + count)
  }

  /** Who has least and most; of equals the one that joined first. */
  ends(): { least: Member; most: Member } {
    const [first, ...others] = this.counts.keys()
    assert(first !== undefined, 'messages are handled by members')
    let least = first
    let most = first
    for (const member of others) {
      if (this.of(member) < this.of(least)) least = member
      if (this.of(member) > this.of(most)) most = member
    }
    return { least, most }
  }
}

function emptySlot(): Slot {
  return { owner: null, tenure: 0, heir: null, promisedAtUs: null, inFlight: null }
}

function remove(list: number[], value: number): void {
  const index = list.indexOf(value)
  if (index >= 0) list.splice(index, 1)
}
