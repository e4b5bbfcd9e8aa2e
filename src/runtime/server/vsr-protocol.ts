/**
 * The VSR generation on one connection: a register binds a session, requests carry numbers, replies a place in the log of
 * changes. Where the real server drops a request in silence, and its client waits thirty seconds, an error is answered.
 */
import { AssertionFailure } from '../../assert.ts'
import { EdgeError, type ErrorCode, toEdgeError } from '../../errors.ts'
import {
  CODE,
  type CommandCode,
  EVICTION,
  type EvictionReason,
  isCommandCode,
  OPERATION,
} from '../../sdk/wire/codes.ts'
import { decodeCommand, type ResponseBody } from '../../sdk/wire/commands/index.ts'
import { isVersionAccepted, PROTOCOL_VERSION } from '../../sdk/wire/dialect.ts'
import { Reader } from '../../sdk/wire/reader.ts'
import { draftOf } from '../../sdk/wire/vsr/draft.ts'
import {
  bodyOf,
  checkRequest,
  decodeRequestHead,
  type VsrRequestHead,
  writeEviction,
} from '../../sdk/wire/vsr/frame.ts'
import { type Commit, writeDenial, writeRejection, writeSuccess } from '../../sdk/wire/vsr/reply.ts'
import type { Writer } from '../../sdk/wire/writer.ts'
import type { Caller, ClientSession } from '../broker/index.ts'
import type { CommitLog } from './commit-log.ts'
import { dispatch, isHandled } from './dispatch.ts'
import type { CommandContext } from './handlers/handler.ts'
import { emptyPoll } from './handlers/messages.ts'
import type { IncomingRequest, Protocol, Reply } from './protocol.ts'
import { ReplayTable } from './replay-table.ts'
import type { ServerContext } from './server-context.ts'
import { isDeniedEarly, vsrCodeOf } from './vsr-errors.ts'

/** Surely not applied: the client repeats the very same frame. */
const TRANSIENT_NOT_ACCEPTED = 58
const REQUEST_ALREADY_APPLIED = 59

class VsrRequest implements IncomingRequest {
  readonly head: VsrRequestHead
  readonly payloadView: Uint8Array
  /** Its answer asks for it to come again. */
  mayComeAgain = false
  private readonly commits: CommitLog

  constructor(head: VsrRequestHead, payloadView: Uint8Array, commits: CommitLog) {
    this.head = head
    this.payloadView = payloadView
    this.commits = commits
  }

  get code(): number {
    return this.head.code
  }

  /** Whether it changes metadata: those are the ones that are replayed, and rejected in the result section. */
  get isMetadata(): boolean {
    const { operation } = this.head
    return operation >= OPERATION.createStream && operation <= OPERATION.leaveConsumerGroup
  }

  get isReplicated(): boolean {
    return this.head.operation !== OPERATION.nonReplicated
  }

  writeSuccess<C extends CommandCode>(writer: Writer, code: C, body: ResponseBody<C>): void {
    const { operation } = this.head
    const isCommit = this.isReplicated && operation !== OPERATION.register && operation !== OPERATION.logout
    const commit = isCommit ? this.commits.next() : null
    writeSuccess(writer, this.head, { code, body, commit, watermark: this.commits.watermark })
  }

  writeFailure(writer: Writer, error: EdgeError): void {
    const code = vsrCodeOf(error, this.head.code)
    this.mayComeAgain = code === TRANSIENT_NOT_ACCEPTED
    if (this.isMetadata && !isDeniedEarly(code)) this.writeRejection(writer, code, this.commits.next())
    else writeDenial(writer, this.head, code, this.commits.watermark)
  }

  writeRejection(writer: Writer, code: number, commit: Commit | null): void {
    writeRejection(writer, this.head, { error: code, commit, watermark: this.commits.watermark })
  }
}

export class VsrProtocol implements Protocol {
  readonly dialect = 'vsr'
  readonly isOver = false
  private readonly server: ServerContext
  private readonly caller: Caller
  private readonly client: ClientSession
  private session = { clientId: 0n, number: 0n }
  private readonly replays = new ReplayTable()

  constructor(server: ServerContext, client: ClientSession, caller: Caller) {
    this.server = server
    this.client = client
    this.caller = caller
  }

