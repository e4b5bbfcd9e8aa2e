/** What the log, certificates, the clock and the routes of sync say of themselves, in the words of `HealthWatch`. Pure. */
import { systemCodeOf } from '../../errors.ts'
import type { Log, LogFinding } from '../../log/index.ts'
import { findingAdvice } from './finding-advice.ts'
import type { PartReport } from './health.ts'
import type { SyncRouteStatus } from './overview.ts'

export interface ServedCertificate {
  /** The listener that serves it. */
  readonly name: string
  readonly certificate: { readonly notBeforeMs: number; readonly notAfterMs: number; readonly trouble?: string }
}

/** Why a listener was not reached, and what can be done where that is something else than of others; else empty. */
export interface ProbeFailure {
  readonly cause: string
  readonly action: string
}

/** No connection can be opened, by this process or by any: the listeners are as they were. */
const FILE_LIMIT_ACTIONS: Readonly<Record<string, string>> = {
  EMFILE:
    'Raise the limit on open files (LimitNOFILE of the unit, ulimit -n), or lower max_connections of the listeners.',
  ENFILE: 'See which process holds so many files open (lsof), or raise the limit of the machine (sysctl fs.file-max).',
}

export function probeFailure(error: Error): ProbeFailure {
  const code = systemCodeOf(error)
  const action = FILE_LIMIT_ACTIONS[code]
  return action === undefined
    ? { cause: error.message, action: '' }
    : { cause: `${code}: no file descriptor is left for a new connection`, action }
}

/** Without the log nothing can be promised: it is essential. A log that is waited for must sync, or it is stalled. */
export function reportLog(log: Pick<Log, 'isWritable' | 'hasRoom' | 'stats' | 'findings'>): PartReport {
  const { syncCount, isSyncAwaited } = log.stats()
  const hasRoom = log.hasRoom(1)
  const gone = log.isWritable ? undefined : folderGone(log)
  return {
    name: 'log',
    kind: 'log',
    state: log.isWritable ? 'running' : 'failed',
    // Of a log that waits the last trouble is told as well: a full disk is why nothing moves.
    cause: log.isWritable && hasRoom ? '' : (gone?.text ?? lastError(log)),
    action: gone === undefined ? '' : findingAdvice(gone),
    // Under load it always is, and what it last had trouble with says nothing.
    stallCause: lastError(log),
    waiting: isSyncAwaited || !hasRoom ? 1 : 0,
    progress: syncCount,
    isEssential: true,
  }
}

/** Messages are given up or refused for want of room: all else goes on, so it is not essential. */
export function reportSpace(log: Pick<Log, 'stats'>): PartReport {
  const { isOverDiskBudget, fullTopicCount } = log.stats()
  const causes = [
    ...(isOverDiskBudget
      ? ['the disk is over its budget or under the free-space floor, and nothing is left to drop']
      : []),
    ...(fullTopicCount > 0
      ? [`${fullTopicCount} full ${fullTopicCount === 1 ? 'topic takes' : 'topics take'} no new messages`]
      : []),
  ]
  return {
    name: 'space',
    kind: 'space',
    state: causes.length === 0 ? 'running' : 'failed',
    cause: causes.join('; '),
    waiting: 0,
    progress: 0,
    isEssential: false,
  }
}

/** Nothing is lost or refused for it. */
export function reportFolders(log: Pick<Log, 'stats'>): PartReport {
  const { refusingFolderCount: count } = log.stats()
  const text =
    count === 1
      ? 'the folder of 1 partition takes no files, its messages are kept in another one'
      : `the folders of ${count} partitions take no files, their messages are kept in others`
  return {
    name: 'folders',
    kind: 'folders',
    state: count === 0 ? 'running' : 'failed',
    cause: count === 0 ? '' : text,
    waiting: 0,
    progress: 0,
    isEssential: false,
  }
}

const UNUSABLE_ACTION =
  'Put the files right: they are taken up within half a minute. Until then a start, also after a power cut, is refused.'

/**
 * Peers refuse one that does not hold now; whoever pins its hash, or was let in before, goes on. One whose files cannot be
 * used any more is served until the process ends.
 */
export function reportCertificate({ name, certificate }: ServedCertificate, nowUs: bigint): PartReport {
  const { notBeforeMs, notAfterMs, trouble = '' } = certificate
  const nowMs = Number(nowUs / 1000n)
  const isEarly = nowMs < notBeforeMs
  const bound = isEarly ? `begins ${dateText(notBeforeMs)}` : `ended ${dateText(notAfterMs)}`
  const isValid = !isEarly && nowMs < notAfterMs
  const causes = [
    ...(isValid ? [] : [`it ${bound}, and the clock says ${dateText(nowMs)}`]),
    ...(trouble === '' ? [] : [`the one that was loaded is served on, its files cannot be used: ${trouble}`]),
  ]
  return {
    name: `certificate ${name}`,
    kind: 'certificate',
    state: causes.length === 0 ? 'running' : 'failed',
    cause: causes.join('; '),
    action: trouble === '' ? '' : UNUSABLE_ACTION,
    waiting: 0,
    progress: 0,
    isEssential: false,
  }
}

/** @param distrust why the clock is not to be trusted; empty when it is. */
export function reportClock(distrust: string): PartReport {
  return {
    name: 'clock',
    kind: 'clock',
    state: distrust === '' ? 'running' : 'starting',
    cause: distrust,
    waiting: 0,
    progress: 0,
    isEssential: false,
  }
}

const dateText = (ms: number): string => new Date(ms).toISOString()

/**
 * A route that is away is not failed at once: it is stalled when messages wait for too long, unless they are meant to. One
 * that is blocked waits for a person.
 */
export function reportRoute(route: SyncRouteStatus): PartReport {
  return {
    name: `sync ${route.route}`,
    kind: 'sync',
    state: route.state === 'stopped' || route.state === 'blocked' ? 'failed' : 'running',
    cause: route.cause,
    action: route.action,
    waiting: route.state === 'paused' ? 0 : route.lagMessages,
    // What is set aside or passed over is done with, too. What retention gives up is not: it never waits for the upstream.
    progress: route.confirmedMessages + route.deadLetterMessages + route.unreadableMessages,
    isEssential: false,
  }
}

/** Not the errors that follow from it. */
function folderGone(log: Pick<Log, 'findings'>): LogFinding | undefined {
  const last = log.findings().findLast(({ event }) => event.startsWith('log.folder.'))
  return last?.event === 'log.folder.gone' ? last : undefined
}

function lastError(log: Pick<Log, 'findings' | 'isWritable'>): string {
  const errors = log.findings().filter(({ level }) => level === 'error')
  // What follows from a refusal, such as a journal file that cannot be emptied, comes after it and is not why.
  const refusal = log.isWritable ? undefined : errors.findLast(({ event }) => event === 'log.append.refused')
  const last = refusal ?? errors.at(-1)
  return last?.text ?? (log.isWritable ? '' : 'the disk refuses writes')
}
