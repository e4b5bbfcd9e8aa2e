/**
 * Whether the runtime does its work: decides from what each part says of itself and from whether it gets on. Pure.
 *
 * A part that says "running" is not believed alone: while work waits for it, its progress number must move. When it has
 * not moved for `patienceUs`, the part is stalled, whatever it says. Every state other than good names a cause and what
 * an operator can do.
 *
 * Relies on: `observe` being called every few seconds with monotonic time. Never: asks anybody anything.
 */

export type CheckKind =
  | 'listener'
  | 'certificate'
  | 'clock'
  | 'log'
  | 'space'
  | 'folders'
  | 'connections'
  | 'sync'
  | 'process'

export interface PartReport {
  /** Unique: `listener tcp`, `log`, `sync central`. */
  readonly name: string
  readonly kind: CheckKind
  /** What the part says of itself. */
  readonly state: 'off' | 'starting' | 'running' | 'failed'
  /** Why it failed or is starting for so long; empty when there is nothing to say. */
  readonly cause: string
  /** What an operator can do, where that is something else than of others of the kind; empty when it is not. */
  readonly action?: string
  /** Why waiting work may not get on, where that is another cause; said only when it does not. */
  readonly stallCause?: string
  /** Units of work that wait for it now: queued appends, unconfirmed messages, a probe without an answer. */
  readonly waiting: number
  /** Grows with each unit of work done, and never falls while the part lives. */
  readonly progress: number
  /** The runtime does not count as ready without it. */
  readonly isEssential: boolean
}

export type CheckState = 'off' | 'ok' | 'starting' | 'stalled' | 'failed'

export interface Check {
  readonly name: string
  readonly kind: CheckKind
  readonly state: CheckState
  readonly cause: string
  readonly action: string
  readonly isEssential: boolean
  /** How long it has been in this state, µs. */
  readonly forUs: number
}

export interface Health {
  /** `degraded`: ready, but something that is not essential does not work. */
  readonly status: 'ready' | 'degraded' | 'not-ready'
  readonly checks: readonly Check[]
}

export interface HealthLimits {
  /** Waiting work must get on within this time. */
  readonly patienceUs: Readonly<Record<CheckKind, number>>
}

const SECOND_US = 1_000_000
/** All below the minute within which a state must be named. */
export const HEALTH_LIMITS: HealthLimits = {
  patienceUs: {
    listener: 15 * SECOND_US,
    certificate: 15 * SECOND_US,
    clock: 15 * SECOND_US,
    log: 20 * SECOND_US,
    space: 20 * SECOND_US,
    folders: 20 * SECOND_US,
    connections: 15 * SECOND_US,
    sync: 45 * SECOND_US,
    process: 15 * SECOND_US,
  },
}

/** What an operator can do, by kind and state. */
const ACTIONS: Readonly<Record<CheckKind, Readonly<Record<'starting' | 'stalled' | 'failed', string>>>> = {
  listener: {
    starting: 'Wait; if it stays so, look for the last line of the log.',
    stalled: 'The listener takes no new connections: restart the service and keep its log.',
    failed: 'Free the address or change it in the configuration, then restart the service.',
  },
  certificate: {
    starting: 'Wait.',
    stalled: 'Replace the files of the certificate.',
    failed:
      'Set the clock if it is wrong; else replace the files of the certificate: they are taken up within half a minute, without a restart.',
  },
  clock: {
    starting:
      'Set the clock, or let the time service reach its servers. Messages are taken meanwhile, and marked as stamped by a clock that may be wrong.',
    stalled: 'Set the clock.',
    failed: 'Set the clock.',
  },
  log: {
    starting: 'Wait: the data folder is being checked.',
    stalled: 'The disk does not finish writes: look at it with dmesg, and at free space.',
    failed:
      'The disk refuses writes, dmesg tells why: free space, mount it writable again, or replace it. Nothing that was acknowledged is lost.',
  },
  space: {
    starting: 'Wait.',
    stalled: 'Free space on the disk.',
    failed:
      'Free space, raise the disk budget or the size of the topic, or see why consumers and upstream do not take the data.',
  },
  folders: {
    starting: 'Wait.',
    stalled: 'See the rights of the folder, and what its place is taken by.',
    failed:
      'The findings name the folder: see its rights, whether it is immutable (lsattr), its quota, and whether it is a folder. Nothing is lost meanwhile.',
  },
  connections: {
    starting: 'Wait.',
    stalled: 'See which clients hold the connections (ss -tnp), or raise the limit of the listener.',
    failed: 'See which clients hold the connections (ss -tnp), or raise the limit of the listener.',
  },
  sync: {
    starting: 'Wait for the first connection.',
    stalled: 'The upstream confirms nothing: check its address, its user and its health. Data is kept here meanwhile.',
    failed: 'Check address, user and network of the upstream. Data is kept here meanwhile.',
  },
  process: {
    starting: 'Wait.',
    stalled: 'The machine or the process is overloaded: look for other processes and at the CPU temperature.',
    failed: 'Restart the service and keep its log.',
  },
}

