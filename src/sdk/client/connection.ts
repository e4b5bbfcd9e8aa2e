/**
 * One connection to a server, from dialling to its end: finds out the generation, logs in, carries requests, pings. Never
 * reconnects; that is `client.ts`.
 */
import { type Clock, US_MS } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { MAX_TIMER_MS } from '../../long-timer.ts'
import type { ConnectionCredentials, Generation } from '../connection-string.ts'
import { SDK_DEFAULTS } from '../defaults.ts'
import type { Dial, Transport } from '../transport/transport.ts'
import { CODE, type CommandCode, OPERATION, operationOf } from '../wire/codes.ts'
import type { Request, RequestBody, ResponseBody } from '../wire/commands/index.ts'
import { type Dialect, PROTOCOL_VERSION } from '../wire/dialect.ts'
import { judgeProbe, probeBytes, VSR_ANSWER_BYTES } from './generation-probe.ts'
import { Relay } from './relay.ts'
import { iggyCodeOf } from './server-error.ts'
import { type Completion, Session } from './session.ts'

/** How long answers are waited for; told of each that came and of each that did not, so that it may follow the link. */
export interface Patience {
  readonly timeoutUs: number
  answered(durationUs: number): void
  timedOut(): void
}

/** The same for every link. */
export function fixedPatience(timeoutMs: number): Patience {
  return { timeoutUs: timeoutMs * US_MS, answered() {}, timedOut() {} }
}

export interface ConnectionSettings {
  readonly dial: Dial
  readonly generation: Generation
  /** null: no login. */
  readonly credentials: ConnectionCredentials | null
  readonly connectTimeoutMs: number
  readonly patience: Patience
  /** 0: no pings. */
  readonly heartbeatIntervalMs: number
  readonly maxInFlight: number
  readonly clock: Clock
  /** Random bytes, for the VSR client id. */
  readonly randomU128: () => bigint
}

export interface RequestOptions {
  /** Replaces the connection's patience. After it the connection is given up: its answers are out of step. */
  readonly timeoutMs?: number
  /** The same, and is told what came of it. */
  readonly patience?: Patience
  /** Added to it: what is large takes its time on a slow link. */
  readonly transferMs?: number
}

interface Caller {
  readonly sentUs: number
  readonly patience: Patience
  resolve(body: ResponseBody<CommandCode>): void
  reject(error: EdgeError): void
}

const SDK_NAME = 'iggy-edge'
const SDK_VERSION = '0.1.0'
/** An answer to the probe may take so many times as long as the dial. */
const PROBE_PER_DIAL = 3
const NOT_COMMITTED = 57
const NOT_ACCEPTED = 58

export class Connection {
  readonly dialect: Dialect
  readonly peer: string
  /** Settles once, when the connection is over. */
  readonly closed: Promise<EdgeError>
  readonly #settings: ConnectionSettings
  readonly #transport: Transport
  readonly #session: Session
  readonly #callers = new Map<number, Caller>()
  readonly #slots: (() => void)[] = []
  readonly #settleClosed: (error: EdgeError) => void
  #error: EdgeError | null = null
  #timer: ReturnType<typeof setTimeout> | null = null
  #heartbeat: ReturnType<typeof setInterval> | null = null
  #lastSentUs: number
  #userId: number | null = null

  private constructor(settings: ConnectionSettings, dialect: Dialect, clientId: bigint, transport: Transport) {
    this.#settings = settings
    this.#transport = transport
    this.dialect = dialect
    this.peer = transport.peer
    this.#session = new Session(dialect, clientId)
    this.#lastSentUs = settings.clock.monotonicUs()
    const { promise, resolve } = Promise.withResolvers<EdgeError>()
    this.closed = promise
    this.#settleClosed = resolve
  }

