/**
 * One client connection: bytes in, replies out, in the order of the requests. Or one stream of a client whose every request
 * comes on a stream of its own: then one request, one reply, and the end.
 *
 * Requests are carried out one after another; only sends may overlap, because their replies wait for the disk. What cannot
 * go on now (no room in the log, an answer outstanding, a peer that does not read) leaves the rest unread, and goes on when
 * whoever is waited for calls back. All replies of one turn leave in one write.
 */
import { assert } from '../../assert.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { writeStatusFrame } from '../../sdk/wire/classic/frame.ts'
import { CODE } from '../../sdk/wire/codes.ts'
import { Answers } from './answers.ts'
import type { ByteSession, ByteTransport } from './byte-session.ts'
import { type Bound, ClientBinding } from './client-binding.ts'
import { logGivenUp, logRefused } from './connection-log.ts'
import { MAX_SENDS_IN_FLIGHT, SMALL_REQUEST_BYTES, STRANGERS_REQUEST_BYTES, UNDECIDED_TIMEOUT_MS } from './defaults.ts'
import { iggyCodeFor } from './error-map.ts'
import type { IncomingRequest, Protocol } from './protocol.ts'
import { BudgetShare } from './request-budget.ts'
import { isLargelyAnswered, refusalOfBegun, refusalOfSize } from './request-size.ts'
import { decodeSend } from './send-queue.ts'
import type { ServerContext } from './server-context.ts'
import { ServerSession } from './server-session.ts'
import type { StreamOwner } from './stream-owner.ts'
import { type Overdue, TimeLimits } from './time-limits.ts'
import type { Waiters } from './waiters.ts'

/** Why the next request is not looked at yet. */
type Wait = 'answer' | 'sends' | 'room' | 'budget' | 'turn' | 'output'

/** What is read ahead while a request waits; more is left in the transport. */
const READ_AHEAD_BYTES = 64 * 1024

export class Connection implements ByteSession {
  private readonly server: ServerContext
  private readonly transport: ByteTransport
  private readonly onClosed: (connection: Connection) => void
  private readonly session: ServerSession
  /** null for a connection of its own. */
  private readonly owner: StreamOwner | null
  private readonly binding: ClientBinding
  private waits: Wait | null = null
  private readonly answers: Answers
  /** The frame that waits for room; owned. */
  private heldFrame: Uint8Array | null = null
  /** The one that waited last and is looked at again: it need not be copied to wait once more. */
  private ownedFrame: Uint8Array | null = null
  /** What it waited for. */
  private ownedFor: Wait | null = null
  private readonly share: BudgetShare
  private isPaused = false
  /** The peer sends no more; what it asked for is answered. */
  private isPeerDone = false
  /** Nothing more is looked at; what was begun is answered. */
  private isEnding = false
  private isClosed = false
  private undecidedTimer: NodeJS.Timeout | null = null
  private readonly times: TimeLimits
  private requestCount = 0

  constructor(
    server: ServerContext,
    transport: ByteTransport,
    onClosed: (connection: Connection) => void,
    owner: StreamOwner | null = null,
  ) {
    this.server = server
    this.transport = transport
    this.onClosed = onClosed
    this.owner = owner
    this.binding = owner?.binding ?? new ClientBinding(server, transport, (reason) => this.evicted(reason))
    this.answers = new Answers(server.output, transport, {
      onWrite: () => this.times.answers(),
      onLeft(changeBytes) {
        server.broker.answersLeft(changeBytes)
        owner?.outputLeft(changeBytes)
      },
      onSettled: () => this.sendsSettled(),
    })
    this.share = new BudgetShare(server.budget)
    this.session = new ServerSession(server.limits.maxRequestBytes, {
      isOneRequest: owner !== null,
      dialect: this.binding.bound?.protocol.dialect ?? null,
    })
    this.times = new TimeLimits(server.limits, owner !== null, server.clock.monotonicUs())
  }

  receive(bytesView: Uint8Array): void {
    if (this.isClosed || this.isEnding) return
    this.times.heard(this.server.clock.monotonicUs())
    try {
      this.session.receive(bytesView)
    } catch (error) {
      this.refuseFraming(toEdgeError(error))
      return
    }
    this.watchUndecided()
    this.work()
    this.session.keep()
    this.regulate()
  }

