/**
 * All device sessions of the edge: who is connected, takeover by a newer session of the same device, what strangers may
 * hold, shared bounds, the one timer.
 */
import { type Clock, systemClock } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { type Logger, silentLogger } from '../../logger.ts'
import { hostOf, type PathHandler, type QuicSession } from '../../quic-edge/index.ts'
import { type Auth, DEFAULT_LIMITS, EDGE_CODES, type EdgeLimits } from '../../sdk/wire/edge/index.ts'
import { LOSS_REASONS, type LossReason, type Moment } from './core/exchange.ts'
import { type Loss, LossReports } from './core/loss-reports.ts'
import { TakeoverGuard } from './core/takeover.ts'
import { DEVICE_DEFAULTS } from './defaults.ts'
import { type ConnectionHost, DeviceConnection } from './device-connection.ts'
import type { DeviceBroker, DeviceGrant } from './ports.ts'

export interface DeviceHubOptions {
  readonly broker: DeviceBroker
  readonly limits?: EdgeLimits
  readonly clock?: Clock
  readonly logger?: Logger
}

export interface DeviceTraffic {
  /** Devices that are connected now. */
  readonly connectedCount: number
  /** Readings that were lost since the start, for each reason there is. */
  readonly lostReadings: Readonly<Record<LossReason, number>>
}

export interface DeviceHub {
  /** Serves path `/edge` of `startQuicEdge`. */
  readonly pathHandler: PathHandler
  traffic(): DeviceTraffic
  /** Says `bye` to all devices, acknowledges what is under way, then ends their sessions; bounded by the drain timeout. */
  close(): Promise<void>
}

export function startDeviceHub(options: DeviceHubOptions): DeviceHub {
  const hub = new Hub(options)
  return {
    pathHandler: { opened: (session) => hub.opened(session) },
    traffic: () => hub.traffic(),
    close: () => hub.close(),
  }
}

class Hub implements ConnectionHost {
  readonly broker: DeviceBroker
  readonly limits: EdgeLimits
  readonly #lostReadings = Object.fromEntries(LOSS_REASONS.map((reason) => [reason, 0])) as Record<LossReason, number>
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #connections = new Set<DeviceConnection>()
  readonly #byName = new Map<string, DeviceConnection>()
  /** Ended sessions with writes under way; at most one a name, since no newer one is welcomed meanwhile. */
  readonly #settling = new Map<string, DeviceConnection>()
  readonly #takeovers = new TakeoverGuard()
  readonly #losses = new LossReports()
  readonly #timer: NodeJS.Timeout
  readonly #onEmpty: (() => void)[] = []
  #areWindowsCut = false
  #isStopping = false

  constructor(options: DeviceHubOptions) {
    this.broker = options.broker
    this.limits = options.limits ?? DEFAULT_LIMITS
    this.#clock = options.clock ?? systemClock
    this.#logger = options.logger ?? silentLogger
    this.#timer = setInterval(() => this.#tick(), DEVICE_DEFAULTS.tickIntervalMs)
    this.#timer.unref()
  }

