/**
 * Decides where a partition goes on, from what the upstream's tail proves and what the cursor remembers.
 *
 * The tail wins: it is what the upstream holds. The cursor only tells apart why something is not there: never sent,
 * forgotten by the upstream (sent again while the local log holds it, else told as lost), or taken by the upstream's own retention (not sent
 * again). Pure.
 */
import type { Cursor } from '../ports.ts'
import type { TailVerdict } from './tail.ts'

export interface ReconcileInput {
  readonly verdict: TailVerdict
  readonly cursor: Cursor | undefined
  /** The cursor is of this process: one that was stored may be older than what the upstream forgot and got again since. */
  readonly isCursorFresh: boolean
  /** The one send of ours whose outcome is unknown: it is there as a whole, behind what is confirmed, or not at all. */
  readonly inDoubt: { readonly end: bigint; readonly count: number } | null
  /** Incarnation that new ids carry. */
  readonly incarnation: number
  /** First offset the local log still holds. */
  readonly logStart: bigint
  /** Nothing at or above it can have been sent by us. */
  readonly sendableEnd: bigint
  /** Records given up since the start of this process: not in the upstream, and not to be sent again. */
  readonly isGivenUp: (from: bigint, end: bigint) => boolean
}

export type Finding =
  | { readonly kind: 'agreed' }
  /** Sent before, outcome unknown until now: they are there. */
  | { readonly kind: 'recovered'; readonly from: bigint; readonly end: bigint }
  /** Confirmed once, and no longer there: they are sent again, as far as the local log holds them. */
  | { readonly kind: 'forgotten'; readonly from: bigint; readonly end: bigint }
  /** The upstream's own retention took our newest record. */
  | { readonly kind: 'expired' }
  /** The upstream holds offsets that the local log never had: its data was lost or restored from a backup. */
  | { readonly kind: 'ahead'; readonly from: bigint; readonly end: bigint }
  /** No cursor, and none of ours within the search limit: taken as never sent. */
  | { readonly kind: 'limited' }

export interface Resume {
  readonly nextOffset: bigint
  readonly incarnation: number
  /** To be stored; null when the cursor stands as it is, or there is nothing to remember yet. */
  readonly cursor: Cursor | null
  readonly finding: Finding
}

const AGREED: Finding = { kind: 'agreed' }

export function reconcile(input: ReconcileInput): Resume {
  return input.verdict.kind === 'found' ? resumeAfter(input, input.verdict) : resumeWithout(input, input.verdict)
}

function resumeAfter(input: ReconcileInput, found: Extract<TailVerdict, { kind: 'found' }>): Resume {
  const { cursor, sendableEnd } = input
  const { localOffset, upstreamOffset, incarnation } = found
  if (incarnation < input.incarnation) return resumeAfterOlder(input, found)
  if (localOffset >= sendableEnd) {
    return {
      nextOffset: sendableEnd,
      incarnation: incarnation + 1,
      cursor: { confirmedOffset: sendableEnd - 1n, upstreamOffset, incarnation: incarnation + 1 },
      finding: { kind: 'ahead', from: sendableEnd, end: localOffset + 1n },
    }
  }
  const confirmed = cursor?.confirmedOffset ?? -1n
  const at = (confirmedOffset: bigint, finding: Finding): Resume => ({
    nextOffset: confirmedOffset + 1n,
    incarnation,
    cursor: withIncarnation({ confirmedOffset, upstreamOffset }, incarnation),
    finding,
  })
  if (input.isCursorFresh && isAnotherTopic(input, found)) return resumeFromStart(input, found)
  if (localOffset === confirmed) return at(confirmed, AGREED)
  if (localOffset > confirmed || incarnation > input.incarnation) {
    return at(localOffset, { kind: 'recovered', from: confirmed + 1n, end: localOffset + 1n })
  }
  if (input.isGivenUp(localOffset + 1n, confirmed + 1n)) return at(confirmed, AGREED)
  return at(localOffset, { kind: 'forgotten', from: localOffset + 1n, end: confirmed + 1n })
}

/**
 * What is confirmed lies at its upstream offset or above, and what follows behind it. Found below, the topic is another one of
 * that name, which lacks what came before.
 */