  private watchUndecided(): void {
    // A stream's first bytes may be under way in a packet that was lost.
    if (this.owner !== null) return
    if (!this.session.isUndecided) {
      if (this.undecidedTimer !== null) clearTimeout(this.undecidedTimer)
      this.undecidedTimer = null
      return
    }
    this.undecidedTimer ??= setTimeout(() => this.refuseFraming(this.session.undecided), UNDECIDED_TIMEOUT_MS)
  }

  ended(): void {
    this.isPeerDone = true
    this.endWhenIdle()
  }

  drained(): void {
    this.times.taken(this.server.clock.monotonicUs())
    this.answers.taken()
    if (this.waits === null) this.continue()
  }

  closed(): void {
    if (this.isClosed) return
    this.isClosed = true
    if (this.undecidedTimer !== null) clearTimeout(this.undecidedTimer)
    this.share.release()
    for (const waiters of [this.server.room, this.binding.turn, this.owner?.outputRoom]) waiters?.delete(this.lookAgain)
    this.answers.closed()
    if (this.owner === null) this.binding.close()
    this.onClosed(this)
  }

  /** Ends the connection; what is being answered still is. */
  close(): void {
    this.isEnding = true
    this.endWhenIdle()
  }

  /** Looks at the time limits. */
  sweep(nowUs: number): void {
    if (this.isClosed) return
    const { session, transport, waits } = this
    const { unsentBytes } = transport
    const isOutputFull = this.answers.isFull
    const overdue = this.times.check(
      {
        hasAsked: this.requestCount > 0 || this.heldFrame !== null,
        isOutputFull,
        unsentBytes,
        unacknowledgedBytes: this.times.isInDoubt(unsentBytes, nowUs)
          ? (transport.unacknowledgedBytes?.() ?? null)
          : null,
        isMidRequest: !isOutputFull && waits === null && (session.heldBytes > 0 || session.isDropping),
        filling: this.filling(),
        isShareAwaited: this.server.budget.isAwaited,
        mayBeRefused: this.mayBeRefused(),
      },
      nowUs,
    )
    this.tellSeen()
    // The peer keeps its side open: it was told, and has had the time to read what was written.
    if (overdue === 'end') this.destroy()
    else if (overdue === 'wait') this.refuseWaiting()
    else if (overdue !== null) this.giveUp(overdue)
  }

  private mayBeRefused(): boolean {
    const { isHeld } = this.share
    // Who takes its answers slowly keeps no share meanwhile. Who was given one in this turn goes on behind it.
    return this.waits === 'room' || (this.waits === 'budget' && !isHeld) || (this.waits === 'output' && isHeld)
  }

  /** The request that holds a share of the budget and is not whole. */
  private filling(): { readonly sizeBytes: number; readonly receivedBytes: number } | null {
    if (!this.share.isHeld || this.heldFrame !== null) return null
    return { sizeBytes: this.session.announcedBytes, receivedBytes: this.session.heldBytes }
  }

  /** Who takes a large answer, or sends a large request, is there all the while: a member of a group keeps its partitions. */
  private tellSeen(): void {
    const client = this.binding.bound?.client
    if (client !== undefined) client.lastSeenUs = Math.max(client.lastSeenUs, this.times.lastSeenUs)
  }

  // ---- requests ------------------------------------------------------------------------------------------------------

  /** Carries out what is there, as far as it goes, and writes the replies. */
  private work(): void {
    this.answers.begin()
    try {
      while (this.waits === null && !this.answers.isFull && !this.isEnding && !this.isClosed) {
        const frame = this.nextFrame()
        if (frame === null) break
        this.carryOut(frame)
        this.answers.flushMuch()
      }
    } catch (error) {
      this.answers.flush()
      this.refuseFraming(toEdgeError(error))
      return
    }
    this.answers.flush()
    this.endWhenIdle()
  }

  private nextFrame(): Uint8Array | null {
    const held = this.heldFrame
    this.heldFrame = null
    this.ownedFrame = held
    if (held !== null) return held
    const frame = this.session.next()
    if (frame === null) this.takeShare()
    return frame
  }

  private carryOut(frame: Uint8Array): void {
    const { protocol } = this.bind()
    const request = protocol.decode(frame)
    const isSend = request.code === CODE.sendMessages
    if (this.mustWait(request.code, frame)) return
    // Not before: what waits is held.
    this.share.release()
    this.tellSeen()
    this.countRequest()
    const refusal = protocol.refusal(request) ?? (isSend ? null : refusalOfSize(request, frame.length))
    if (refusal !== null) this.answers.refuse(refusal)
    else if (isSend) this.send(request)
    else this.handle(protocol, request)
    if (protocol.isOver) this.isEnding = true
  }