  traffic(): DeviceTraffic {
    return { connectedCount: this.#byName.size, lostReadings: this.#lostReadings }
  }

  opened(session: QuicSession): DeviceConnection | null {
    const refusal = this.#isStopping
      ? EDGE_CODES.shuttingDown
      : this.#hasRoomFor(session)
        ? null
        : EDGE_CODES.limitReached
    if (refusal !== null) {
      session.close(refusal.code, refusal.meaning)
      return null
    }
    const connection = new DeviceConnection(session, this)
    this.#connections.add(connection)
    return connection
  }

  async close(): Promise<void> {
    this.#isStopping = true
    const { code } = EDGE_CODES.shuttingDown
    for (const connection of [...this.#connections]) connection.end(code, spread(DEVICE_DEFAULTS.stopRetryMs), true)
    if (this.#connections.size > 0) await new Promise<void>((resolve) => this.#onEmpty.push(resolve))
    clearInterval(this.#timer)
    this.#tell(this.#losses.takeAll())
  }

  // ---- what connections ask

  moment(): Moment {
    const { wallUs, isTrusted, accuracyMs } = this.broker.time()
    return { monotonicMs: this.#clock.monotonicUs() / 1000, wallUs, isWallTrusted: isTrusted, accuracyMs }
  }

  async admit(connection: DeviceConnection, name: string, auth: Auth, epoch: number): Promise<DeviceGrant> {
    const startedMs = this.#nowMs()
    try {
      const grant = await this.broker.authenticate(name, auth)
      // Gone while it was checked: it must not take the name from a living session.
      if (!this.#connections.has(connection)) throw new EdgeError('EDGE_CONNECTION_LOST', 'the session ended')
      await this.#takeOver(connection, name, epoch)
      return grant
    } catch (error) {
      // All refusals look alike and take the same time; what only a device with a good credential gets is told at once.
      if (toEdgeError(error).code !== 'EDGE_NAME_IN_USE') await this.#wait(startedMs + DEVICE_DEFAULTS.refusalDelayMs)
      throw error
    }
  }

  lost(connection: DeviceConnection, loss: { reason: LossReason; lane: number; first: number; count: number }): void {
    const { reason, count } = loss
    this.#lostReadings[reason] += count
    // These come as often as readings do.
    if (reason === 'datagram-dropped' || reason === 'topic-full') return
    this.#tell(this.#losses.add({ ...loss, device: connection.deviceName }, this.#nowMs()))
  }

  closed(connection: DeviceConnection, code: number, reason: string): void {
    this.#connections.delete(connection)
    const name = connection.deviceName
    if (name !== undefined && this.#byName.get(name) === connection) this.#byName.delete(name)
    if (name !== undefined && !connection.isSettled) void this.#keepUntilSettled(name, connection)
    this.#logger.info('device.session.closed', { device: name, code, reason })
    if (this.#connections.size === 0) for (const resolve of this.#onEmpty.splice(0)) resolve()
  }

  async #keepUntilSettled(name: string, connection: DeviceConnection): Promise<void> {
    this.#settling.set(name, connection)
    await connection.whenSettled()
    this.#settling.delete(name)
  }

  /** The older session ends and its writes settle first: only then is what the log holds the whole truth. */
  async #takeOver(connection: DeviceConnection, name: string, epoch: number): Promise<void> {
    const older = this.#byName.get(name)
    if (older !== undefined && !this.#takeovers.mayTakeOver(name, epoch, this.#nowMs())) {
      this.#logger.warn('device.name.contested', { device: name, peer: connection.session.peer })
      throw new EdgeError('EDGE_NAME_IN_USE', `device ${name}: two devices seem to bear this name`)
    }
    // Taken at once, so that a third session finds this one.
    this.#byName.set(name, connection)
    connection.deviceName = name
    older?.end(EDGE_CODES.takenOver.code, EDGE_CODES.takenOver.retryMs, false)
    const settling = this.#settling.get(name)
    if (settling === undefined) return
    await Promise.race([settling.whenSettled(), this.#wait(this.#nowMs() + DEVICE_DEFAULTS.takeoverTimeoutMs)])
    // Welcomed now, it would be told less than the log may hold in the end, and what it sent again be stored twice.
    if (!settling.isSettled)
      throw new EdgeError(
        'EDGE_APPEND_FAILED',
        'readings of the session before are not on storage yet: come back later',
      )
  }

  #tell(losses: readonly Loss[]): void {
    for (const { device, reason, lane, first, count } of losses) {
      const fields = { device, reason, lane, first_sequence: first, message_count: count }
      this.#logger.warn('device.readings.lost', fields)
    }
  }

  #hasRoomFor(session: QuicSession): boolean {
    const unknown = [...this.#connections].filter((one) => !one.isKnown)
    if (unknown.length >= DEVICE_DEFAULTS.maxUnknownSessions) return false
    const host = hostOf(session.peer)
    const ofSamePeer = unknown.filter((one) => host !== undefined && hostOf(one.session.peer) === host)
    return ofSamePeer.length < DEVICE_DEFAULTS.maxUnknownSessionsPerPeer
  }

  #tick(): void {
    for (const connection of [...this.#connections]) connection.tick()
    this.#balanceWindows()
    this.#tell(this.#losses.due(this.#nowMs()))
  }

  /** When all sessions together hold too much, the heaviest are told to hold less, until half of it is free again. */
  #balanceWindows(): void {
    const total = [...this.#connections].reduce((sum, one) => sum + one.unackedBytes, 0)
    const { maxUnackedBytes, cutWindowBytes, cutWindowReadings } = DEVICE_DEFAULTS
    if (total > maxUnackedBytes) {
      this.#areWindowsCut = true
      const heavy = [...this.#connections].filter((one) => one.unackedBytes > cutWindowBytes)
      for (const connection of heavy) connection.setWindow(cutWindowBytes, cutWindowReadings)
    } else if (this.#areWindowsCut && total < maxUnackedBytes / 2) {
      this.#areWindowsCut = false
      const { windowBytes, windowReadings } = this.limits
      for (const connection of this.#connections) connection.setWindow(windowBytes, windowReadings)
    }
  }

  #nowMs(): number {
    return this.#clock.monotonicUs() / 1000
  }

  async #wait(untilMs: number): Promise<void> {
    const leftMs = untilMs - this.#nowMs()
    if (leftMs > 0) await new Promise<void>((resolve) => setTimeout(resolve, leftMs).unref())
  }
}

/** Half to one and a half times: devices must not all come back at once. */
function spread(ms: number): number {
  return Math.round(ms * (0.5 + Math.random()))
}
