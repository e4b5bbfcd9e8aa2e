/** What an upstream's refusal means for forwarding. Numbers are Iggy's. Pure. */
import { US_MS } from '../../clock.ts'
import type { EdgeError } from '../../errors.ts'
import { iggyCodeOf } from '../../sdk/index.ts'
import type { FailureKind } from './failure.ts'
import type { LinkFailureKind } from './link.ts'

/** Disconnecting, session trouble: a new connection with a new login is the answer. */
const SESSION = new Set([8, 30, 40, 42, 47, 53, 54, 61, 63, 14003])
const MISSING = new Set([20, 1009, 1010, 2010, 2011, 3007, 3008])
const TOO_LARGE = new Set([4017, 4022, 4023])
const FORBIDDEN = 41
/** The server's own trouble: not committed, not accepted, full, disk, shards. Ranges are inclusive. */
const BUSY: readonly (readonly [number, number])[] = [
  [5, 5],
  [10, 19],
  [57, 59],
  [1000, 1008],
  [2000, 2009],
  [3000, 3006],
  [3009, 3012],
  [4000, 4008],
  [4010, 4016],
  [6000, 7004],
  [9000, 13_000],
]

/** A peer that asks for more is asked again all the same: it may have meant another unit, or have got well since. */
const MAX_RETRY_AFTER_US = 3600 * 1000 * US_MS

/** Statuses of the REST API where no Iggy number says more. */
const HTTP_KINDS: Readonly<Record<number, FailureKind>> = {
  401: 'lost',
  403: 'forbidden',
  404: 'missing',
  408: 'busy',
  413: 'too-large',
  425: 'busy',
  429: 'busy',
}

/** @returns how the forwarder takes an error of a request; what is unknown was refused for its content. */
export function failureKindOf(error: EdgeError): FailureKind {
  if (error.kind === 'upstream' && error.code !== 'EDGE_UPSTREAM_REFUSED') return 'lost'
  if (error.code === 'EDGE_SHUTTING_DOWN' || error.code === 'EDGE_FRAME_INVALID') return 'lost'
  const code = iggyCodeOf(error)
  if (code === undefined) return kindWithoutNumber(error)
  if (SESSION.has(code)) return 'lost'
  if (MISSING.has(code)) return 'missing'
  if (TOO_LARGE.has(code)) return 'too-large'
  if (code === FORBIDDEN) return 'forbidden'
  return BUSY.some(([from, to]) => code >= from && code <= to) ? 'busy' : 'invalid'
}

/** @returns why a link did not come about. */
export function linkFailureKindOf(error: EdgeError): LinkFailureKind {
  const { reason } = error.details
  if (reason === 'clock' || reason === 'certificate') return reason
  const isRefusal = error.kind === 'auth' || error.kind === 'config' || error.code === 'EDGE_VERSION_UNSUPPORTED'
  return isRefusal ? 'refused' : 'unreachable'
}

const NO_ROUTE = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'EADDRNOTAVAIL'])

/** @returns whether nothing answered: the link may be cut where no address of ours tells, and come back at any moment. */
export function isSilence(error: EdgeError): boolean {
  const { reason, systemCode } = error.details
  return error.code === 'EDGE_UPSTREAM_TIMEOUT' || reason === 'name' || NO_ROUTE.has(String(systemCode))
}

/** Errors of the HTTP layer, and those found on our side: encoding, limits, the disk. */
function kindWithoutNumber(error: EdgeError): FailureKind {
  const { httpStatus } = error.details
  if (typeof httpStatus === 'number') return HTTP_KINDS[httpStatus] ?? (httpStatus >= 500 ? 'busy' : 'invalid')
  if (error.code === 'EDGE_FRAME_TOO_LARGE' || error.code === 'EDGE_MESSAGE_TOO_LARGE') return 'too-large'
  if (error.kind === 'invalid') return 'invalid'
  return error.kind === 'auth' ? 'forbidden' : 'busy'
}

/** @returns µs the peer asked us to wait, if it did; no more than is waited for anybody. */
export function retryAfterUsOf(error: EdgeError): number | undefined {
  const { retryAfterMs } = error.details
  return typeof retryAfterMs === 'number' ? Math.min(retryAfterMs * US_MS, MAX_RETRY_AFTER_US) : undefined
}
