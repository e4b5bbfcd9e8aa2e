/**
 * A simulated edge partition, link and upstream around the real forwarder: clock, chance, losses and kills are all moved
 * by one seed. The upstream acknowledges from memory and forgets on a kill, as Apache's server does; requests that were on
 * their way when a link broke may still be applied later; others may write into the same partition.
 */
import { EdgeError } from '../../src/errors.ts'
import type { FailureKind } from '../../src/sync/core/failure.ts'
import { Forwarder } from '../../src/sync/core/forwarder.ts'
import type { Effect, Input, Report } from '../../src/sync/core/forwarder-protocol.ts'
import { idPrefix, messageId, splitMessageId } from '../../src/sync/core/message-id.ts'
import type { RecordContent } from '../../src/sync/core/record-content.ts'
import type { TailPage, TailRequest } from '../../src/sync/core/tail.ts'
import type { Cursor } from '../../src/sync/ports.ts'
import { EventQueue } from './event-queue.ts'
import { WORLD_FORWARDER } from './forwarder-options.ts'
import { SeededRandom } from './seeded-random.ts'

export interface WorldOptions {
  readonly seed: number
  /** Chances per event. */
  readonly loseReply: number
  readonly cutLink: number
  readonly killEdge: number
  readonly killUpstream: number
  /** A killed upstream forgets up to this many of its newest messages. */
  readonly forgetsUpTo: number
  readonly foreignWrites: number
  /** Local offsets that the upstream refuses by name. */
  readonly poison: ReadonlySet<bigint>
  /** Local offsets at which the upstream hangs up without a word. */
  readonly deadly: ReadonlySet<bigint>
  /** Sends of more records than this are refused as too large. */
  readonly upstreamMaxCount: number
  /** Whether send replies name the base offset (VSR) or not (classic). */
  readonly tellsBaseOffset: boolean
  /** A killed edge may come back without its cursor. */
  readonly losesCursor: number
  /** A killed edge may come back without knowing that its last records are synced. */
  readonly leavesUnproven: number
  /** Local retention follows the cursor. */
  readonly hasRetention: boolean
  /** The upstream drops old messages. */
  readonly upstreamExpires: number
  /** Somebody deletes the upstream topic and makes it anew, at once; a look at it tells that later. */
  readonly remakesTopic: number
  /** The topic is full for one send, which is confirmed and not kept, and has room for the next. */
  readonly dropsConfirmed: number
  /** An older copy of the edge's data takes the place of what it had; it grows on from there with other records. */
  readonly restores: number
}

const STORE_ID = new Uint8Array(16).fill(7)
const KEY = 3
export const MAX_BATCH = 20
const FOREIGN_PREFIX = 99n
/** A request on a broken link is applied at most this much later: below the settle time. */
const LATE_US = 700_000
/** A topic that was made anew is noticed after this at the latest. */
const LOOK_US = 2_000_000

export class SyncWorld {
  readonly options: WorldOptions
  readonly random: SeededRandom
  readonly reports: Report[] = []
  readonly deadLetters: bigint[] = []
  /** The upstream partition: ids by offset; `start` is the oldest it keeps. */
  upstream: bigint[] = []
  upstreamStart = 0
  /** Which life of the edge's data each of them is of. */
  readonly #upstreamLives: number[] = []
  logStart = 0n
  /** Of what is known to be synced. */
  durableEnd = 0n
  cursor: Cursor | undefined
  forwarder: Forwarder
  sentOnWire = 0
  droppedSends = 0
  #appendedEnd = 0n
  /** By offset. */
  readonly #lives: number[] = []
  #dataLife = 0
  #copy: { readonly end: bigint; readonly cursor: Cursor | undefined } | null = null
  /** After a kill the last records wait to be written again. */
  #isUnproven = false
  #savedCursor: Cursor | undefined
  readonly #time = new EventQueue()
  #link = 0
  #isUp = false
  #upstreamLife = 0
  #edgeLife = 0
  #topicLife = 0
  /** The upstream serves one connection in order. */
  #busyUntilUs = 0
  #lastRead: { from: bigint; end: bigint } | null = null
  #areFaultsOn = true

  constructor(options: WorldOptions) {
    this.options = options
    this.random = new SeededRandom(options.seed)
    this.forwarder = this.#startForwarder()
  }

  /** Own offsets upstream, in upstream order. */
  get ownOffsets(): bigint[] {
    const prefix = idPrefix(STORE_ID, KEY, 0)
    return this.upstream
      .map(splitMessageId)
      .filter((id) => id.prefix === prefix)
      .map((id) => id.offset)
  }