  /**
   * Dials, settles the generation and logs in.
   *
   * @throws {EdgeError} what the dial throws; EDGE_UPSTREAM_TIMEOUT; EDGE_CREDENTIALS_INVALID, EDGE_TOKEN_INVALID,
   *   EDGE_VERSION_UNSUPPORTED; EDGE_FRAME_INVALID when the peer speaks something else.
   */
  static async open(settings: ConnectionSettings, signal: AbortSignal): Promise<Connection> {
    const { generation } = settings
    if (generation !== 'auto') return Connection.#openAs(settings, generation, signal)
    const probe = await Connection.#probe(settings, signal)
    if (probe.dialect === 'classic') return Connection.#openAs(settings, 'classic', signal)
    return Connection.#start(settings, probe.dialect, probe.clientId, probe.relay, probe.transport, signal)
  }

  get userId(): number | null {
    return this.#userId
  }

  get inFlight(): number {
    return this.#session.table.size
  }

  /**
   * Sends one request and waits for its answer. It is encoded when a slot is free, which may be later: bytes in the body
   * are the caller's own until then.
   *
   * @throws {EdgeError} the server's refusal with `details.iggyCode`, EDGE_UPSTREAM_TIMEOUT, EDGE_CONNECTION_LOST.
   */
  async request<C extends CommandCode>(
    code: C,
    body: RequestBody<C>,
    options: RequestOptions = {},
  ): Promise<ResponseBody<C>> {
    const { clock } = this.#settings
    const startUs = clock.monotonicUs()
    let requestNumber: bigint | undefined
    for (;;) {
      try {
        const sent = await this.#send(code, body, options, requestNumber)
        requestNumber = sent.requestNumber
        return await sent.answer
      } catch (error) {
        const elapsedMs = (clock.monotonicUs() - startUs) / US_MS
        if (!isRepeatable(error, code) || elapsedMs > SDK_DEFAULTS.transientRetryMs) throw error
        await new Promise((resolve) => setTimeout(resolve, SDK_DEFAULTS.transientRetryDelayMs))
      }
    }
  }

  /** Gives up at once; nothing that is still on its way from us arrives later. */
  abort(error: EdgeError): void {
    this.#end(error)
    this.#transport.abort()
  }

  /** Ends in peace: what was written is delivered. */
  close(): void {
    this.#end(new EdgeError('EDGE_CONNECTION_LOST', `${this.peer}: closed by us`))
    this.#transport.end()
  }

  // ---- opening -----------------------------------------------------------------------------------------------------------