  decode(frameView: Uint8Array): IncomingRequest {
    return new VsrRequest(decodeRequestHead(frameView), bodyOf(frameView), this.server.commits)
  }

  refusal(incoming: IncomingRequest): Reply | null {
    const request = asVsr(incoming)
    const { head } = request
    try {
      checkRequest(head, request.payloadView)
    } catch (error) {
      const { code } = toEdgeError(error)
      // A wrong checksum is a format error in every generation of this dialect; the rest is no command.
      const status = code === 'EDGE_FORMAT_INVALID' ? 4 : 3
      return (writer) => writeDenial(writer, head, status, this.server.commits.watermark)
    }
    if (this.isBound || head.operation === OPERATION.register || head.operation === OPERATION.logout) return null
    if (request.isReplicated) return eviction(head, EVICTION.noSession)
    if (request.code === CODE.loginUser || request.code === CODE.loginWithPersonalAccessToken) {
      return eviction(head, EVICTION.malformedLogin)
    }
    if (request.code === CODE.ping) return null
    return failure(request, this.nobody())
  }

  nobody(): EdgeError {
    return new EdgeError('EDGE_UNAUTHENTICATED', 'register first')
  }

  handle(incoming: IncomingRequest): Reply | Promise<Reply> {
    const request = asVsr(incoming)
    const { operation } = request.head
    if (operation === OPERATION.register) return this.register(request)
    if (operation === OPERATION.logout) return this.logout(request)
    if (!request.isMetadata) return this.carryOut(request)
    const replay = this.replays.find(request.head)
    if (replay === 'applied') {
      const watermark = this.server.commits.watermark
      return (writer) =>
        writeRejection(writer, request.head, { error: REQUEST_ALREADY_APPLIED, commit: null, watermark })
    }
    if (replay !== undefined) return (writer) => writer.bytes(replay)
    const reply = this.carryOut(request)
    return reply instanceof Promise
      ? reply.then((each) => this.remembered(request, each))
      : this.remembered(request, reply)
  }

  evicted(reason: 'stale' | 'user-deleted'): Reply | null {
    const { clientId } = this.session
    this.unbind()
    // A deleted user's next request says it; a silent member would not send one until it is told.
    return reason === 'stale' ? evictionOf(clientId, EVICTION.staleClient) : null
  }

  private get isBound(): boolean {
    return this.session.number !== 0n && this.caller.userId !== null
  }

  private carryOut(request: VsrRequest): Reply | Promise<Reply> {
    try {
      const { code, payloadView } = request
      if (!isCommandCode('vsr', code) || !isHandled(code)) {
        throw new EdgeError('EDGE_COMMAND_UNKNOWN', `command ${code} is not known`)
      }
      const answer = dispatch(this.context(), code, payloadView)
      if (!(answer instanceof Promise)) return success(request, answer.code, answer.body)
      return answer.then(
        ({ code: of, body }) => success(request, of, body),
        (error) => failure(request, error),
      )
    } catch (error) {
      return failure(request, error)
    }
  }

  private context(): CommandContext {
    return {
      broker: this.server.broker,
      dialect: 'vsr',
      caller: this.caller,
      client: this.client,
      session: this.session,
    }
  }

  /**
   * Keeps the reply to answer the same request with, unless that is to be carried out when it comes again; a token is shown
   * only once, so its reply is not kept.
   */
  private remembered(request: VsrRequest, reply: Reply): Reply {
    if (request.code === CODE.createPersonalAccessToken) return reply
    return (writer) => {
      const at = writer.length
      reply(writer)
      if (!request.mayComeAgain) this.replays.put(request.head, writer.bufferView.subarray(at, writer.length))
    }
  }

  private register(request: VsrRequest): Reply | Promise<Reply> {
    // A client that registers again on a bound connection gets its session again, as from the real server.
    if (this.isBound && this.caller.userId !== null) return this.registered(request, this.caller.userId)
    const version = readVersion(request.payloadView)
    if (version === undefined) return eviction(request.head, EVICTION.malformedLogin)
    const draft = draftOf(request.head.session, version)
    if (!isVersionAccepted(version.protocolVersion) || draft !== 'V5') {
      return evictionOf(request.head.clientId, EVICTION.incompatibleProtocol, PROTOCOL_VERSION)
    }
    return this.authenticate(request)
  }