function isAnotherTopic({ cursor, inDoubt }: ReconcileInput, found: Extract<TailVerdict, { kind: 'found' }>): boolean {
  const upstreamOffset = cursor?.upstreamOffset ?? null
  if (cursor === undefined || upstreamOffset === null || found.incarnation !== (cursor.incarnation ?? 0)) return false
  if (found.localOffset === cursor.confirmedOffset) return found.upstreamOffset < upstreamOffset
  // Of what another process sent, which runs on a copy of this store, only the newest record is known.
  const behindCount = found.localOffset + 1n === inDoubt?.end ? BigInt(inDoubt.count) : 1n
  return found.localOffset > cursor.confirmedOffset && found.upstreamOffset < upstreamOffset + behindCount
}

/** All that the log holds, under new ids: what has reached the other topic meanwhile stays there, behind nothing. */
function resumeFromStart(input: ReconcileInput, found: Extract<TailVerdict, { kind: 'found' }>): Resume {
  const { logStart } = input
  const incarnation = found.incarnation + 1
  return {
    nextOffset: logStart,
    incarnation,
    cursor: { confirmedOffset: logStart - 1n, upstreamOffset: null, incarnation },
    finding: { kind: 'forgotten', from: logStart, end: found.localOffset + 1n },
  }
}

/** Nothing of the current incarnation is there: what older ones left says only whether something was forgotten. */
function resumeAfterOlder(input: ReconcileInput, found: Extract<TailVerdict, { kind: 'found' }>): Resume {
  const confirmed = input.cursor?.confirmedOffset ?? -1n
  const nextOffset = confirmed + 1n
  const resume: Resume = { nextOffset, incarnation: input.incarnation, cursor: null, finding: AGREED }
  const known = input.cursor?.upstreamOffset ?? null
  if (known === null || found.upstreamOffset >= known) return resume
  if (found.localOffset >= confirmed) {
    const { upstreamOffset } = found
    return { ...resume, cursor: withIncarnation({ confirmedOffset: confirmed, upstreamOffset }, input.incarnation) }
  }
  const from = found.localOffset + 1n
  const cursor = { confirmedOffset: found.localOffset, upstreamOffset: found.upstreamOffset }
  return {
    ...resume,
    nextOffset: from,
    cursor: withIncarnation(cursor, input.incarnation),
    finding: { kind: 'forgotten', from, end: nextOffset },
  }
}

function resumeWithout(input: ReconcileInput, absent: Extract<TailVerdict, { kind: 'absent' }>): Resume {
  const { cursor, incarnation, logStart } = input
  const resume: Resume = { nextOffset: logStart, incarnation, cursor: null, finding: AGREED }
  if (cursor === undefined || cursor.confirmedOffset < 0n) {
    return absent.isLimited ? { ...resume, finding: { kind: 'limited' } } : resume
  }
  const nextOffset = cursor.confirmedOffset + 1n
  const there: Resume = { ...resume, nextOffset }
  const known = cursor.upstreamOffset
  if (known === null) return there
  const isDropped = nextOffset <= logStart
  // Not ours to send again: our record was there, and everything up to it has gone since.
  if (absent.upstreamStart > known) return isDropped ? there : { ...there, finding: { kind: 'expired' } }
  // What the log holds no more is told as well, as far as the upstream's offsets show it.
  const from = isDropped ? nextOffset - least(nextOffset, known + 1n - absent.upstreamStart) : logStart
  const nowhere = (confirmedOffset: bigint) => withIncarnation({ confirmedOffset, upstreamOffset: null }, incarnation)
  if (input.isGivenUp(from, nextOffset)) return { ...there, cursor: nowhere(cursor.confirmedOffset) }
  const resumeAt = isDropped ? nextOffset : logStart
  return {
    ...resume,
    nextOffset: resumeAt,
    cursor: nowhere(resumeAt - 1n),
    finding: { kind: 'forgotten', from, end: nextOffset },
  }
}

const least = (left: bigint, right: bigint): bigint => (left < right ? left : right)

function withIncarnation(cursor: Cursor, incarnation: number): Cursor {
  return incarnation === 0 ? cursor : { ...cursor, incarnation }
}
