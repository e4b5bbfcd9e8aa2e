/** From command code to handler: one table for both generations; which code exists where is the wire's business. */
import { EdgeError } from '../../errors.ts'
import { CODE, type CommandCode } from '../../sdk/wire/codes.ts'
import { decodeCommand, type RequestBody, type ResponseBody } from '../../sdk/wire/commands/index.ts'
import { GROUP_HANDLERS } from './handlers/groups.ts'
import type { CommandContext, Handlers } from './handlers/handler.ts'
import { MESSAGE_HANDLERS } from './handlers/messages.ts'
import { OFFSET_HANDLERS } from './handlers/offsets.ts'
import { STREAM_HANDLERS } from './handlers/streams.ts'
import { SYSTEM_HANDLERS } from './handlers/system.ts'
import { TOPIC_HANDLERS } from './handlers/topics.ts'
import { USER_HANDLERS } from './handlers/users.ts'

/** Commands the connection itself carries out: they change who it is, or are answered by a receipt. */
export type ConnectionCode =
  | typeof CODE.loginUser
  | typeof CODE.loginWithPersonalAccessToken
  | typeof CODE.loginRegister
  | typeof CODE.logoutUser
  | typeof CODE.sendMessages

export type HandledCode = Exclude<CommandCode, ConnectionCode>

const HANDLERS: Pick<Handlers, HandledCode> = {
  ...SYSTEM_HANDLERS,
  ...USER_HANDLERS,
  ...STREAM_HANDLERS,
  ...TOPIC_HANDLERS,
  ...MESSAGE_HANDLERS,
  ...OFFSET_HANDLERS,
  ...GROUP_HANDLERS,
}

/** What a handled command answers, with the code that says how to encode it. */
export type Answer = { readonly [C in HandledCode]: { readonly code: C; readonly body: ResponseBody<C> } }[HandledCode]

/**
 * Decodes a request and carries it out.
 *
 * @throws {EdgeError} what decoding and the broker throw, EDGE_UNAUTHENTICATED before login.
 */
export function dispatch(
  context: CommandContext,
  code: HandledCode,
  payloadView: Uint8Array,
): Answer | Promise<Answer> {
  if (context.caller.userId === null && code !== CODE.ping) throw new EdgeError('EDGE_UNAUTHENTICATED', 'log in first')
  const { body } = decodeCommand(context.dialect, code, payloadView)
  return run(context, code, body as RequestBody<typeof code>)
}

function run<C extends HandledCode>(context: CommandContext, code: C, body: RequestBody<C>): Answer | Promise<Answer> {
  const answered = HANDLERS[code](context, body)
  const answerOf = (response: ResponseBody<C>) => ({ code, body: response }) as Answer
  return answered instanceof Promise ? answered.then(answerOf) : answerOf(answered)
}

export function isHandled(code: CommandCode): code is HandledCode {
  return code in HANDLERS
}