  private async authenticate(request: VsrRequest): Promise<Reply> {
    const { broker } = this.server
    try {
      const { credentials } = decodeLogin(request.payloadView)
      const userId =
        credentials.kind === 'token'
          ? broker.authenticateToken(credentials.token)
          : await broker.authenticate(credentials.username, credentials.password)
      broker.login(this.caller, userId)
      this.session = { clientId: request.head.clientId, number: this.server.commits.next().op }
      this.replays.clear()
      return this.registered(request, userId)
    } catch (error) {
      const reason = REFUSED_LOGINS[toEdgeError(error).code]
      return reason === undefined ? failedRegister(request, error) : eviction(request.head, reason)
    }
  }

  private registered(request: VsrRequest, userId: number): Reply {
    return success(request, CODE.loginRegister, {
      userId,
      session: this.session.number,
      protocolVersion: PROTOCOL_VERSION,
      serverVersion: this.server.serverVersion,
    })
  }

  private logout(request: VsrRequest): Reply {
    if (this.isBound) this.server.broker.logout(this.caller)
    this.unbind()
    return success(request, CODE.logoutUser, null)
  }

  private unbind(): void {
    this.caller.userId = null
    this.session = { clientId: 0n, number: 0n }
    this.replays.clear()
  }
}

/** Why a login failed, as an eviction says it. A password is told from a token by the body alone. */
const REFUSED_LOGINS: Partial<Record<ErrorCode, EvictionReason>> = {
  EDGE_CREDENTIALS_INVALID: EVICTION.invalidCredentials,
  EDGE_USERNAME_INVALID: EVICTION.invalidCredentials,
  EDGE_PASSWORD_INVALID: EVICTION.invalidCredentials,
  EDGE_USER_INACTIVE: EVICTION.invalidCredentials,
  EDGE_TOKEN_INVALID: EVICTION.invalidToken,
  EDGE_TOKEN_EXPIRED: EVICTION.invalidToken,
  EDGE_COMMAND_MALFORMED: EVICTION.malformedLogin,
  EDGE_FORMAT_INVALID: EVICTION.malformedLogin,
}

/** The client repeats the same frame on this. */
function failedRegister(request: VsrRequest, error: unknown): Reply {
  return (writer) => request.writeRejection(writer, vsrCodeOf(toEdgeError(error), request.code), null)
}

/** Version and SDK come first in every draft, whatever follows. @returns undefined when they cannot be read. */
function readVersion(payloadView: Uint8Array) {
  try {
    const reader = new Reader(payloadView, 'register request')
    return { protocolVersion: reader.u32(), sdkName: reader.name(), sdkVersion: reader.name() }
  } catch {
    return undefined
  }
}

function decodeLogin(payloadView: Uint8Array) {
  const request = decodeCommand('vsr', CODE.loginRegister, payloadView)
  return (request as Extract<typeof request, { code: typeof CODE.loginRegister }>).body
}

function eviction(head: VsrRequestHead, reason: EvictionReason): Reply {
  return evictionOf(head.clientId, reason)
}

/** @param version the one we speak, where that is the reason. */
function evictionOf(clientId: bigint, reason: EvictionReason, version = 0): Reply {
  const frame = { cluster: 0n, clientId, reason, newestVersion: version, oldestVersion: version }
  return (writer) => writeEviction(writer, frame)
}

function success<C extends CommandCode>(request: VsrRequest, code: C, body: ResponseBody<C>): Reply {
  return (writer) => request.writeSuccess(writer, code, body)
}

/** A poll that cannot be read is answered like one that found nothing: its reply must always have a head. */
function failure(request: VsrRequest, cause: unknown): Reply {
  const error = toEdgeError(cause)
  const isMalformed = error.code === 'EDGE_COMMAND_MALFORMED' || error.code === 'EDGE_FORMAT_INVALID'
  const isPoll = request.code === CODE.pollMessages || request.code === CODE.pollMessagesOnPrimary
  if (isPoll && isMalformed) return success(request, CODE.pollMessages, emptyPoll(0))
  return (writer) => request.writeFailure(writer, error)
}

function asVsr(request: IncomingRequest): VsrRequest {
  if (request instanceof VsrRequest) return request
  throw new AssertionFailure('a vsr connection handles vsr requests')
}
