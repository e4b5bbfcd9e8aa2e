/**
 * How a request to the upstream went wrong, as far as the forwarder must know it: whether it may have been applied, and
 * who has to change what. Pure.
 */
export type FailureKind =
  | 'lost' // no answer: the link broke or the time was over
  | 'busy' // the peer cannot now; it may or may not have applied it
  | 'too-large' // the peer's limits
  | 'invalid' // the peer names the content as unacceptable
  | 'missing' // stream, topic or partition is not there
  | 'forbidden' // our user may not

/** After these the tail alone tells what became of the request. */
export function isOutcomeUnknown(kind: FailureKind): boolean {
  return kind === 'lost' || kind === 'busy'
}
