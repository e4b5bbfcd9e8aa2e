/**
 * Where the journal ends: which of the groups found in its files count, and which are stale, replaced or torn.
 *
 * Relies on: every group given here belongs to its file (magic, salted CRC, generation, position). Decides by sequence
 * numbers, sessions and what groups say about each other; never by what could merely be read, since a torn write of an
 * earlier crash reads as well as an acked one. Never touches a disk.
 *
 * - A *session* is one open of the log, or what follows a failed sync. It is *confirmed* when its first group is whole, or
 *   one of its groups says that the first one had been synced, or a confirmed session names it as parent. A confirmed
 *   session replaces all groups of older ones from its first sequence on, however whole they are. Why not any session: its
 *   first group holds again what was unproven before; if that one never reached the disk, the older ones still count.
 * - `proof` is the highest sequence that a living group knows as synced. At or below it a group that is not whole is
 *   damage; above it, it is the torn tail and ends the log.
 */
import { alignUp } from './byte-area.ts'
import { FIRST_GROUP_AT, GROUP_ALIGNMENT, GROUP_HEADER_SIZE, type GroupHeader, PAGE_SIZE } from './journal-format.ts'

export interface FoundGroup {
  readonly header: GroupHeader
  /** The body's CRC fits. */
  readonly isWhole: boolean
}

export interface FoundFile {
  readonly id: number
  readonly generation: number
  /** By position, ascending. */
  readonly groups: readonly FoundGroup[]
  /** Bytes that the device does not give. */
  readonly refused: readonly ByteRange[]
}

export interface ByteRange {
  readonly from: number
  /** Exclusive. */
  readonly end: number
}

export interface ChainLink extends FoundGroup {
  readonly fileId: number
}

/** Bytes below the proof in which no group is readable. */
export interface ChainGap {
  readonly fileId: number
  readonly from: number
  readonly end: number
}

export interface HiddenEnd {
  readonly fileId: number
  readonly from: number
}

export interface JournalScan {
  /** The groups that count, in order. Those at or below `proof` may be damaged. */
  readonly chain: readonly ChainLink[]
  readonly gaps: readonly ChainGap[]
  /** Where one more group would begin behind the last one, and the device does not give it: it may have been acked. */
  readonly hidden: readonly HiddenEnd[]
  readonly proof: number
  /** Files with groups that no group proves: they must be kept until those have been written again and synced. */
  readonly unprovenFileIds: ReadonlySet<number>
  readonly nextOrdinal: number
  /** Which machine starts wrote what was found, replaced groups included. */
  readonly boots: readonly { readonly boot: number; readonly bootHash: number }[]
}

/** Rules that a test can leave out, to see that the simulation notices. */
export interface ScanRules {
  readonly isChainIgnored?: boolean
  readonly isSessionOrderIgnored?: boolean
  readonly isAnyHeirTaken?: boolean
}

export function scanJournal(files: readonly FoundFile[], rules: ScanRules = {}): JournalScan {
  const inOrder = [...files].sort((a, b) => a.generation - b.generation)
  const all = inOrder.flatMap((file) => file.groups)
  const heirs = confirmedGroups(all, rules)
  const isReplaced = (group: FoundGroup): boolean =>
    heirs.some((heir) => heir.ordinal > group.header.ordinal && heir.sessionFirst <= group.header.sequence)
  const living = inOrder.map((file) => ({
    ...file,
    groups: rules.isSessionOrderIgnored ? file.groups : file.groups.filter((group) => !isReplaced(group)),
  }))
  const proof = highestDurable(living.flatMap((file) => file.groups))
  // Replaced groups count here: their file is needed until the session that replaced them is known to be synced.
  const provenByAny = highestDurable(all)
  const unproven = inOrder.filter((file) => file.groups.some((group) => isUnproven(group, provenByAny)))
  return {
    ...followChain(living, proof, rules),
    proof,
    unprovenFileIds: new Set(unproven.map((file) => file.id)),
    nextOrdinal: 1 + all.reduce((highest, group) => Math.max(highest, group.header.ordinal), 0),
    boots: all.map(({ header: { boot, bootHash } }) => ({ boot, bootHash })),
  }
}

/** A group without batches, such as that of a clean stop, needs no proof. */
const isUnproven = ({ header }: FoundGroup, proof: number): boolean => header.sequence > proof && header.batchCount > 0

