/** One handler a command: what it gets, what it answers. */
import type { CommandCode } from '../../../sdk/wire/codes.ts'
import type { RequestBody, ResponseBody } from '../../../sdk/wire/commands/index.ts'
import type { Dialect } from '../../../sdk/wire/dialect.ts'
import type { Broker, Caller, ClientSession } from '../../broker/index.ts'

/** Who asks, over which generation. */
export interface CommandContext {
  readonly broker: Broker
  readonly dialect: Dialect
  readonly caller: Caller
  readonly client: ClientSession
  /** VSR: the session that a register bound, 0 before. */
  readonly session: { readonly clientId: bigint; readonly number: bigint }
}

export type Handler<C extends CommandCode> = (
  context: CommandContext,
  body: RequestBody<C>,
) => ResponseBody<C> | Promise<ResponseBody<C>>

export type Handlers = { readonly [C in CommandCode]: Handler<C> }
