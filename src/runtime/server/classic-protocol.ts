/**
 * The classic generation on one connection: a login binds the connection, replies carry a status. Strictly one reply to
 * one request; after statuses 30 and 100 the connection ends.
 */
import { EdgeError, toEdgeError } from '../../errors.ts'
import {
  decodeRequestFrame,
  writePollReplyFrame,
  writeReplyFrame,
  writeStatusFrame,
} from '../../sdk/wire/classic/frame.ts'
import { CODE, type CommandCode, isCommandCode } from '../../sdk/wire/codes.ts'
import { decodeCommand, type ResponseBody } from '../../sdk/wire/commands/index.ts'
import type { PollMessagesResponse } from '../../sdk/wire/commands/messages.ts'
import type { Writer } from '../../sdk/wire/writer.ts'
import type { Caller, ClientSession } from '../broker/index.ts'
import { dispatch, isHandled } from './dispatch.ts'
import { iggyCodeFor } from './error-map.ts'
import type { CommandContext } from './handlers/handler.ts'
import type { IncomingRequest, Protocol, Reply } from './protocol.ts'
import type { ServerContext } from './server-context.ts'

const MALFORMED = 3
const NO_SESSION = { clientId: 0n, number: 0n }

class ClassicRequest implements IncomingRequest {
  readonly code: number
  readonly payloadView: Uint8Array

  constructor(code: number, payloadView: Uint8Array) {
    this.code = code
    this.payloadView = payloadView
  }

  writeSuccess<C extends CommandCode>(writer: Writer, code: C, body: ResponseBody<C>, leave?: () => void): void {
    if (leave !== undefined && isPolled(code, body)) writePollReplyFrame(writer, body, leave)
    else writeReplyFrame(writer, code, body)
  }

  writeFailure(writer: Writer, error: EdgeError): void {
    writeStatusFrame(writer, iggyCodeFor(error, 'classic'))
  }
}

/** A length below 4 is no command; the eight bytes are consumed and answered. */
const NO_COMMAND = new ClassicRequest(0, new Uint8Array(0))

export class ClassicProtocol implements Protocol {
  readonly dialect = 'classic'
  isOver = false
  private readonly server: ServerContext
  private readonly context: CommandContext
  private isStale = false

  constructor(server: ServerContext, client: ClientSession, caller: Caller) {
    this.server = server
    this.context = { broker: server.broker, dialect: 'classic', caller, client, session: NO_SESSION }
  }

  decode(frameView: Uint8Array): IncomingRequest {
    try {
      const { code, payloadView } = decodeRequestFrame(frameView)
      return new ClassicRequest(code, payloadView)
    } catch {
      return NO_COMMAND
    }
  }

  refusal(request: IncomingRequest): Reply | null {
    if (!isCommandCode('classic', request.code)) return (writer) => writeStatusFrame(writer, MALFORMED)
    if (this.isStale && request.code !== CODE.ping) {
      this.isOver = true
      return failure(request, this.nobody())
    }
    if (request.code === CODE.sendMessages && this.context.caller.userId === null)
      return failure(request, this.nobody())
    return null
  }

  nobody(): EdgeError {
    return this.isStale
      ? new EdgeError('EDGE_SESSION_STALE', 'the session ended: nothing came for too long')
      : new EdgeError('EDGE_UNAUTHENTICATED', 'log in first')
  }

  handle(request: IncomingRequest): Reply | Promise<Reply> {
    try {
      const handled = this.carryOut(request)
      return handled instanceof Promise ? handled.catch((error) => failure(request, error)) : handled
    } catch (error) {
      return failure(request, error)
    }
  }

  evicted(reason: 'stale' | 'user-deleted'): null {
    this.context.caller.userId = null
    // The reason comes as the answer to the next request: an answer without a request would be taken for another's.
    this.isStale = reason === 'stale'
    return null
  }

  private carryOut(request: IncomingRequest): Reply | Promise<Reply> {
    const { code, payloadView } = request
    switch (code) {
      case CODE.loginUser:
        return this.loginUser(request)
      case CODE.loginWithPersonalAccessToken: {
        const { body } = decode(code, payloadView)
        return this.bind(request, code, this.server.broker.authenticateToken(body.token))
      }
      case CODE.logoutUser:
        if (this.context.caller.userId === null) throw new EdgeError('EDGE_UNAUTHENTICATED', 'nobody is logged in')
        this.server.broker.logout(this.context.caller)
        return success(request, code, null)
    }
    if (!isCommandCode('classic', code) || !isHandled(code)) {
      throw new EdgeError('EDGE_COMMAND_UNKNOWN', `command ${code} is not known`)
    }
    const answer = dispatch(this.context, code, payloadView)
    return answer instanceof Promise
      ? answer.then(({ code: of, body }) => success(request, of, body))
      : success(request, answer.code, answer.body)
  }

  private async loginUser(request: IncomingRequest): Promise<Reply> {
    const { body } = decode(CODE.loginUser, request.payloadView)
    const userId = await this.server.broker.authenticate(body.username, body.password)
    return this.bind(request, CODE.loginUser, userId)
  }

  private bind(
    request: IncomingRequest,
    code: typeof CODE.loginUser | typeof CODE.loginWithPersonalAccessToken,
    userId: number,
  ): Reply {
    this.server.broker.login(this.context.caller, userId)
    this.isStale = false
    return success(request, code, { userId })
  }
}

function decode<C extends CommandCode>(code: C, payloadView: Uint8Array) {
  return decodeCommand('classic', code, payloadView) as Extract<ReturnType<typeof decodeCommand>, { code: C }>
}

function success<C extends CommandCode>(request: IncomingRequest, code: C, body: ResponseBody<C>): Reply {
  return (writer, leave) => request.writeSuccess(writer, code, body, leave)
}

function isPolled(code: CommandCode, body: unknown): body is PollMessagesResponse {
  return code === CODE.pollMessages && body !== null
}

function failure(request: IncomingRequest, error: unknown): Reply {
  return (writer) => request.writeFailure(writer, toEdgeError(error))
}
