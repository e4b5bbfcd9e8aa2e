/** What the log says of connections that are refused or given up. */
import type { EdgeError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import type { ByteTransport } from './byte-session.ts'
import type { ServerSession } from './server-session.ts'
import { leastFillRate, type Overdue } from './time-limits.ts'

const peerOf = ({ address, kind }: ByteTransport) => ({ peer: address, transport: kind })

export function logRefused(
  logger: Logger,
  transport: ByteTransport,
  { dialect }: ServerSession,
  error: EdgeError,
): void {
  logger.warn('server.connection.refused', {
    ...peerOf(transport),
    dialect,
    error_code: error.code,
    error: error.message,
    first_bytes: String(error.details.firstBytes ?? ''),
  })
}

/** @param overdue what did not come in time. */
export function logGivenUp(
  logger: Logger,
  transport: ByteTransport,
  { heldBytes, announcedBytes }: ServerSession,
  overdue: Exclude<Overdue, 'end' | 'wait'>,
): void {
  const fields = { ...peerOf(transport), size_bytes: heldBytes }
  if (overdue === 'first-request') logger.info('server.connection.silent', fields)
  else if (overdue === 'sign') logger.info('server.connection.stalled', fields)
  else {
    logger.warn('server.connection.too_slow', {
      ...fields,
      expected_bytes: announcedBytes,
      least_bytes_per_second: leastFillRate(announcedBytes),
    })
  }
}
