/**
 * Decides where a partition goes on, from what the upstream's tail proves and what the cursor remembers.
 *
 * The tail wins: it is what the upstream holds. The cursor only tells apart why something is not there: never sent,
 * forgotten by the upstream (sent again while the local log holds it, else told as lost), or taken by the upstream's own retention (not sent
 * again). Pure.
 */
import type { Cursor } from '../ports.ts'
import type { Alignment } from './alignment.ts'
import type { TailVerdict } from './tail.ts'

export interface ReconcileInput {
  readonly verdict: TailVerdict
  /** The first record that the upstream does not have, where it has others under newer ids of ours. */
  readonly partsAt: bigint | null
  readonly cursor: Cursor | undefined
  /** The cursor is of this process: one that was stored may be older than what the upstream forgot and got again since. */
  readonly isCursorFresh: boolean
  /** The topic has been made anew since our records were compared with it last. */
  readonly isTopicNew: boolean
  readonly alignment: Pick<Alignment, 'end' | 'missingCount'>
  /** Where the last so many records below `end` begin that were not given up. */
  readonly back: (end: bigint, count: bigint) => bigint
  /** The one send of ours whose outcome is unknown: it is there as a whole, behind what is confirmed, or not at all. */
  readonly inDoubt: { readonly end: bigint; readonly count: number } | null
  /** Incarnation that new ids carry. */
  readonly incarnation: number
  /** First offset the local log still holds. */
  readonly logStart: bigint
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
  /** The upstream holds records that the local log never had: its data was lost or restored from a backup. */
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
  const { cursor, partsAt } = input
  const { localOffset, upstreamOffset, incarnation } = found
  if (incarnation < input.incarnation) return resumeAfterOlder(input, found)
  if (partsAt !== null) {
    return {
      nextOffset: partsAt,
      incarnation: incarnation + 1,
      cursor: { confirmedOffset: partsAt - 1n, upstreamOffset, incarnation: incarnation + 1 },
      finding: { kind: 'ahead', from: partsAt, end: localOffset + 1n },
    }
  }
  const confirmed = cursor?.confirmedOffset ?? -1n
  const at = (confirmedOffset: bigint, finding: Finding): Resume => ({
    nextOffset: confirmedOffset + 1n,
    incarnation,
    cursor: withIncarnation({ confirmedOffset, upstreamOffset }, incarnation),
    finding,
  })
  const missingCount = input.isCursorFresh ? missingBefore(input, found) : 0n
  if (missingCount > 0n) return resumeFromMissing(input, found, missingCount)
  if (localOffset === confirmed) return at(confirmed, AGREED)
  if (localOffset > confirmed || incarnation > input.incarnation) {
    return at(localOffset, { kind: 'recovered', from: confirmed + 1n, end: localOffset + 1n })
  }
  if (input.isGivenUp(localOffset + 1n, confirmed + 1n)) return at(confirmed, AGREED)
  return at(localOffset, { kind: 'forgotten', from: localOffset + 1n, end: confirmed + 1n })
}

/**
 * What is confirmed lies at its upstream offset or above, and what follows behind it. Found below, something before it is
 * missing: the upstream confirmed what it did not keep, or forgot it, or the topic is another one of that name.
 *
 * @returns how much, at least.
 */
function missingBefore(input: ReconcileInput, found: Extract<TailVerdict, { kind: 'found' }>): bigint {
  const { cursor, inDoubt, isTopicNew, alignment } = input
  const upstreamOffset = cursor?.upstreamOffset ?? null
  if (cursor === undefined || upstreamOffset === null || found.incarnation !== (cursor.incarnation ?? 0)) return 0n
  const ahead = found.localOffset - cursor.confirmedOffset
  // Where the tail was forgotten, others' messages may lie between: only another topic is known to lack what came before.
  if (ahead < 0n && !isTopicNew) {
    const isAllBehind = input.back(alignment.end, alignment.missingCount) > found.localOffset
    return isAllBehind ? 0n : alignment.missingCount
  }
  // Of what another process sent, which runs on a copy of this store, only the newest record is known.
  const isInDoubt = inDoubt !== null && found.localOffset < inDoubt.end
  const behindCount = ahead <= 0n ? ahead : isInDoubt ? least(ahead, BigInt(inDoubt.count)) : 1n
  const missingCount = upstreamOffset + behindCount - found.upstreamOffset
  return most(missingCount, alignment.missingCount)
}

/**
 * Under new ids, as the order of the old ones says that all before is there: what is missing and what follows it; all that
 * the log holds where the topic is another one. What has reached the upstream meanwhile stays there.
 */
function resumeFromMissing(
  input: ReconcileInput,
  found: Extract<TailVerdict, { kind: 'found' }>,
  missingCount: bigint,
): Resume {
  const { logStart } = input
  const incarnation = found.incarnation + 1
  const foundEnd = found.localOffset + 1n
  const sentEnd = (input.cursor?.confirmedOffset ?? -1n) + 1n
  const from = least(input.isTopicNew ? logStart : input.back(input.alignment.end, missingCount), foundEnd)
  const end = most(foundEnd, sentEnd)
  const nextOffset = least(most(from, logStart), end)
  return {
    nextOffset,
    incarnation,
    cursor: { confirmedOffset: nextOffset - 1n, upstreamOffset: found.upstreamOffset, incarnation },
    finding: { kind: 'forgotten', from, end },
  }
}

/**
 * Nothing of the current incarnation is there, which may have begun below what the older ones left: where that lies tells
 * how much was forgotten, and which of our records it is does not.
 */
function resumeAfterOlder(input: ReconcileInput, found: Extract<TailVerdict, { kind: 'found' }>): Resume {
  const end = (input.cursor?.confirmedOffset ?? -1n) + 1n
  const known = input.cursor?.upstreamOffset ?? null
  if (known === null || found.upstreamOffset >= known) {
    return { nextOffset: end, incarnation: input.incarnation, cursor: null, finding: AGREED }
  }
  const from = input.back(end, known - found.upstreamOffset)
  const nextOffset = least(most(from, input.logStart), end)
  const cursor = { confirmedOffset: nextOffset - 1n, upstreamOffset: found.upstreamOffset }
  return {
    nextOffset,
    incarnation: input.incarnation,
    cursor: withIncarnation(cursor, input.incarnation),
    finding: { kind: 'forgotten', from, end },
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
const most = (left: bigint, right: bigint): bigint => (left > right ? left : right)

/** The first one is not written. */
export function withIncarnation(cursor: Cursor, incarnation: number): Cursor {
  return incarnation === 0 ? cursor : { ...cursor, incarnation }
}
