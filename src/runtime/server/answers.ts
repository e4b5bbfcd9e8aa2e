/**
 * What one connection answers, in the order of its requests. Replies are put together in the output that all connections
 * share, within one turn: whoever writes there takes it out before the turn ends. Those of sends whose promise does not hold
 * yet, and what is refused behind them, are kept until it does.
 */
import { assert } from '../../assert.ts'
import { toEdgeError } from '../../errors.ts'
import type { ByteTransport } from './byte-session.ts'
import { OUTPUT_GATHER_BYTES } from './defaults.ts'
import type { IncomingRequest, Reply } from './protocol.ts'
import type { ReplyOutput } from './reply-output.ts'
import { SendQueue, type SendSlot } from './send-queue.ts'
import { SentReplies } from './sent-replies.ts'

export interface AnswersEvents {
  /** Something is written. */
  readonly onWrite: () => void
  /** So many bytes more, or fewer, wait for the peer. */
  readonly onLeft: (changeBytes: number) => void
  /** The promise of sends holds, or cannot: in one call for all that one sync has settled, in a turn of its own. */
  readonly onSettled: () => void
}

export class Answers {
  private readonly output: ReplyOutput
  private readonly transport: ByteTransport
  private readonly events: AnswersEvents
  private readonly replies: SentReplies
  private readonly sends = new SendQueue(() => this.settledSoon())
  private hasWake = false
  private isClosed = false

  constructor(output: ReplyOutput, transport: ByteTransport, events: AnswersEvents) {
    this.output = output
    this.transport = transport
    this.events = events
    this.replies = new SentReplies(output, transport, events.onLeft)
  }

  /** The peer has not taken the last replies yet: nothing more should be looked at. */
  get isFull(): boolean {
    return this.replies.isFull
  }

  /** Sends that are not answered yet. */
  get sendCount(): number {
    return this.sends.size
  }

  begin(): void {
    assert(this.output.length === 0, 'a turn begins with nothing to write')
  }

  reply(reply: Reply, request: IncomingRequest): void {
    try {
      reply(this.output, this.leave)
    } catch (error) {
      // The output is as before: a reply that is too large becomes an error.
      request.writeFailure(this.output, toEdgeError(error))
    }
  }

  /** Behind the replies of sends that wait for the disk. */
  refuse(refusal: Reply): void {
    this.sends.refuse(refusal)
    this.sends.writeSettled(this.output)
  }

  /** What is no reply to a request. */
  notice(notice: Reply): void {
    notice(this.output)
    this.flush()
  }

  /** @returns the place of its reply; then `sent`. */
  send(request: IncomingRequest): SendSlot {
    return this.sends.open(request)
  }

  /** The send has begun, or failed. An error is known at once: no turn needs to pass when nothing is before it. */
  sent(slot: SendSlot): void {
    if (this.sends.size === 1 && slot.isSettled) this.sends.writeSettled(this.output)
  }

  /** Writes what is there once it is much. */
  flushMuch(): void {
    if (this.output.length > OUTPUT_GATHER_BYTES) this.flush()
  }

  flush(): void {
    if (this.output.length === 0) return
    this.events.onWrite()
    if (this.isClosed) this.output.reset()
    else this.replies.flush()
  }

  /** The peer has taken all. */
  taken(): void {
    this.replies.settle()
  }

  closed(): void {
    this.isClosed = true
    this.replies.settle()
  }

  /** Part of a reply goes ahead. Of a message-framed carrier one write is one message, so there it waits for the rest. */
  private readonly leave = (): void => {
    if (this.transport.kind === 'tcp') this.flush()
  }

  private settledSoon(): void {
    if (this.hasWake || this.isClosed) return
    this.hasWake = true
    queueMicrotask(() => {
      this.hasWake = false
      if (this.isClosed) return
      this.sends.writeSettled(this.output)
      this.flush()
      this.events.onSettled()
    })
  }
}
