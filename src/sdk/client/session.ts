/**
 * One connection's protocol, as bytes in and bytes out: encodes requests, cuts answers into frames, matches and decodes
 * them. Knows no socket, clock or chance; the generation is settled before it begins. Pure.
 */
import { EdgeError, toEdgeError } from '../../errors.ts'
import { classicReplyShape, decodeReplyFrame, writeRequestFrame } from '../wire/classic/frame.ts'
import { CODE, type CommandCode, commandName, OPERATION, operationOf, replyOperationOf } from '../wire/codes.ts'
import { decodeResponse, type Request, type ResponseBody } from '../wire/commands/index.ts'
import type { Dialect } from '../wire/dialect.ts'
import { FrameAssembler } from '../wire/frame-assembler.ts'
import { bodyOf, decodeEviction, decodeReplyHead, isEviction, vsrFrameShape } from '../wire/vsr/frame.ts'
import { readOutcome, writeCommand } from '../wire/vsr/reply.ts'
import { Writer } from '../wire/writer.ts'
import { type PendingRequest, RequestTable } from './request-table.ts'
import { errorOfEviction, errorOfStatus } from './server-error.ts'

/** What became of a request. */
export type Completion =
  | { readonly id: number; readonly code: CommandCode; readonly body: ResponseBody<CommandCode> }
  | { readonly id: number; readonly code: CommandCode; readonly error: EdgeError }

export interface EncodedRequest {
  readonly id: number
  /** Goes on the wire as it is; owned by the caller. */
  readonly bytes: Uint8Array
  /** Name it in a repeat of the same request, so that the server recognises it. */
  readonly requestNumber: bigint
}

export class Session {
  readonly dialect: Dialect
  readonly #clientId: bigint
  readonly #assembler: FrameAssembler
  readonly #writer = new Writer()
  readonly table = new RequestTable()
  #nextId = 1
  #session = 0n
  #lastNumber = 0n
  #endedBy: EdgeError | null = null

  /** @param clientId random u128, not zero; of use in VSR only. */
  constructor(dialect: Dialect, clientId: bigint) {
    this.dialect = dialect
    this.#clientId = clientId
    this.#assembler = new FrameAssembler(dialect === 'classic' ? classicReplyShape : vsrFrameShape)
  }

  /** Why the server ended the session; the connection is of no use then. */
  get endedBy(): EdgeError | null {
    return this.#endedBy
  }

  /**
   * Encodes at once, so views in the request may be reused after.
   *
   * @throws {EdgeError} what the codec throws for values that cannot be encoded; nothing waits then.
   */
  request(request: Request, deadlineUs: number, repeatOf?: bigint): EncodedRequest {
    const requestNumber = repeatOf ?? this.#numberFor(request.code)
    const { clientId, session } = { clientId: this.#clientId, session: this.#session }
    this.#writer.reset()
    if (this.dialect === 'classic') writeRequestFrame(this.#writer, request)
    else writeCommand(this.#writer, { clientId, session, requestNumber }, request)
    const operation = this.dialect === 'classic' ? 0 : operationOf(request.code)
    const id = this.#nextId
    this.#nextId += 1
    this.table.add({ id, code: request.code, operation, requestNumber, deadlineUs })
    const bytes = this.#writer.toBytes()
    this.#writer.reset()
    return { id, bytes, requestNumber }
  }

  /** @throws {EdgeError} when framing is lost: give up the connection. */
  received(chunkView: Uint8Array): Completion[] {
    const completions: Completion[] = []
    this.#assembler.push(chunkView)
    for (let frame = this.#assembler.next(); frame !== undefined; frame = this.#assembler.next()) {
      const completion = this.dialect === 'classic' ? this.#classicReply(frame) : this.#vsrFrame(frame)
      if (completion !== null) completions.push(completion)
    }
    return completions
  }

  /** The connection is gone. @returns what will never be answered. */
  lost(error: EdgeError): Completion[] {
    return this.table.clear().map(({ id, code }) => ({ id, code, error }))
  }

  #numberFor(code: CommandCode): bigint {
    if (this.dialect === 'classic') return 0n
    const operation = operationOf(code)
    if (operation === OPERATION.register) return 0n
    // Reads carry the current number without using it up.
    if (operation !== OPERATION.nonReplicated) this.#lastNumber += 1n
    return this.#lastNumber
  }

  #classicReply(frameView: Uint8Array): Completion | null {
    const { status, payloadView } = decodeReplyFrame(frameView)
    const pending = this.table.take(() => true)
    if (pending === undefined) {
      // Said without being asked when the server stops.
      this.#endedBy ??= errorOfStatus(status === 0 ? 8 : status, 'the server ends the connection')
      return null
    }
    if (status !== 0) return failed(pending, errorOfStatus(status, commandName(pending.code)))
    return this.#decoded(pending, payloadView)
  }

  #vsrFrame(frameView: Uint8Array): Completion | null {
    if (isEviction(frameView)) {
      const error = errorOfEviction(decodeEviction(frameView))
      this.#endedBy ??= error
      const pending = this.table.take(() => true)
      return pending === undefined ? null : failed(pending, error)
    }
    const head = decodeReplyHead(frameView)
    const pending = this.table.take(
      ({ operation, requestNumber }) =>
        requestNumber === head.requestNumber &&
        (operation === head.operation || replyOperationOf(operation) === head.operation),
    )
    // An answer to a request that was given up, or to none: nobody waits for it.
    if (pending === undefined) return null
    try {
      const outcome = readOutcome(head, bodyOf(frameView))
      if (outcome.error !== 0) return failed(pending, errorOfStatus(outcome.error, commandName(pending.code)))
      return this.#decoded(pending, outcome.payloadView)
    } catch (error) {
      return failed(pending, toEdgeError(error))
    }
  }

  #decoded(pending: PendingRequest, payloadView: Uint8Array): Completion {
    try {
      // Polled batches are copied by their decoder; everything else may alias the chunk.
      const payload = pending.code === CODE.pollMessages ? payloadView : new Uint8Array(payloadView)
      const body = decodeResponse(this.dialect, pending.code, payload)
      if (pending.code === CODE.loginRegister) this.#registered(body as ResponseBody<typeof CODE.loginRegister>)
      return { id: pending.id, code: pending.code, body }
    } catch (error) {
      return failed(pending, toEdgeError(error))
    }
  }

  #registered(body: ResponseBody<typeof CODE.loginRegister>): void {
    if (body.session === 0n) throw new EdgeError('EDGE_FRAME_INVALID', 'register: expected a session above 0, found 0')
    this.#session = body.session
    this.#lastNumber = 0n
  }
}

function failed(pending: PendingRequest, error: EdgeError): Completion {
  return { id: pending.id, code: pending.code, error }
}
