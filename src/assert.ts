/**
 * Asserts an invariant of our own code; stays on in production. A failure is a bug, never bad input: bytes from a peer or
 * a disk are checked and answered with an `EdgeError` instead.
 *
 * @param invariant named as it stands in the docs, with the values that break it.
 */
export function assert(isTrue: boolean, invariant: string): asserts isTrue {
  if (!isTrue) throw new AssertionFailure(invariant)
}

/** Ends the process at the top level: the supervisor restarts it into a state that recovery has checked. */
export class AssertionFailure extends Error {
  override readonly name = 'AssertionFailure'
}