interface Memory {
  progress: number
  /** When progress last moved, or when work last began to wait. */
  movedUs: number
  state: CheckState
  sinceUs: number
}

export class HealthWatch {
  private readonly limits: HealthLimits
  private readonly memories = new Map<string, Memory>()
  private latest: Health = { status: 'not-ready', checks: [] }

  constructor(limits: HealthLimits = HEALTH_LIMITS) {
    this.limits = limits
  }

  get health(): Health {
    return this.latest
  }

  /** @param nowUs monotonic. Parts that are no longer reported are forgotten. */
  observe(reports: readonly PartReport[], nowUs: number): Health {
    const names = new Set(reports.map(({ name }) => name))
    for (const name of this.memories.keys()) if (!names.has(name)) this.memories.delete(name)
    const checks = reports.map((report) => this.check(report, nowUs))
    this.latest = { status: statusOf(checks), checks }
    return this.latest
  }

  private check(report: PartReport, nowUs: number): Check {
    const memory = this.remember(report, nowUs)
    const idleUs = nowUs - memory.movedUs
    const isStalled = report.state === 'running' && idleUs > this.limits.patienceUs[report.kind]
    const state: CheckState = report.state === 'running' ? (isStalled ? 'stalled' : 'ok') : report.state
    if (state !== memory.state) {
      memory.state = state
      memory.sinceUs = nowUs
    }
    const isGood = state === 'ok' || state === 'off'
    return {
      name: report.name,
      kind: report.kind,
      state,
      cause: isStalled ? stallCause(report, idleUs) : report.cause,
      action: isGood ? '' : report.action || ACTIONS[report.kind][state],
      isEssential: report.isEssential,
      forUs: nowUs - memory.sinceUs,
    }
  }

  private remember(report: PartReport, nowUs: number): Memory {
    let memory = this.memories.get(report.name)
    if (memory === undefined) {
      memory = { progress: report.progress, movedUs: nowUs, state: 'off', sinceUs: nowUs }
      this.memories.set(report.name, memory)
    }
    // Without waiting work there is nothing to get on with: the clock starts when work begins to wait.
    if (report.progress !== memory.progress || report.waiting === 0) {
      memory.progress = report.progress
      memory.movedUs = nowUs
    }
    return memory
  }
}

function stallCause(report: PartReport, idleUs: number): string {
  const seconds = Math.floor(idleUs / SECOND_US)
  const cause = report.stallCause ?? report.cause
  const said = cause === '' ? '' : ` (${cause})`
  return `${report.waiting} waiting and no progress for ${seconds} s${said}`
}

/** How it is in one line, with the names and causes of what does not work. */
export function statusLine({ status, checks }: Health): string {
  const words = { ready: 'accepting', degraded: 'accepting, degraded', 'not-ready': 'not ready' }
  const bad = checks.filter(({ state }) => state !== 'ok' && state !== 'off')
  const told = bad.map(({ name, state, cause }) => `${name} ${state}${cause === '' ? '' : ` (${cause})`}`)
  return told.length === 0 ? words[status] : `${words[status]}: ${told.join(', ')}`
}

function statusOf(checks: readonly Check[]): Health['status'] {
  const bad = checks.filter(({ state }) => state !== 'ok' && state !== 'off')
  if (bad.some(({ isEssential }) => isEssential)) return 'not-ready'
  return bad.length > 0 ? 'degraded' : 'ready'
}
