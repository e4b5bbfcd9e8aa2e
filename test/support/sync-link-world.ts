/**
 * Several partitions on one simulated link, around the real forwarders, turns, slots and budget: an upstream that hangs up at
 * some records and refuses others, a link that comes and goes and carries so much a second, a budget that lasts for part of a
 * day. The partitions share nothing but the link, so whatever one of them does to it must not be laid at another's door.
 */
import { EdgeError, type ErrorCode } from '../../src/errors.ts'
import { Budget } from '../../src/sync/core/budget.ts'
import { Forwarder } from '../../src/sync/core/forwarder.ts'
import type { Effect, Input } from '../../src/sync/core/forwarder-protocol.ts'
import { type Exchange, LinkPace } from '../../src/sync/core/link-pace.ts'
import { idPrefix, messageId, splitMessageId } from '../../src/sync/core/message-id.ts'
import type { TailPage, TailRequest } from '../../src/sync/core/tail.ts'
import { Slots } from '../../src/sync/io/slots.ts'
import { Turns } from '../../src/sync/io/turns.ts'
import { EventQueue } from './event-queue.ts'
import { WORLD_FORWARDER } from './forwarder-options.ts'
import { SeededRandom } from './seeded-random.ts'

export interface LinkWorldOptions {
  readonly seed: number
  readonly partitionCount: number
  /** For each partition: local offsets at which the upstream hangs up without a word. */
  readonly deadly: readonly ReadonlySet<bigint>[]
  /** For each partition: local offsets that it refuses by name. */
  readonly refused: readonly ReadonlySet<bigint>[]
  /** Chances per request, and per link. */
  readonly loseReply: number
  readonly shortLived: number
  /** One connection is served in order; several, as over HTTP, are served all at once, and a crash ends them all. */
  readonly isInOrder: boolean
  readonly dailyBudgetBytes: number
  /** What the link carries each way. Answers that take longer than their limit end it. */
  readonly bytesPerSecond: number
  /** Of the records, and others' messages, of each partition. */
  readonly recordBytes: readonly number[]
  /** Others write so many messages into each partition whenever a link has ended. */
  readonly foreignCount: number
}

const HOUR_US = 3_600_000_000
/** Most links live up to so long, some end at once. */
const MAX_LIFE_US = 2 * HOUR_US
const SHORT_LIFE_US = 100_000
const BACKLOG_SHARE = 0.8
/** A request on a broken link is applied at most this much later: below the settle time. */
const LATE_US = 700_000
const RECORD_BYTES = 100
/** As in `defaults.ts`. */
const PACE = { initialUs: 10e6, minUs: 2e6, maxUs: 60e6, usualBytesPerSecond: 32_000 }
const FOREIGN_PREFIX = 99n
const TOPIC: Exchange = { kind: 'topic', upBytes: 0, downBytes: 0 }
const LOGIN_US = 50_000
const MAX_BATCH = 16
const STORE_ID = new Uint8Array(16).fill(7)

/** One partition: the log here, its forwarder with what the shell keeps for it, and what the upstream holds. */
export class WorldPartition {
  readonly id: number
  readonly forwarder: Forwarder
  readonly upstream: bigint[] = []
  readonly deadLetters: bigint[] = []
  durableEnd = 0n
  slot: 'none' | 'waiting' | 'held' = 'none'
  withdraw: () => void = () => {}
  read: { readonly from: bigint; readonly end: bigint } | null = null

  constructor(id: number, random: () => number) {
    this.id = id
    this.forwarder = new Forwarder(
      {
        idPrefix: (incarnation) => idPrefix(STORE_ID, id, incarnation),
        cursor: undefined,
        logStart: 0n,
        durableEnd: 0n,
        foundEnd: 0n,
        bounds: { maxCount: MAX_BATCH, maxBytes: 1e6 },
        ...WORLD_FORWARDER,
        random,
      },
      0,
    )
  }

  get ownOffsets(): bigint[] {
    const ids = this.upstream.map(splitMessageId).filter(({ prefix }) => prefix !== FOREIGN_PREFIX)
    return ids.map(({ offset }) => offset)
  }
}

