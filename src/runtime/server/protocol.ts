/** What a protocol generation is to a connection. Types only. */
import type { EdgeError } from '../../errors.ts'
import type { CODE, CommandCode } from '../../sdk/wire/codes.ts'
import type { ResponseBody } from '../../sdk/wire/commands/index.ts'
import type { Dialect } from '../../sdk/wire/dialect.ts'
import type { Writer } from '../../sdk/wire/writer.ts'

/**
 * Appends one whole reply. On a throw the writer is as it was.
 *
 * @param leave lets go what was appended so far, so that the peer reads it while the rest is made; no throw comes after it.
 *   Without it the reply is there as a whole at the end.
 */
export type Reply = (writer: Writer, leave?: () => void) => void

/** One request, as far as its frame tells, and how it is answered. */
export interface IncomingRequest {
  /** Maybe of no command there is. */
  readonly code: number
  /** Aliases the frame. */
  readonly payloadView: Uint8Array
  writeSuccess<C extends CommandCode>(writer: Writer, code: C, body: ResponseBody<C>, leave?: () => void): void
  writeFailure(writer: Writer, error: EdgeError): void
}

export type SendBody = ResponseBody<typeof CODE.sendMessages>

/** One generation on one connection: its session, its logins, its rules of what may come when. */
export interface Protocol {
  readonly dialect: Dialect
  /** @throws {EdgeError} when nothing can be answered to the frame: close. */
  decode(frameView: Uint8Array): IncomingRequest
  /** @returns how to refuse the request before it is looked at any further; null when it may go on. */
  refusal(request: IncomingRequest): Reply | null
  /** Why a client that is not logged in is none, or none any more. */
  nobody(): EdgeError
  /** Carries out any command but a send. Errors become replies. */
  handle(request: IncomingRequest): Reply | Promise<Reply>
  /** The broker ended the session. @returns what to tell the peer now, null for nothing. */
  evicted(reason: 'stale' | 'user-deleted'): Reply | null
  /** The last reply was the last: close when it has gone out. */
  readonly isOver: boolean
}