  private countRequest(): void {
    this.requestCount++
    if (this.owner !== null) this.isEnding = true
  }

  /** @returns whether the frame was put aside. */
  private mustWait(code: number, frame: Uint8Array): boolean {
    const isSend = code === CODE.sendMessages
    if (!isSend && this.binding.isBusy) return this.waitAmong(this.binding.turn, 'turn', frame)
    if (this.owner !== null && (this.owner.isOutputFull || (isLargelyAnswered(code) && !this.owner.mayReadLarge)))
      return this.waitAmong(this.owner.outputRoom, 'output', frame)
    if (isSend && !this.server.log.hasRoom(frame.length)) return this.waitAmong(this.server.room, 'room', frame)
    // Other commands see what the sends before them did, so they wait for those.
    const limit = isSend ? MAX_SENDS_IN_FLIGHT : 1
    return this.answers.sendCount >= limit && this.wait('sends', frame)
  }

  private handle(protocol: Protocol, request: IncomingRequest): void {
    const reply = protocol.handle(request)
    if (!(reply instanceof Promise)) {
      this.answers.reply(reply, request)
      return
    }
    this.waits = 'answer'
    const endTurn = this.binding.holdTurn()
    const endLarge = isLargelyAnswered(request.code) ? this.owner?.beginLarge() : undefined
    // Owned: it ends in a reply or, for a bug of ours, in the process.
    void reply.then((each) => {
      this.waits = null
      if (!this.isClosed) {
        this.answers.reply(each, request)
        if (protocol.isOver) this.isEnding = true
        this.answers.flush()
        this.continue()
      }
      endLarge?.()
      endTurn()
    })
  }

  private send(request: IncomingRequest): void {
    const { caller, protocol } = this.bind()
    const slot = this.answers.send(request)
    try {
      const { body } = decodeSend(protocol.dialect, request.payloadView)
      slot.result = this.server.broker.send(caller, body.stream, body.topic, body.partitioning, body.batch, slot)
    } catch (error) {
      slot.fail(toEdgeError(error))
    }
    this.answers.sent(slot)
  }

  /** What was waited for did not come in time. */
  private refuseWaiting(): void {
    const { heldFrame } = this
    this.heldFrame = this.waits = null
    // Or its place among those that wait for one.
    this.share.release()
    try {
      if (heldFrame !== null) this.refuseForRoom(heldFrame)
      else this.refuseBegun(new EdgeError('EDGE_BACKPRESSURE', 'too many large requests at once: try again'))
    } catch (error) {
      this.refuseFraming(toEdgeError(error))
      return
    }
    this.answers.flush()
    this.continue()
  }

  private refuseForRoom(frame: Uint8Array): void {
    const { protocol } = this.bind()
    this.countRequest()
    const request = protocol.decode(frame)
    // A log that takes nothing says why.
    const refusal = this.server.log.isWritable ? null : protocol.refusal(request)
    const error = new EdgeError('EDGE_BACKPRESSURE', 'the log has no room: try again')
    if (refusal !== null) this.answers.refuse(refusal)
    else if (!this.server.log.isWritable) this.send(request)
    else this.answers.refuse((writer) => request.writeFailure(writer, error))
  }

  /** The rest of the request is dropped as it comes: the connection goes on behind it. */
  private refuseBegun(error: EdgeError): void {
    const request = this.bind().protocol.decode(this.session.drop())
    this.countRequest()
    this.answers.refuse((writer) => request.writeFailure(writer, error))
  }

  private sendsSettled(): void {
    if (this.waits === 'sends') this.resumeFrom('sends')
    this.endWhenIdle()
  }

  /** The first request has told the generation: from now on there is a client. */
  private bind(): Bound {
    const { dialect } = this.session
    assert(dialect !== null, 'a frame has a dialect')
    return this.binding.bind(dialect)
  }

  private evicted(reason: 'stale' | 'user-deleted'): void {
    const notice = this.binding.bound?.protocol.evicted(reason) ?? null
    if (notice === null) return
    // Another connection's turn may be on the stack: the output is not ours now.
    queueMicrotask(() => {
      if (!this.isClosed) this.answers.notice(notice)
    })
  }