  /** The same, whichever incarnation of ours their ids carry. */
  get ownOffsetsOfAnyIncarnation(): ReadonlySet<bigint> {
    const ids = this.upstream.map(splitMessageId)
    return new Set(ids.filter(({ prefix }) => prefix !== FOREIGN_PREFIX).map(({ offset }) => offset))
  }

  /** What the local log has and the upstream has not: another record may lie there under the same id. */
  get missingOffsets(): number[] {
    const there = this.#timesUpstream()
    return this.#lives.flatMap((life, offset) => (there.has(`${offset} ${life}`) ? [] : [offset]))
  }

  /** How many records came again. */
  get againCount(): number {
    return [...this.#timesUpstream().values()].reduce((sum, times) => sum + times - 1, 0)
  }

  #timesUpstream(): Map<string, number> {
    const times = new Map<string, number>()
    for (const [index, id] of this.upstream.entries()) {
      const { prefix, offset } = splitMessageId(id)
      const record = `${offset} ${this.#upstreamLives[index]}`
      if (prefix !== FOREIGN_PREFIX) times.set(record, (times.get(record) ?? 0) + 1)
    }
    return times
  }

  /** Appends `total` records over simulated time among faults, then lets the world come to rest. */
  run(total: number): void {
    this.#at(1000, () => this.#linkUp())
    for (let index = 0; index < total; index++) this.#at(this.random.below(20_000_000), () => this.#append())
    this.#runUntil(25_000_000)
    this.#areFaultsOn = false
    // What the last send lost is found missing with the next one, or with the next link.
    if (this.droppedSends > 0) this.#linkDown()
    this.#runUntil(this.nowUs + 400_000_000)
  }

  // ---- time ------------------------------------------------------------------------------------------------------------

  get nowUs(): number {
    return this.#time.nowUs
  }

