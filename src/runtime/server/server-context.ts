/** What all connections of a server share. */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log/index.ts'
import type { Logger } from '../../logger.ts'
import type { Broker } from '../broker/index.ts'
import { CommitLog } from './commit-log.ts'
import type { ConnectionLimits } from './defaults.ts'
import { ReplyOutput } from './reply-output.ts'
import { RequestBudget } from './request-budget.ts'
import { LogRoom } from './waiters.ts'

export interface ServerContext {
  readonly broker: Broker
  readonly log: Log
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: ConnectionLimits
  readonly budget: RequestBudget
  readonly room: LogRoom
  readonly commits: CommitLog
  /** Such as "0.9.0": what a register reply names. */
  readonly serverVersion: string
  /** One for all connections: whoever writes takes the bytes out before it gives up the thread. */
  readonly output: ReplyOutput
}

export interface ServerContextOptions {
  readonly broker: Broker
  readonly log: Log
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: ConnectionLimits
  readonly maxInFlightBytes: number
  readonly serverVersion: string
}

export function createServerContext(options: ServerContextOptions): ServerContext {
  const { maxInFlightBytes, ...rest } = options
  return {
    ...rest,
    budget: new RequestBudget(maxInFlightBytes),
    room: new LogRoom(options.log),
    commits: new CommitLog(options.log.storeId, options.clock),
    output: new ReplyOutput(),
  }
}
