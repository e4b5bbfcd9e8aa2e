import type { Clock } from '../../clock.ts'
import type { RequestOptions } from '../client/connection.ts'
import type { CommandCode } from '../wire/codes.ts'
import type { RequestBody, ResponseBody } from '../wire/commands/index.ts'
import type { Dialect } from '../wire/dialect.ts'

/** What the parts of the client's interface stand on: one request, one answer. */
export interface Requester {
  readonly clock: Clock
  /** Known once connected. */
  readonly dialect: Dialect | null
  request<C extends CommandCode>(code: C, body: RequestBody<C>, options?: RequestOptions): Promise<ResponseBody<C>>
}
