/**
 * Asks the parts of the runtime how they are, every few seconds: probes each TCP listener by connecting to it, measures
 * how late the event loop is, and hands all to `HealthWatch`, which decides.
 */
import { connect } from 'node:net'
import type { Clock } from '../../clock.ts'
import type { Logger } from '../../logger.ts'
import { type Check, type Health, HealthWatch, type PartReport, statusLine } from './health.ts'
import { type ProbeFailure, probeFailure } from './part-reports.ts'

/** One listener as it says of itself. */
export interface ListenerReport {
  /** `tcp`, `http`, `websocket`, `quic`, `webtransport`. */
  readonly name: string
  readonly isEnabled: boolean
  readonly state: 'starting' | 'running' | 'failed'
  readonly cause: string
  readonly host: string
  readonly port: number
  /** UDP has no handshake to probe with. */
  readonly isTcp: boolean
  /** It turns away who comes now, a probe too. */
  readonly isFull: boolean
}

export interface HealthSources {
  listeners(): readonly ListenerReport[]
  /** The log, sync routes, and whatever else can get stuck. */
  parts(): readonly PartReport[]
}

export interface HealthOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly intervalMs?: number
  /** Told how it is in one line, whenever that is another one. */
  readonly onStatus?: (line: string) => void
}

export interface HealthMonitor {
  readonly health: Health
  /** Longest delay of the event loop, µs, since it was last read. */
  takeLoopDelayUs(): number
  /** Looks at once; for tests and for the first answer after the start. */
  check(): Promise<Health>
  close(): void
}

export const CHECK_INTERVAL_MS = 5000
const PROBE_TIMEOUT_MS = 3000
/** The loop is looked at this often; a delay up to it goes unnoticed. */
const LOOP_TICK_MS = 250
/** Delays below are scheduling noise of a busy small machine. */
const LOOP_DELAY_BAD_US = 2_000_000

export function startHealth(sources: HealthSources, options: HealthOptions): HealthMonitor {
  return new Monitor(sources, options)
}

class Monitor implements HealthMonitor {
  private readonly sources: HealthSources
  private readonly clock: Clock
  private readonly logger: Logger
  private readonly onStatus: (line: string) => void
  private readonly watch = new HealthWatch()
  /** Without a failure it was reached the last time. */
  private readonly probes = new Map<string, { answered: number; failure: ProbeFailure | null }>()
  private readonly timers: NodeJS.Timeout[]
  private running: Promise<Health> | null = null
  private toldLine = ''
  private tickedUs: number
  private loopDelayUs = 0
  private loopDelayOfCheckUs = 0
  private loopChecks = 0

  constructor(sources: HealthSources, options: HealthOptions) {
    const { clock, logger, intervalMs = CHECK_INTERVAL_MS, onStatus = () => {} } = options
    this.sources = sources
    this.clock = clock
    this.logger = logger
    this.onStatus = onStatus
    this.tickedUs = clock.monotonicUs()
    this.timers = [
      setInterval(() => void this.check(), intervalMs),
      setInterval(() => this.measureLoop(), LOOP_TICK_MS),
    ]
    for (const timer of this.timers) timer.unref()
  }

  get health(): Health {
    return this.watch.health
  }

  takeLoopDelayUs(): number {
    const delayUs = this.loopDelayUs
    this.loopDelayUs = 0
    return delayUs
  }

  check(): Promise<Health> {
    this.running ??= this.look().finally(() => {
      this.running = null
    })
    return this.running
  }

  close(): void {
    for (const timer of this.timers) clearInterval(timer)
  }

  private async look(): Promise<Health> {
    const listeners = this.sources.listeners()
    await Promise.all(listeners.filter((each) => each.isEnabled && each.isTcp).map((each) => this.probe(each)))
    const reports = [
      this.processReport(),
      ...listeners.map((each) => this.listenerReport(each)),
      ...this.sources.parts(),
    ]
    const before = new Map(this.watch.health.checks.map((check) => [check.name, check]))
    const health = this.watch.observe(reports, this.clock.monotonicUs())
    for (const check of health.checks) this.logChange(before.get(check.name), check)
    const line = statusLine(health)
    if (line !== this.toldLine) this.onStatus(line)
    this.toldLine = line
    return health
  }

  private logChange(before: Check | undefined, now: Check): void {
    if (before?.state === now.state || (before === undefined && (now.state === 'ok' || now.state === 'off'))) return
    const fields = { check: now.name, state: now.state, before: before?.state, cause: now.cause }
    const isBad = now.state === 'failed' || now.state === 'stalled'
    if (isBad && now.isEssential) this.logger.error('health.changed', fields)
    else if (isBad) this.logger.warn('health.changed', fields)
    else this.logger.info('health.changed', fields)
  }

  private async probe(listener: ListenerReport): Promise<void> {
    if (listener.state !== 'running') return
    const probe = this.probes.get(listener.name) ?? { answered: 0, failure: null }
    this.probes.set(listener.name, probe)
    probe.failure = listener.isFull ? null : await connectOnce(listener.host, listener.port)
    if (probe.failure === null) probe.answered++
  }

  private listenerReport(listener: ListenerReport): PartReport {
    const { answered, failure } = this.probes.get(listener.name) ?? { answered: 0, failure: null }
    return {
      name: `listener ${listener.name}`,
      kind: 'listener',
      state: listener.isEnabled ? listener.state : 'off',
      cause: failure?.cause ?? listener.cause,
      action: failure?.action ?? '',
      waiting: failure === null ? 0 : 1,
      progress: answered,
      isEssential: true,
    }
  }

  /** Progress is a check after which the loop was on time. */
  private processReport(): PartReport {
    const delayUs = this.loopDelayOfCheckUs
    this.loopDelayOfCheckUs = 0
    const isLate = delayUs > LOOP_DELAY_BAD_US
    if (!isLate) this.loopChecks++
    return {
      name: 'process',
      kind: 'process',
      state: 'running',
      cause: isLate ? `the event loop was ${Math.round(delayUs / 1000)} ms late` : '',
      waiting: isLate ? 1 : 0,
      progress: this.loopChecks,
      isEssential: false,
    }
  }

  private measureLoop(): void {
    const nowUs = this.clock.monotonicUs()
    const delayUs = Math.max(0, nowUs - this.tickedUs - LOOP_TICK_MS * 1000)
    this.tickedUs = nowUs
    this.loopDelayUs = Math.max(this.loopDelayUs, delayUs)
    this.loopDelayOfCheckUs = Math.max(this.loopDelayOfCheckUs, delayUs)
  }
}

/** @returns null when the peer accepted, else why not. */
function connectOnce(host: string, port: number): Promise<ProbeFailure | null> {
  return new Promise((resolve) => {
    const socket = connect({ host: reachable(host), port, timeout: PROBE_TIMEOUT_MS })
    const done = (failure: ProbeFailure | null): void => {
      socket.destroy()
      resolve(failure)
    }
    socket.once('connect', () => done(null))
    socket.once('timeout', () => done({ cause: `no answer within ${PROBE_TIMEOUT_MS} ms`, action: '' }))
    socket.once('error', (error) => done(probeFailure(error)))
  })
}

/** Bound to all interfaces means reachable on loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}