export class LinkWorld {
  readonly options: LinkWorldOptions
  readonly partitions: readonly WorldPartition[]
  readonly #random: SeededRandom
  readonly #time = new EventQueue()
  readonly #slots = new Slots(4)
  readonly #budget: Budget
  /** In every other world each link goes just as the one before: what is behind another request always is. */
  readonly #jitterUs: number
  readonly #pace = new LinkPace(PACE)
  #turns = new Turns()
  /** Counts links; null while there is none. */
  #link: number | null = null
  #linkCount = 0
  #busyUntilUs = 0
  #answersUntilUs = 0
  /** When each link ended. */
  readonly #endsUs = new Map<number, number>()
  /** Links that the upstream ended. */
  readonly #hungUp = new Set<number>()
  #areFaultsOn = true

  constructor(options: LinkWorldOptions) {
    this.options = options
    this.#random = new SeededRandom(options.seed)
    const { dailyBudgetBytes, seed } = options
    this.#jitterUs = seed % 2 === 0 ? 20_000 : 1
    this.#budget = new Budget({ maxBytesPerSecond: 0, dailyBudgetBytes }, 0)
    const ids = Array.from({ length: options.partitionCount }, (_, id) => id)
    this.partitions = ids.map((id) => new WorldPartition(id, this.#random.next))
  }

  /** Appends `total` records to each partition, most of them before the link, lets faults happen for `hours`, and then none for as long. */
  run(total: number, hours: number): void {
    this.#time.after(1000, () => this.#linkUp())
    for (const partition of this.partitions) {
      for (let index = 0; index < total; index++) {
        const atUs = this.#random.chance(BACKLOG_SHARE) ? 0 : this.#random.below(HOUR_US)
        this.#time.after(atUs, () => this.#append(partition))
      }
    }
    this.#time.runUntil(hours * HOUR_US)
    this.#areFaultsOn = false
    this.#time.runUntil(hours * 2 * HOUR_US)
  }

  // ---- the shells of the partitions --------------------------------------------------------------------------------------

  #append(partition: WorldPartition): void {
    partition.durableEnd += 1n
    this.#feed(partition, { type: 'appended', logStart: 0n, durableEnd: partition.durableEnd })
  }

  #feed(partition: WorldPartition, input: Input): void {
    for (const effect of partition.forwarder.step(input, this.#time.nowUs)) this.#carryOut(partition, effect)
    if (!partition.forwarder.needsSlot) this.#releaseSlot(partition)
  }

  #carryOut(partition: WorldPartition, effect: Effect): void {
    switch (effect.type) {
      case 'commit-cursor':
      case 'report':
        return
      case 'wake':
        this.#time.after(effect.atUs - this.#time.nowUs, () => this.#feed(partition, { type: 'woken' }))
        return
      case 'compare':
        this.#feed(partition, { type: 'compared', ticket: effect.ticket, isSame: true })
        return
      case 'read':
        this.#withSlot(partition, () => {
          this.#time.after(this.#random.below(this.#jitterUs), () => this.#read(partition, effect))
        })
        return
      case 'keep-dead-letter':
        partition.deadLetters.push(effect.offset)
        this.#time.after(5000, () => this.#feed(partition, { type: 'dead-letter-kept', ticket: effect.ticket }))
        return
      case 'ensure-topic':
        this.#ask(partition, TOPIC, () => ({ type: 'topic-ready', ticket: effect.ticket, incarnation: '1' }))
        return
      case 'poll-tail':
        this.#look(partition, effect)
        return
      case 'send':
        this.#send(partition, effect)
        return
    }
  }

  #look(partition: WorldPartition, { request, ticket }: Extract<Effect, { type: 'poll-tail' }>): void {
    const exchange: Exchange = { kind: 'look', upBytes: 0, downBytes: request.expectedBytes }
    this.#ask(partition, exchange, () => {
      return { type: 'tail', ticket, page: poll(partition, request, this.#recordBytes(partition)) }
    })
  }

  #recordBytes({ id }: WorldPartition): number {
    return this.options.recordBytes[id] ?? RECORD_BYTES
  }

  #read(partition: WorldPartition, { ticket, fromOffset, bounds }: Extract<Effect, { type: 'read' }>): void {
    const fitting = Math.max(1, Math.floor(bounds.maxBytes / this.#recordBytes(partition)))
    const end = fromOffset + BigInt(Math.min(bounds.maxCount, fitting))
    partition.read = { from: fromOffset, end: end < partition.durableEnd ? end : partition.durableEnd }
    const count = Number(partition.read.end - fromOffset)
    const read = { count, sizeBytes: count * this.#recordBytes(partition), nextOffset: partition.read.end, hole: null }
    this.#feed(partition, { type: 'read', ticket, read })
  }

  #send(partition: WorldPartition, effect: Extract<Effect, { type: 'send' }>): void {
    const { read } = partition
    const link = this.#link
    if (read === null || link === null) return
    const offsets: bigint[] = []
    for (let offset = read.from; offset < read.end; offset++) offsets.push(offset)
    const upBytes = offsets.length * this.#recordBytes(partition)
    const waitUs = this.#budget.take(upBytes, this.#time.nowUs)
    if (waitUs > 0) {
      this.#time.after(waitUs, () => {
        if (this.#link === link) this.#send(partition, effect)
      })
      return
    }
    const sent = (): void => this.#feed(partition, { type: 'sent', ticket: effect.ticket })
    const exchange: Exchange = { kind: 'send', upBytes, downBytes: 0 }
    this.#ask(partition, exchange, () => this.#receive(partition, effect, offsets), effect.suspicion, sent)
  }

  #withSlot(partition: WorldPartition, run: () => void): void {
    if (partition.slot === 'held') {
      run()
      return
    }
    partition.withdraw()
    partition.slot = 'waiting'
    partition.withdraw = this.#slots.acquire(() => {
      partition.slot = 'held'
      run()
    })
  }

  #releaseSlot(partition: WorldPartition): void {
    if (partition.slot === 'none') return
    const wasHeld = partition.slot === 'held'
    partition.slot = 'none'
    partition.withdraw()
    partition.withdraw = () => {}
    if (wasHeld) this.#slots.release()
  }

  // ---- link ------------------------------------------------------------------------------------------------------------

  #linkUp(): void {
    this.#linkCount += 1
    const link = this.#linkCount
    this.#link = link
    this.#turns = new Turns()
    this.#busyUntilUs = this.#time.nowUs
    this.#answersUntilUs = this.#time.nowUs
    // Each link begins with a login, which is small.
    this.#pace.begin()
    this.#pace.patienceFor('session').answered(LOGIN_US)
    if (this.#areFaultsOn) {
      const lifeUs = this.#random.chance(this.options.shortLived) ? SHORT_LIFE_US : MAX_LIFE_US
      this.#time.after(this.#random.below(lifeUs), () => this.#linkDown(link, 'EDGE_CONNECTION_LOST'))
    }
    for (const partition of this.partitions) this.#feed(partition, { type: 'link-up' })
  }

  #linkDown(link: number, code: ErrorCode): void {
    if (this.#link !== link) return
    this.#link = null
    this.#endsUs.set(link, this.#time.nowUs)
    if (this.#areFaultsOn) for (const { upstream } of this.partitions) this.#writeAsOthers(upstream)
    const error = new EdgeError(code, 'simulated: cut')
    for (const partition of this.partitions) this.#feed(partition, { type: 'link-down', error })
    this.#time.after(20_000 + this.#random.below(500_000), () => this.#linkUp())
  }

  #writeAsOthers(upstream: bigint[]): void {
    for (let count = 0; count < this.options.foreignCount; count++)
      upstream.push(messageId(FOREIGN_PREFIX, BigInt(count)))
  }

  /** @param apply what the upstream does with it; null when it hangs up instead of an answer. */
  #ask(
    partition: WorldPartition,
    exchange: Exchange,
    apply: () => Input | null,
    suspicion = 0,
    begun: () => void = () => {},
  ): void {
    const link = this.#link
    if (link === null) return
    const turns = this.#turns
    turns.take(suspicion, () => {
      // Turns of a link that is over are nobody's.
      if (this.#link !== link) return
      begun()
      this.#request(link, exchange, apply, (reply) => {
        this.#feed(partition, reply)
        turns.end()
      })
    })
  }

  #request(link: number, exchange: Exchange, apply: () => Input | null, done: (reply: Input) => void): void {
    const { nowUs } = this.#time
    const earliestUs = nowUs + 1000 + this.#random.below(this.#jitterUs)
    const beginUs = this.options.isInOrder ? Math.max(this.#busyUntilUs, earliestUs) : earliestUs
    const arriveUs = beginUs + this.#carryUs(exchange.upBytes)
    this.#busyUntilUs = arriveUs
    const patience = this.#pace.patienceFor(exchange.kind)
    let isAnswered = false
    this.#time.after(patience.timeoutUs + this.#pace.transferUs(exchange), () => {
      if (isAnswered || this.#link !== link) return
      patience.timedOut()
      this.#pace.timedOut(exchange)
      this.#linkDown(link, 'EDGE_UPSTREAM_TIMEOUT')
    })
    this.#time.after(arriveUs - nowUs, () => {
      if (this.#link !== link) {
        this.#arriveLate(link, apply)
        return
      }
      const reply = apply()
      if (reply === null) {
        this.#hungUp.add(link)
        this.#linkDown(link, 'EDGE_CONNECTION_LOST')
        return
      }
      if (this.#areFaultsOn && this.#random.chance(this.options.loseReply)) {
        this.#time.after(200_000, () => this.#linkDown(link, 'EDGE_UPSTREAM_TIMEOUT'))
        return
      }
      const { upBytes } = exchange
      const downBytes = reply.type === 'tail' ? reply.page.sizeBytes : 0
      this.#answersUntilUs = Math.max(this.#answersUntilUs, this.#time.nowUs) + this.#carryUs(downBytes)
      const answerUs = this.#answersUntilUs - this.#time.nowUs + 1000 + this.#random.below(this.#jitterUs)
      this.#time.after(answerUs, () => {
        if (this.#link !== link) return
        isAnswered = true
        const durationUs = this.#time.nowUs - nowUs
        patience.answered(durationUs)
        this.#pace.carried({ upBytes, downBytes }, durationUs)
        done(reply)
      })
    })
  }

  #carryUs(sizeBytes: number): number {
    return (sizeBytes / this.options.bytesPerSecond) * 1e6
  }

  /** What was on its way when the link broke is applied late, or never; never when it was the upstream that ended the link. */
  #arriveLate(link: number, apply: () => Input | null): void {
    const lateUs = this.#random.below(LATE_US)
    const sinceEndUs = this.#time.nowUs - (this.#endsUs.get(link) ?? 0)
    // What was not carried by then stays with us.
    const isGone = this.#hungUp.has(link) || sinceEndUs + lateUs > LATE_US
    if (!isGone && this.#random.chance(0.6)) this.#time.after(lateUs, apply)
  }

  // ---- upstream --------------------------------------------------------------------------------------------------------

  #receive(
    { id, upstream }: WorldPartition,
    { ticket, idPrefix: prefix }: Extract<Effect, { type: 'send' }>,
    offsets: readonly bigint[],
  ): Input | null {
    const { seed, deadly, refused } = this.options
    if (offsets.some((offset) => deadly[id]?.has(offset))) return null
    if (offsets.some((offset) => refused[id]?.has(offset))) {
      const error = new EdgeError('EDGE_UPSTREAM_REFUSED', 'simulated: invalid')
      return { type: 'failed', ticket, failure: { kind: 'invalid', error } }
    }
    const base = upstream.length
    for (const offset of offsets) {
      const last = upstream.map(splitMessageId).findLast((each) => each.prefix === prefix)
      if (last !== undefined && last.offset >= offset) {
        throw new Error(`seed ${seed}: partition ${id} gets ${offset} after ${last.offset}`)
      }
      upstream.push(messageId(prefix, offset))
    }
    return { type: 'confirmed', ticket, upstreamBaseOffset: BigInt(base) }
  }
}

function poll({ upstream }: WorldPartition, request: TailRequest, messageBytes: number): TailPage {
  const from = request.kind === 'last' ? Math.max(0, upstream.length - request.count) : Number(request.offset)
  const ids = upstream.slice(from, from + request.count)
  const messages = ids.map((id, index) => ({ offset: BigInt(from + index), id }))
  return {
    currentOffset: BigInt(Math.max(0, upstream.length - 1)),
    messages,
    sizeBytes: ids.length * messageBytes,
    contentAt: () => ({ payloadBytes: messageBytes, payloadSum: 0, originUs: null }),
  }
}