const highestDurable = (groups: readonly FoundGroup[]): number =>
  groups.reduce((highest, group) => Math.max(highest, group.header.durableSequence), 0)

/** One entry per confirmed session: its ordinal and first sequence. */
function confirmedGroups(all: readonly FoundGroup[], rules: ScanRules): { ordinal: number; sessionFirst: number }[] {
  const sessions = new Map<number, { parent: number; sessionFirst: number; isConfirmed: boolean }>()
  for (const { header, isWhole } of all) {
    const session = sessions.get(header.ordinal) ?? {
      parent: header.parent,
      sessionFirst: header.sessionFirst,
      isConfirmed: rules.isAnyHeirTaken === true,
    }
    const isWholeFirst = isWhole && header.sequence === header.sessionFirst
    if (isWholeFirst || header.durableSequence >= header.sessionFirst) session.isConfirmed = true
    sessions.set(header.ordinal, session)
  }
  const newestFirst = [...sessions].sort(([a], [b]) => b - a)
  for (const [, session] of newestFirst) {
    const parent = sessions.get(session.parent)
    if (session.isConfirmed && parent !== undefined) parent.isConfirmed = true
  }
  return newestFirst
    .filter(([, session]) => session.isConfirmed)
    .map(([ordinal, { sessionFirst }]) => ({ ordinal, sessionFirst }))
}

function followChain(
  files: readonly FoundFile[],
  proof: number,
  rules: ScanRules,
): Pick<JournalScan, 'chain' | 'gaps' | 'hidden'> {
  const chain: ChainLink[] = []
  const gaps: ChainGap[] = []
  let hidden: HiddenEnd[] = []
  const isGood = (group: FoundGroup): boolean => group.isWhole || group.header.sequence <= proof
  let last: FoundGroup | undefined
  for (const file of files) {
    const good = file.groups.filter(isGood)
    // A file of 8 MiB may have sixteen thousand: none is looked for by going through all of them.
    const byPosition = new Map(good.map((group) => [group.header.position, group]))
    let position = FIRST_GROUP_AT
    for (;;) {
      const after = last
      const fitting = nextPlaces(position).flatMap((place) => byPosition.get(place) ?? [])
      let next = newest(fitting.filter((group) => rules.isChainIgnored || continues(after, group)))
      if (next === undefined && (last?.header.sequence ?? 0) < proof) {
        next = nextBelowProof(good, position, last?.header.sequence ?? 0, proof)
        if (next !== undefined) gaps.push({ fileId: file.id, from: position, end: next.header.position })
      }
      if (next === undefined) {
        if (isHidden(file, position)) hidden.push({ fileId: file.id, from: position })
        break
      }
      hidden = []
      chain.push({ ...next, fileId: file.id })
      last = next
      position = next.header.position + next.header.length
    }
  }
  return { chain, gaps, hidden }
}

/** Whether what stands where the next group may begin, its header or a part of its body, is not given. */
function isHidden({ groups, refused }: FoundFile, position: number): boolean {
  return nextPlaces(position).some((from) => {
    const length = groups.find(({ header }) => header.position === from)?.header.length ?? GROUP_HEADER_SIZE
    return refused.some((range) => range.from < from + length && from < range.end)
  })
}

/** A group starts at the next 512 bytes, or at the next page when a sync had started. */
const nextPlaces = (position: number): readonly number[] => [
  alignUp(position, GROUP_ALIGNMENT),
  alignUp(position, PAGE_SIZE),
]

function continues(before: FoundGroup | undefined, { header }: FoundGroup): boolean {
  if (before === undefined) return true
  const last = before.header
  if (header.sequence !== last.sequence + 1 || header.previousCrc !== last.crc) return false
  return header.sessionSalt === last.sessionSalt || header.sequence === header.sessionFirst
}

/** Of two that fit, the later session's. */
const newest = (groups: readonly FoundGroup[]): FoundGroup | undefined =>
  [...groups].sort((a, b) => b.header.ordinal - a.header.ordinal || a.header.position - b.header.position)[0]

/** Proven groups are missing: goes on with the next one of the file that the proof reaches. */
function nextBelowProof(
  groups: readonly FoundGroup[],
  position: number,
  sequence: number,
  proof: number,
): FoundGroup | undefined {
  return groups
    .filter(({ header }) => header.position >= position && header.sequence > sequence && header.sequence - 1 <= proof)
    .sort((a, b) => a.header.sequence - b.header.sequence)[0]
}