  #at(delayUs: number, run: () => void): void {
    this.#time.after(delayUs, run)
  }

  #runUntil(endUs: number): void {
    this.#time.runUntil(endUs, () => {
      if (this.#areFaultsOn) this.#faults()
    })
  }

  #faults(): void {
    const { options, random } = this
    if (random.chance(options.cutLink)) this.#linkDown()
    if (random.chance(options.killUpstream)) this.#killUpstream()
    if (random.chance(options.killEdge)) this.#killEdge()
    if (random.chance(options.foreignWrites)) this.#keep((FOREIGN_PREFIX << 64n) | BigInt(this.upstream.length), 0)
    if (random.chance(options.upstreamExpires)) this.#expire()
    if (random.chance(options.remakesTopic)) this.#remakeTopic()
    // As in `#isFull`: no chance where there is none.
    if (options.restores > 0 && random.chance(options.restores)) this.#restore()
  }

  // ---- edge ------------------------------------------------------------------------------------------------------------

  #startForwarder(): Forwarder {
    return new Forwarder(
      {
        idPrefix: (incarnation) => idPrefix(STORE_ID, KEY, incarnation),
        cursor: this.cursor,
        logStart: this.logStart,
        durableEnd: this.durableEnd,
        foundEnd: this.#appendedEnd,
        bounds: { maxCount: MAX_BATCH, maxBytes: 1e6 },
        ...WORLD_FORWARDER,
        random: this.random.next,
      },
      this.nowUs,
    )
  }

  #append(): void {
    this.#appendedEnd += 1n
    this.#lives.push(this.#dataLife)
    if (!this.#isUnproven) this.durableEnd = this.#appendedEnd
    if (this.random.chance(0.2)) this.#savedCursor = this.cursor
    if (this.options.restores > 0 && this.random.chance(0.1)) {
      this.#copy = { end: this.#appendedEnd, cursor: this.#savedCursor }
    }
    if (this.options.hasRetention && this.random.chance(0.05)) this.#retain()
    this.#feed({ type: 'appended', logStart: this.logStart, durableEnd: this.durableEnd })
  }

  /** Retention waits for the cursor that is stored. */
  #retain(): void {
    const confirmedEnd = (this.#savedCursor?.confirmedOffset ?? -1n) + 1n
    if (confirmedEnd > this.logStart) this.logStart = confirmedEnd
  }

  #killEdge(): void {
    this.#linkDown()
    const cursor = this.random.chance(this.options.losesCursor) ? undefined : this.#savedCursor
    if (this.random.chance(this.options.leavesUnproven)) this.#doubtLast()
    this.#startAgain(cursor)
  }

  #startAgain(cursor: Cursor | undefined): void {
    this.#edgeLife += 1
    this.cursor = cursor
    this.#savedCursor = cursor
    this.forwarder = this.#startForwarder()
  }

  #restore(): void {
    if (this.#copy === null) return
    this.#linkDown()
    // By the time it is done, what was on its way has arrived or never will.
    this.#upstreamLife += 1
    const { end, cursor } = this.#copy
    this.#lives.length = Number(end)
    this.#dataLife += 1
    this.#appendedEnd = end
    this.durableEnd = end
    this.#savedCursor = cursor
    this.#startAgain(cursor)
  }

  /** Nothing proves that the last records are synced: the disk takes them again later. */
  #doubtLast(): void {
    this.#isUnproven = true
    const end = this.durableEnd - BigInt(this.random.below(8))
    this.durableEnd = end > this.logStart ? end : this.logStart
    this.#at(this.random.below(3_000_000), () => {
      this.#isUnproven = false
      this.durableEnd = this.#appendedEnd
      this.#feed({ type: 'appended', logStart: this.logStart, durableEnd: this.durableEnd })
    })
  }

  #feed(input: Input): void {
    for (const effect of this.forwarder.step(input, this.nowUs)) this.#carryOut(effect)
  }

  #carryOut(effect: Effect): void {
    const life = this.#edgeLife
    switch (effect.type) {
      case 'commit-cursor':
        this.cursor = effect.cursor
        return
      case 'report':
        this.reports.push(effect.report)
        return
      case 'wake':
        this.#at(effect.atUs - this.nowUs, () => {
          if (life === this.#edgeLife) this.#feed({ type: 'woken' })
        })
        return
      case 'compare': {
        const isSame = effect.content.payloadSum === this.#lives[Number(effect.offset)]
        this.#feed({ type: 'compared', ticket: effect.ticket, isSame })
        return
      }
      case 'read':
        this.#lastRead = this.#plan(effect.fromOffset, effect.bounds.maxCount)
        this.#at(this.random.below(2000), () => {
          if (life !== this.#edgeLife || this.#lastRead === null) return
          const { from, end } = this.#lastRead
          const count = Number(end - from)
          const read = { count, sizeBytes: count * 100, nextOffset: end, hole: null }
          this.#feed({ type: 'read', ticket: effect.ticket, read })
        })
        return
      case 'keep-dead-letter':
        this.#at(5000, () => {
          if (!this.deadLetters.includes(effect.offset)) this.deadLetters.push(effect.offset)
          if (life === this.#edgeLife) this.#feed({ type: 'dead-letter-kept', ticket: effect.ticket })
        })
        return
      case 'ensure-topic':
        this.#request(
          () => ({ type: 'topic-ready', ticket: effect.ticket, incarnation: `${this.#topicLife}` }),
          effect.ticket,
        )
        return
      case 'poll-tail':
        this.#request(() => ({ type: 'tail', ticket: effect.ticket, page: this.#poll(effect.request) }), effect.ticket)
        return
      case 'send':
        this.sentOnWire += 1
        this.#feed({ type: 'sent', ticket: effect.ticket })
        this.#send(effect)
        return
    }
  }

  #plan(from: bigint, maxCount: number): { from: bigint; end: bigint } {
    const end = from + BigInt(maxCount)
    return { from, end: end < this.durableEnd ? end : this.durableEnd }
  }

  // ---- link ------------------------------------------------------------------------------------------------------------

  #linkUp(): void {
    if (this.#isUp) return
    this.#isUp = true
    this.#link += 1
    this.#busyUntilUs = this.nowUs
    this.#feed({ type: 'link-up' })
  }

  #linkDown(): void {
    if (!this.#isUp) return
    this.#isUp = false
    this.#link += 1
    this.#feed({ type: 'link-down', error: new EdgeError('EDGE_CONNECTION_LOST', 'simulated: cut') })
    this.#at(20_000 + this.random.below(500_000), () => this.#linkUp())
  }

  #request(apply: () => Input, ticket: number): void {
    const link = this.#link
    const life = this.#upstreamLife
    const edgeLife = this.#edgeLife
    const arriveUs = Math.max(this.#busyUntilUs, this.nowUs + 1000 + this.random.below(20_000))
    this.#busyUntilUs = arriveUs
    const isReplyLost = this.#areFaultsOn && this.random.chance(this.options.loseReply)
    this.#at(arriveUs - this.nowUs, () => {
      if (life !== this.#upstreamLife) return
      const isLate = link !== this.#link
      // What was on its way when the link broke is applied late, or never.
      if (isLate && this.random.chance(0.4)) return
      if (isLate) {
        this.#at(this.random.below(LATE_US), () => {
          if (life === this.#upstreamLife) apply()
        })
        return
      }
      const reply = apply()
      if (isReplyLost) {
        this.#at(200_000, () => {
          if (link !== this.#link || edgeLife !== this.#edgeLife) return
          this.#feed({ type: 'failed', ticket, failure: failure('lost') })
          this.#linkDown()
        })
        return
      }
      this.#at(1000 + this.random.below(5000), () => {
        if (link === this.#link && edgeLife === this.#edgeLife) this.#feed(reply)
      })
    })
  }

  // ---- upstream --------------------------------------------------------------------------------------------------------

  #killUpstream(): void {
    this.#upstreamLife += 1
    const forgotten = this.random.below(this.options.forgetsUpTo + 1)
    this.upstream.length = Math.max(this.upstreamStart, this.upstream.length - forgotten)
    this.#upstreamLives.length = this.upstream.length
    this.#linkDown()
  }

  /** Drops everything that the stored cursor covers, so that no tail proves it any more. */
  #expire(): void {
    // Iggy reports current offset 0 for an empty partition and for one that lost its only message: nobody can tell.
    if (this.upstream.length < 2) return
    const confirmed = this.#savedCursor?.confirmedOffset ?? -1n
    const prefix = idPrefix(STORE_ID, KEY, 0)
    const isCovered = (id: bigint): boolean => {
      const { prefix: own, offset } = splitMessageId(id)
      return own !== prefix || offset <= confirmed
    }
    while (this.upstreamStart < this.upstream.length && isCovered(this.upstream[this.upstreamStart] ?? 0n)) {
      this.upstreamStart += 1
    }
  }

  #remakeTopic(): void {
    this.#topicLife += 1
    this.upstream = []
    this.#upstreamLives.length = 0
    this.upstreamStart = 0
    this.#at(this.random.below(LOOK_US), () => this.#feed({ type: 'topic-lost' }))
  }

  #keep(id: bigint, life: number): void {
    this.upstream.push(id)
    this.#upstreamLives.push(life)
  }

  /** I2 and I3, at the moment they would break. */
  #appendUpstream(id: bigint, life: number): void {
    const { prefix, offset } = splitMessageId(id)
    const before = this.upstream.findLast((other) => splitMessageId(other).prefix === prefix)
    if (before !== undefined && splitMessageId(before).offset >= offset) {
      throw new Error(`seed ${this.options.seed}: upstream gets ${offset} after ${splitMessageId(before).offset}`)
    }
    this.#keep(id, life)
  }

  #isFull(): boolean {
    const { dropsConfirmed } = this.options
    // No chance is drawn where there is none: the known seeds stay what they are.
    return dropsConfirmed > 0 && this.#areFaultsOn && this.random.chance(dropsConfirmed)
  }

  #poll(request: TailRequest): TailPage {
    const from =
      request.kind === 'last'
        ? Math.max(this.upstreamStart, this.upstream.length - request.count)
        : Math.max(this.upstreamStart, Number(request.offset))
    const count = Math.min(request.count, 1 + this.random.below(request.count * 2))
    const ids = this.upstream.slice(from, from + count)
    const messages = ids.map((id, index) => ({ offset: BigInt(from + index), id }))
    const contentAt = (offset: bigint): RecordContent => ({
      payloadBytes: 1,
      payloadSum: this.#upstreamLives[Number(offset)] ?? 0,
      originUs: null,
    })
    return { currentOffset: BigInt(Math.max(0, this.upstream.length - 1)), messages, sizeBytes: 0, contentAt }
  }

  #send(effect: Extract<Effect, { type: 'send' }>): void {
    const read = this.#lastRead
    if (read === null) throw new Error('sends without a read')
    const offsets: bigint[] = []
    for (let offset = read.from; offset < read.end; offset++) offsets.push(offset)
    const lives = offsets.map((offset) => this.#lives[Number(offset)] ?? 0)
    const { ticket } = effect
    this.#request(() => {
      if (offsets.some((offset) => this.options.deadly.has(offset))) {
        this.#at(0, () => this.#linkDown())
        return { type: 'woken' }
      }
      if (offsets.length > this.options.upstreamMaxCount)
        return { type: 'failed', ticket, failure: failure('too-large') }
      if (offsets.some((offset) => this.options.poison.has(offset))) {
        return { type: 'failed', ticket, failure: failure('invalid') }
      }
      const base = BigInt(this.upstream.length)
      if (this.#isFull()) this.droppedSends += 1
      else {
        for (const [index, offset] of offsets.entries())
          this.#appendUpstream(messageId(effect.idPrefix, offset), lives[index] ?? 0)
      }
      return { type: 'confirmed', ticket, upstreamBaseOffset: this.options.tellsBaseOffset ? base : null }
    }, ticket)
  }
}

function failure(kind: FailureKind): { kind: FailureKind; error: EdgeError } {
  const code = kind === 'lost' ? 'EDGE_UPSTREAM_TIMEOUT' : 'EDGE_UPSTREAM_REFUSED'
  return { kind, error: new EdgeError(code, `simulated: ${kind}`) }
}