  // ---- waiting -------------------------------------------------------------------------------------------------------

  private waitAmong(waiters: Waiters, reason: Wait, frame: Uint8Array): true {
    waiters.add(this.lookAgain)
    return this.wait(reason, frame)
  }

  /** What others wait for too is there again, or was when this one waited for it. */
  private readonly lookAgain = (): void => {
    if (this.waits === 'turn' || this.waits === 'output' || this.waits === 'room') this.resumeFrom(this.waits)
  }

  private wait(reason: Wait, frame: Uint8Array): true {
    const isOwned = frame === this.ownedFrame
    // Whoever is woken and finds that others were faster has waited since before.
    if (!isOwned || reason !== this.ownedFor) this.times.waits(this.server.clock.monotonicUs())
    this.waits = this.ownedFor = reason
    // The view belongs to the transport; the wait outlives it.
    this.heldFrame = isOwned ? frame : new Uint8Array(frame)
    return true
  }

  private resumeFrom(reason: Wait): void {
    if (this.waits !== reason || this.isClosed) return
    this.waits = null
    this.continue()
  }

  private continue(): void {
    if (this.isClosed) return
    this.times.heard(this.server.clock.monotonicUs())
    this.work()
    this.session.keep()
    this.regulate()
  }

  /** Reads while there is use for it: a slow peer or a busy log is felt by who sends. */
  private regulate(): void {
    if (this.isClosed) return
    const isWaiting = this.waits !== null || this.answers.isFull
    const isFull = isWaiting && (this.waits === 'budget' || this.session.heldBytes >= READ_AHEAD_BYTES)
    if (isFull === this.isPaused) return
    this.isPaused = isFull
    if (isFull) this.transport.pause()
    else this.transport.resume()
  }

  /** A large request asks before more of it is read. */
  private takeShare(): void {
    const announced = this.session.announcedBytes
    if (announced <= STRANGERS_REQUEST_BYTES || this.share.isHeld) return
    const { protocol, caller } = this.bind()
    // Or anybody could take all there is with two headers, and say nothing more, or much memory with many connections.
    if (caller.userId === null) throw protocol.nobody()
    if (announced <= SMALL_REQUEST_BYTES) return
    const request = protocol.decode(this.session.begunView())
    const error = refusalOfBegun(request, announced, caller, this.server.broker)
    if (error !== null) {
      this.refuseBegun(error)
      return
    }
    // Another connection's turn, which gives a share back, may be on the stack.
    const granted = () => queueMicrotask(() => this.resumeFrom('budget'))
    this.times.beginsFill()
    if (this.share.take(announced, granted)) return
    this.waits = 'budget'
    this.times.waits(this.server.clock.monotonicUs())
  }

  // ---- the end ------------------------------------------------------------------------------------------------------

  private endWhenIdle(): void {
    if (this.times.hasEnded || this.isClosed || this.answers.sendCount > 0 || this.waits === 'answer') return
    const isDone = this.isPeerDone && this.waits === null && !this.answers.isFull
    if (!this.isEnding && !isDone) return
    this.times.ended(this.server.clock.monotonicUs())
    // A stream without a whole request gets no response, not even an empty one.
    if (this.owner !== null && this.requestCount === 0) this.refuseStream(this.owner)
    else this.transport.end()
  }

  private refuseStream(owner: StreamOwner): void {
    this.destroy()
    owner.refused()
  }

  private refuseFraming(error: EdgeError): void {
    if (this.isClosed || this.isEnding || this.times.hasEnded) return
    logRefused(this.server.logger, this.transport, this.session, error)
    // A classic client understands this; whoever else it is sees the end, and of a stream its reset.
    if (this.session.dialect !== 'vsr' && this.owner === null) {
      this.answers.refuse((writer) => writeStatusFrame(writer, iggyCodeFor(error, 'classic')))
      this.answers.flush()
    }
    this.isEnding = true
    this.endWhenIdle()
  }

  /** Ends the connection now. */
  destroy(): void {
    if (this.isClosed) return
    this.transport.destroy()
    this.closed()
  }

  private giveUp(overdue: Exclude<Overdue, 'end' | 'wait'>): void {
    logGivenUp(this.server.logger, this.transport, this.session, overdue)
    this.destroy()
  }
}
