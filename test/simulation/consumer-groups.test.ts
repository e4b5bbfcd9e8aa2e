/**
 * Members of a consumer group that come, go and read at their own pace, by the rules of the consumer in `src/sdk/client/`:
 * a poll goes on by an own count, the assignment is asked for now and then, each message is committed. As long as nobody dies
 * and nobody waits for ever, no message is handled twice, and all are handled.
 *
 * `SEED` runs one seed, `SEEDS` so many from there.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConsumerGroup } from '../../src/runtime/broker/consumer-groups.ts'
import { SeededRandom } from '../support/seeded-random.ts'

const PARTITIONS = 6
const MAX_MEMBERS = 5
const STEPS = 1500
const BATCH = 4
/** A join may take what nobody reads; a reader that goes on is given time, so no promise runs out. */
const NEVER_US = Number.MAX_SAFE_INTEGER

interface Partition {
  end: number
  /** The group's offset: next to handle. */
  stored: number
  /** How often each offset was handled. */
  readonly handled: number[]
}

/** What a poll reads while others go on. */
interface Poll {
  readonly partitionId: number
  readonly tenure: number
  readonly from: number
}

class Member {
  readonly clientId: number
  partitions: readonly number[] = []
  readonly next = new Map<number, number>()
  poll: Poll | null = null
  batch: { readonly partitionId: number; offset: number; readonly end: number } | null = null
  isLeaving = false

  constructor(clientId: number) {
    this.clientId = clientId
  }
}

class World {
  readonly #random: SeededRandom
  readonly #group = new ConsumerGroup(PARTITIONS, NEVER_US)
  readonly #partitions: Partition[] = Array.from({ length: PARTITIONS }, () => ({ end: 0, stored: 0, handled: [] }))
  #members: Member[] = []
  #nextClientId = 1

  constructor(seed: number) {
    this.#random = new SeededRandom(seed)
  }

  step(mayChange: boolean): void {
    const draw = this.#random.below(100)
    if (draw < 10 && mayChange) this.#partitionAt(this.#random.below(PARTITIONS)).end += 1 + this.#random.below(6)
    else if (draw < 13 && mayChange && this.#members.length < MAX_MEMBERS) this.#join()
    else if (draw < 15 && mayChange && this.#stayingCount() > 1) this.#anyone().isLeaving = true
    else this.#live(this.#anyone())
  }

  join(): void {
    this.#join()
  }

  isDone(): boolean {
    return this.#partitions.every(({ end, stored }) => stored === end)
  }

  check(place: string): void {
    for (const [id, { handled }] of this.#partitions.entries()) {
      const twice = handled.findIndex((count) => count > 1)
      assert.equal(twice, -1, `${place}: offset ${twice} of partition ${id} was handled twice`)
    }
  }

  checkAllHandled(place: string): void {
    for (const [id, { end, handled }] of this.#partitions.entries()) {
      const counts = Array.from({ length: end }, (_, offset) => handled[offset] ?? 0)
      assert.ok(
        counts.every((count) => count === 1),
        `${place}: partition ${id} was handled ${counts} times`,
      )
    }
  }

  #partitionAt(id: number): Partition {
    const partition = this.#partitions[id]
    assert.ok(partition !== undefined)
    return partition
  }

  #anyone(): Member {
    const member = this.#members[this.#random.below(this.#members.length)]
    assert.ok(member !== undefined)
    return member
  }

  #stayingCount(): number {
    return this.#members.filter(({ isLeaving }) => !isLeaving).length
  }

  #join(): void {
    const member = new Member(this.#nextClientId++)
    this.#members.push(member)
    this.#group.join(member.clientId, 0)
  }

  #live(member: Member): void {
    if (member.poll !== null) this.#finishPoll(member, member.poll)
    else if (member.batch !== null && !member.isLeaving) this.#handle(member, member.batch)
    else if (member.isLeaving) this.#leave(member)
    else if (this.#random.below(5) === 0) this.#sync(member)
    else this.#startPoll(member)
  }

  #leave(member: Member): void {
    this.#group.leave(member.clientId, 0)
    this.#members = this.#members.filter((other) => other !== member)
  }

  #sync(member: Member): void {
    member.partitions = this.#group.sync(member.clientId) ?? []
    for (const known of [...member.next.keys()]) if (!member.partitions.includes(known)) member.next.delete(known)
  }

  #startPoll(member: Member): void {
    if (member.partitions.length === 0) return
    const partitionId = member.partitions[this.#random.below(member.partitions.length)] ?? 0
    const from = member.next.get(partitionId)
    if (from === undefined) {
      // The poll is another step: others go on in between.
      this.#group.sawOffset(member.clientId, partitionId)
      member.next.set(partitionId, this.#partitionAt(partitionId).stored)
      return
    }
    const tenure = this.#group.startPoll(member.clientId, partitionId, true)
    if (tenure === null) this.#giveUp(member, partitionId)
    else member.poll = { partitionId, tenure, from }
  }

  #finishPoll(member: Member, { partitionId, tenure, from }: Poll): void {
    member.poll = null
    const end = Math.min(this.#partitionAt(partitionId).end, from + BATCH)
    if (end <= from) return
    if (!this.#group.isCurrent(partitionId, tenure)) {
      this.#giveUp(member, partitionId)
      return
    }
    this.#group.polled(partitionId, BigInt(end - 1))
    member.next.set(partitionId, end)
    member.batch = { partitionId, offset: from, end }
  }

  #giveUp(member: Member, partitionId: number): void {
    member.next.delete(partitionId)
    member.partitions = member.partitions.filter((id) => id !== partitionId)
  }

  #handle(member: Member, batch: { readonly partitionId: number; offset: number; readonly end: number }): void {
    const { partitionId, offset } = batch
    const partition = this.#partitionAt(partitionId)
    partition.handled[offset] = (partition.handled[offset] ?? 0) + 1
    if (this.#group.canCommit(member.clientId, partitionId)) {
      partition.stored = offset + 1
      this.#group.committed(partitionId, BigInt(offset))
    }
    batch.offset++
    if (batch.offset === batch.end) member.batch = null
  }
}

test('no message of a group is handled twice or never while members come and go', () => {
  const first = Number(process.env.SEED ?? 1)
  const count = Number(process.env.SEEDS ?? (process.env.SEED === undefined ? 300 : 1))
  for (let seed = first; seed < first + count; seed++) {
    const world = new World(seed)
    world.join()
    for (let step = 0; step < STEPS; step++) {
      world.step(true)
      world.check(`seed ${seed}, step ${step}`)
    }
    for (let step = 0; step < STEPS * 20 && !world.isDone(); step++) world.step(false)
    world.check(`seed ${seed}, at the end`)
    world.checkAllHandled(`seed ${seed}, at the end`)
  }
})
