/** Sends of one connection whose promise does not hold yet; answered in the order they came. */
import type { EdgeError } from '../../errors.ts'
import type { Receipt } from '../../log/index.ts'
import { CODE } from '../../sdk/wire/codes.ts'
import { decodeCommand } from '../../sdk/wire/commands/index.ts'
import type { Dialect } from '../../sdk/wire/dialect.ts'
import type { Writer } from '../../sdk/wire/writer.ts'
import type { SendResult } from '../broker/index.ts'
import type { IncomingRequest, Reply } from './protocol.ts'

/** The place of one send in the order of replies; the log settles it. */
export class SendSlot implements Receipt {
  readonly request: IncomingRequest
  /** Set right after the append, which may settle the slot before it returns. */
  result: SendResult | null = null
  error: EdgeError | null = null
  isSettled = false
  private readonly queue: SendQueue

  constructor(queue: SendQueue, request: IncomingRequest) {
    this.queue = queue
    this.request = request
  }

  settled(error: EdgeError | null): void {
    if (this.isSettled) return
    this.fail(error)
    this.queue.onSettled()
  }

  /** Settles without a call back: for who looks at the queue anyway. */
  fail(error: EdgeError | null): void {
    this.isSettled = true
    this.error = error
  }

  writeReply(writer: Writer): void {
    const { request, error, result } = this
    if (error !== null) request.writeFailure(writer, error)
    else request.writeSuccess(writer, CODE.sendMessages, { confirmations: result === null ? [] : [result] })
  }
}

/** What is answered without the log, in its turn all the same. */
interface RefusedSlot {
  readonly isSettled: true
  readonly writeReply: Reply
}

export class SendQueue {
  /** Called for each slot that settles, while its append may still be on the stack. */
  readonly onSettled: () => void
  private readonly slots: (SendSlot | RefusedSlot)[] = []

  constructor(onSettled: () => void) {
    this.onSettled = onSettled
  }

  get size(): number {
    return this.slots.length
  }

  open(request: IncomingRequest): SendSlot {
    const slot = new SendSlot(this, request)
    this.slots.push(slot)
    return slot
  }

  /** A refusal behind the replies that are still to come. */
  refuse(writeReply: Reply): void {
    this.slots.push({ isSettled: true, writeReply })
  }

  /** Replies to all settled sends at the front. @returns whether there were any. */
  writeSettled(writer: Writer): boolean {
    let count = 0
    for (const slot of this.slots) {
      if (!slot.isSettled) break
      count++
      slot.writeReply(writer)
    }
    if (count === this.slots.length) this.slots.length = 0
    else this.slots.splice(0, count)
    return count > 0
  }
}

/** @throws {EdgeError} EDGE_COMMAND_MALFORMED and what else its codec finds. */
export function decodeSend(dialect: Dialect, payloadView: Uint8Array) {
  const request = decodeCommand(dialect, CODE.sendMessages, payloadView)
  return request as Extract<typeof request, { code: typeof CODE.sendMessages }>
}
