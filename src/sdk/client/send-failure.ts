/** What becomes of a batch that the server did not take. Pure. */
import type { EdgeError } from '../../errors.ts'
import { iggyCodeOf } from './server-error.ts'

export type SendSequel =
  | 'again' // the same, after a pause
  | 'split' // half of it at once: one message is enough to have a batch refused
  | 'refused' // its one message is done with
  | 'held' // the spool keeps it: callers are told, and a part is tried after a pause
  | 'given-up' // its messages are done with

export interface FailedSend {
  readonly error: EdgeError
  /** Whether it came to be sent at all. */
  readonly isPacked: boolean
  readonly count: number
  /** Attempts before this one. */
  readonly attempt: number
  readonly retries: number | null
  readonly hasSpool: boolean
}

/** What Iggy's servers find wrong with messages themselves; inclusive. A key's length (4028) is the sender's choice for all. */
const CONTENT_NUMBERS: readonly (readonly [number, number])[] = [
  [4017, 4027],
  [4030, 4040],
]

export function sequelOf({ error, isPacked, count, attempt, retries, hasSpool }: FailedSend): SendSequel {
  if (!isPacked || isAboutContent(error)) return count > 1 ? 'split' : 'refused'
  if (error.isRetryable && (retries === null || attempt < retries)) return 'again'
  return hasSpool ? 'held' : 'given-up'
}

/** No other time, right or topic would help. What may mean something else as well does not count. */
function isAboutContent(error: EdgeError): boolean {
  const number = iggyCodeOf(error) ?? 0
  return CONTENT_NUMBERS.some(([from, to]) => number >= from && number <= to)
}
