/**
 * What a VSR reply says beside its payload: which operation it answers, and on which of two channels an error comes.
 *
 * Status (in the head, body empty): decided before anything was carried out. Result section (first in the body): the
 * outcome of an operation that was carried out, `[count:4]` and for each rejection `[index:4][error:4]`; count 0 is success
 * and the payload follows. Which replies have one: `hasResultSection`. Clients take both; old ones know an operation by
 * another number when it was committed: `replyOperationOf`.
 */
import { EdgeError } from '../../../errors.ts'
import { type CommandCode, hasResultSection, OPERATION, operationOf, replyOperationOf } from '../codes.ts'
import { encodeCommand, encodeResponse, type Request, type ResponseBody } from '../commands/index.ts'
import { Reader } from '../reader.ts'
import type { Writer } from '../writer.ts'
import { type VsrReplyHead, type VsrRequestHead, writeReply, writeRequest } from './frame.ts'

/** What a server adds to a reply of a request that changed something. */
export interface Commit {
  /** u128 of the node, not zero. */
  readonly cluster: bigint
  /** Position of the operation in the server's log of changes. */
  readonly op: bigint
  readonly timestampUs: bigint
}

/** Success. `commit` is null for reads; `watermark` is the largest op there is. On a throw the writer is as before. */
export function writeSuccess<C extends CommandCode>(
  writer: Writer,
  request: VsrRequestHead,
  answer: {
    readonly code: C
    readonly body: ResponseBody<C>
    readonly commit: Commit | null
    readonly watermark: bigint
  },
): void {
  const operation = replyOperationOf(request.operation)
  writeReply(writer, replyHead(request, operation, answer.commit, answer.watermark), (body) => {
    if (hasResultSection(operation)) body.u32(0)
    encodeResponse('vsr', answer.code, answer.body, body)
  })
}

/** An error found while carrying out an operation that has a result section; others are denied by status. */
export function writeRejection(
  writer: Writer,
  request: VsrRequestHead,
  rejection: { readonly error: number; readonly commit: Commit | null; readonly watermark: bigint },
): void {
  const operation = replyOperationOf(request.operation)
  if (!hasResultSection(operation)) {
    writeDenial(writer, request, rejection.error, rejection.watermark)
    return
  }
  writeReply(writer, replyHead(request, operation, rejection.commit, rejection.watermark), (body) => {
    body.u32(1)
    body.u32(0)
    body.u32(rejection.error)
  })
}

/** An error in the status, with an empty body: all SDKs take it for any operation. */
export function writeDenial(writer: Writer, request: VsrRequestHead, status: number, watermark: bigint): void {
  const head = replyHead(request, request.operation, null, watermark)
  writeReply(writer, { ...head, op: 0n, status }, () => undefined)
}

/** Reads echo session and release; what was committed names its place instead. */
function replyHead(request: VsrRequestHead, operation: number, commit: Commit | null, watermark: bigint): VsrReplyHead {
  return {
    cluster: commit?.cluster ?? 0n,
    view: 0,
    release: commit === null ? request.release : 0,
    requestChecksum: request.requestChecksum,
    clientId: request.clientId,
    op: commit?.op ?? request.session,
    commit: watermark,
    timestampUs: commit?.timestampUs ?? 0n,
    requestNumber: request.requestNumber,
    operation,
    status: 0,
  }
}

export interface VsrOutcome {
  /** 0 = success, else an Iggy error number, from the status or the result section. */
  readonly error: number
  /** After the result section; aliases the body. */
  readonly payloadView: Uint8Array
}

/** Client side: looks at the status first, then at the result section. @throws EDGE_COMMAND_MALFORMED. */
export function readOutcome(head: VsrReplyHead, bodyView: Uint8Array): VsrOutcome {
  if (head.status !== 0) return { error: head.status, payloadView: bodyView.subarray(bodyView.length) }
  if (!hasResultSection(head.operation)) return { error: 0, payloadView: bodyView }
  const reader = new Reader(bodyView, `result of operation ${head.operation}`)
  const count = reader.u32()
  if (count === 0) return { error: 0, payloadView: reader.restView() }
  reader.u32() // Index: requests carry one operation, so it is 0.
  const error = reader.u32()
  if (error === 0) throw new EdgeError('EDGE_COMMAND_MALFORMED', 'result section: expected an error number, found 0')
  return { error, payloadView: bodyView.subarray(bodyView.length) }
}

/** A connection's own part of a request's head. */
export interface VsrCaller {
  readonly clientId: bigint
  readonly session: bigint
  readonly requestNumber: bigint
}

/** Client side: appends a whole request, unstamped. On a throw the writer is as before. */
export function writeCommand(writer: Writer, caller: VsrCaller, request: Request): void {
  const operation = operationOf(request.code)
  const isRegister = operation === OPERATION.register
  const head = {
    clientId: caller.clientId,
    requestChecksum: 0n,
    requestNumber: isRegister ? 0n : caller.requestNumber,
    operation,
    session: isRegister ? 0n : caller.session,
    code: request.code,
    release: 0,
  }
  writeRequest(writer, head, (body) => encodeCommand('vsr', request, body))
}