  static async #openAs(settings: ConnectionSettings, dialect: Dialect, signal: AbortSignal): Promise<Connection> {
    const relay = new Relay()
    const transport = await settings.dial(relay, signal)
    return Connection.#start(settings, dialect, settings.randomU128(), relay, transport, signal)
  }

  static async #start(
    settings: ConnectionSettings,
    dialect: Dialect,
    clientId: bigint,
    relay: Relay,
    transport: Transport,
    signal: AbortSignal,
  ): Promise<Connection> {
    const connection = new Connection(settings, dialect, clientId, transport)
    relay.connect({
      data: (bytesView) => connection.#received(bytesView),
      drained: () => {},
      closed: (error) => {
        connection.#end(error ?? new EdgeError('EDGE_CONNECTION_LOST', `${transport.peer}: closed by the server`))
      },
    })
    const giveUp = (): void => connection.abort(givenUp(transport))
    try {
      whenAborted(signal, giveUp)
      await connection.#login()
    } catch (error) {
      connection.abort(toEdgeError(error))
      throw error
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
    connection.#startHeartbeat()
    return connection
  }

  static async #probe(settings: ConnectionSettings, signal: AbortSignal) {
    const { clock, connectTimeoutMs, randomU128 } = settings
    const clientId = randomU128()
    const relay = new Relay()
    const startUs = clock.monotonicUs()
    const transport = await settings.dial(relay, signal)
    const dialMs = (clock.monotonicUs() - startUs) / US_MS
    const { promise, resolve, reject } = Promise.withResolvers<Dialect>()
    const judge = (bytesView: Uint8Array): void => {
      const verdict = judgeProbe(bytesView)
      if (verdict === undefined) {
        const found = shownStart(bytesView.subarray(0, 8))
        reject(
          new EdgeError('EDGE_FRAME_INVALID', `${transport.peer} speaks no Iggy protocol: it begins with ${found}`),
        )
      } else if (verdict !== null) {
        resolve(verdict)
      }
    }
    relay.watch(judge, (error) => reject(error ?? new EdgeError('EDGE_CONNECTION_LOST', `${transport.peer} hangs up`)))
    // A dial is a round trip at least: where it takes seconds, so does the answer.
    const patienceMs = Math.min(connectTimeoutMs, Math.max(SDK_DEFAULTS.probeTimeoutMs, dialMs * PROBE_PER_DIAL))
    const timer = setTimeout(() => {
      reject(
        new EdgeError(
          'EDGE_UPSTREAM_TIMEOUT',
          `${transport.peer}: no answer to a ping within ${Math.round(patienceMs)} ms`,
        ),
      )
    }, patienceMs)
    const giveUp = (): void => reject(givenUp(transport))
    try {
      whenAborted(signal, giveUp)
      transport.write(probeBytes(clientId))
      const dialect = await promise
      // A classic server has lost its place in the stream: that connection is of no use.
      if (dialect === 'classic') transport.abort()
      else relay.skip(VSR_ANSWER_BYTES)
      return { dialect, clientId, relay, transport }
    } catch (error) {
      transport.abort()
      throw error
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
    }
  }

  async #login(): Promise<void> {
    const { credentials } = this.#settings
    if (credentials === null) return
    if (this.dialect === 'vsr') {
      const version = { protocolVersion: PROTOCOL_VERSION, sdkName: SDK_NAME, sdkVersion: SDK_VERSION }
      const { userId } = await this.request(CODE.loginRegister, { ...version, credentials, context: '' })
      this.#userId = userId
    } else if (credentials.kind === 'password') {
      const { username, password } = credentials
      const body = { username, password, version: SDK_VERSION, context: '' }
      this.#userId = (await this.request(CODE.loginUser, body)).userId
    } else {
      this.#userId = (await this.request(CODE.loginWithPersonalAccessToken, { token: credentials.token })).userId
    }
  }

  #startHeartbeat(): void {
    const intervalMs = this.#settings.heartbeatIntervalMs
    if (intervalMs === 0 || this.#error) return
    this.#heartbeat = setInterval(
      () => {
        const isIdle = this.#settings.clock.monotonicUs() - this.#lastSentUs >= (intervalMs * US_MS) / 2
        // A ping that fails ends the connection by itself.
        if (isIdle && this.inFlight === 0) this.request(CODE.ping, null).catch(() => {})
      },
      Math.min(MAX_TIMER_MS, intervalMs),
    )
    this.#heartbeat.unref?.()
  }

  // ---- requests ----------------------------------------------------------------------------------------------------------

  async #send<C extends CommandCode>(
    code: C,
    body: RequestBody<C>,
    options: RequestOptions,
    repeatOf: bigint | undefined,
  ): Promise<{ answer: Promise<ResponseBody<C>>; requestNumber: bigint }> {
    if (this.#session.table.size >= this.#settings.maxInFlight) await this.#slot()
    if (this.#error) throw this.#error
    const { clock } = this.#settings
    const { patience = this.#settings.patience, timeoutMs = patience.timeoutUs / US_MS, transferMs = 0 } = options
    const nowUs = clock.monotonicUs()
    const deadlineUs = nowUs + (timeoutMs + transferMs) * US_MS
    const encoded = this.#encode({ code, body } as unknown as Request, deadlineUs, repeatOf)
    this.#lastSentUs = nowUs
    const { promise, resolve, reject } = Promise.withResolvers<ResponseBody<C>>()
    // The session decodes by the same code that the request was made with.
    this.#callers.set(encoded.id, { sentUs: nowUs, patience, resolve: resolve as Caller['resolve'], reject })
    this.#armTimer()
    this.#transport.write(encoded.bytes)
    return { answer: promise, requestNumber: encoded.requestNumber }
  }

  /** A request that cannot be encoded leaves its slot to the next that waits. */
  #encode(request: Request, deadlineUs: number, repeatOf: bigint | undefined): ReturnType<Session['request']> {
    try {
      return this.#session.request(request, deadlineUs, repeatOf)
    } catch (error) {
      this.#slots.shift()?.()
      throw error
    }
  }

  #slot(): Promise<void> {
    if (this.#slots.length >= SDK_DEFAULTS.maxQueuedRequests) {
      const message = `${this.peer}: ${this.#slots.length} requests wait already`
      return Promise.reject(new EdgeError('EDGE_BACKPRESSURE', message))
    }
    return new Promise((resolve) => this.#slots.push(resolve))
  }

  #received(bytesView: Uint8Array): void {
    try {
      for (const completion of this.#session.received(bytesView)) this.#answered(completion)
    } catch (error) {
      this.abort(toEdgeError(error))
      return
    }
    const { endedBy } = this.#session
    if (endedBy) this.abort(endedBy)
    else this.#armTimer()
  }

  #answered(completion: Completion): void {
    const caller = this.#callers.get(completion.id)
    caller?.patience.answered(this.#settings.clock.monotonicUs() - caller.sentUs)
    this.#complete(completion)
  }

  #complete(completion: Completion): void {
    const caller = this.#callers.get(completion.id)
    this.#callers.delete(completion.id)
    if ('error' in completion) caller?.reject(completion.error)
    else caller?.resolve(completion.body)
    this.#slots.shift()?.()
  }

  #armTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    const deadlineUs = this.#session.table.nextDeadlineUs
    if (deadlineUs === null || this.#error) return
    const waitMs = Math.max(0, (deadlineUs - this.#settings.clock.monotonicUs()) / US_MS)
    // One that comes too early is armed anew.
    this.#timer = setTimeout(() => this.#checkDeadlines(), Math.min(MAX_TIMER_MS, waitMs + 1))
  }

  #checkDeadlines(): void {
    const expired = this.#session.table.expired(this.#settings.clock.monotonicUs())
    if (expired !== undefined) {
      this.#callers.get(expired.id)?.patience.timedOut()
      this.abort(new EdgeError('EDGE_UPSTREAM_TIMEOUT', `${this.peer}: no answer in time`))
    } else {
      this.#armTimer()
    }
  }

  #end(error: EdgeError): void {
    if (this.#error) return
    this.#error = error
    if (this.#timer !== null) clearTimeout(this.#timer)
    if (this.#heartbeat !== null) clearInterval(this.#heartbeat)
    for (const completion of this.#session.lost(error)) this.#complete(completion)
    for (const release of this.#slots.splice(0)) release()
    this.#settleClosed(error)
  }
}

/** 58 was surely not applied; 57 may have been, so only what the server recognises by its number is repeated. */
function isRepeatable(error: unknown, code: CommandCode): boolean {
  const status = iggyCodeOf(error)
  if (status === NOT_ACCEPTED) return true
  if (status !== NOT_COMMITTED) return false
  const operation = operationOf(code)
  return operation === OPERATION.register || (operation >= OPERATION.createStream && operation < OPERATION.sendMessages)
}

/** Also when it was aborted before: a listener would not be told. */
function whenAborted(signal: AbortSignal, act: () => void): void {
  signal.addEventListener('abort', act, { once: true })
  if (signal.aborted) act()
}

function givenUp({ peer }: Transport): EdgeError {
  return new EdgeError('EDGE_CONNECTION_LOST', `${peer}: given up by us before it was open`)
}

/** The first bytes of a peer: as text where they are one, such as `"HTTP/1.1"`. */
function shownStart(bytesView: Uint8Array): string {
  const text = String.fromCharCode(...bytesView)
  return /^[ -~]+$/.test(text) ? `"${text}"` : bytesView.toHex()
}
