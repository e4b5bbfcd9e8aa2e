/**
 * A client that stays connected: dials again with growing pauses, logs in each time, and lets requests wait meanwhile.
 * Requests that read are repeated on the next connection, on a few at most; a write whose answer was lost fails with EDGE_CONNECTION_LOST,
 * since only the caller knows whether doing it twice is harmless.
 */
import { type Clock, systemClock, US_MS } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { setLongTimeout } from '../../long-timer.ts'
import { randomId } from '../../random-id.ts'
import { GroupsApi } from '../api/groups.ts'
import { MessagesApi } from '../api/messages.ts'
import { OffsetsApi } from '../api/offsets.ts'
import type { Requester } from '../api/requester.ts'
import { StreamsApi } from '../api/streams.ts'
import { SystemApi } from '../api/system.ts'
import { TokensApi } from '../api/tokens.ts'
import { TopicsApi } from '../api/topics.ts'
import { UsersApi } from '../api/users.ts'
import type { ConnectionTarget } from '../connection-string.ts'
import { SDK_DEFAULTS } from '../defaults.ts'
import { sleep } from '../sleep.ts'
import type { Dial } from '../transport/transport.ts'
import { CODE, type CommandCode, OPERATION, operationOf } from '../wire/codes.ts'
import type { RequestBody, ResponseBody } from '../wire/commands/index.ts'
import type { Dialect } from '../wire/dialect.ts'
import { Connection, fixedPatience, type RequestOptions } from './connection.ts'
import { Consumer, type ConsumerOptions } from './consumer.ts'
import { Producer, type ProducerOptions } from './producer.ts'
import { Backoff } from './retry.ts'

export interface ClientOptions {
  readonly clock?: Clock
  /** 0 <= value < 1, for jitter. */
  readonly random?: () => number
  /** Told when a connection stands and when it is lost. */
  readonly onStateChange?: (state: ClientState, error: EdgeError | null) => void
}

export type ClientState = 'connecting' | 'connected' | 'disconnected' | 'closed'

export class Client implements Requester, AsyncDisposable {
  readonly system = new SystemApi(this)
  readonly users = new UsersApi(this)
  readonly tokens = new TokensApi(this)
  readonly streams = new StreamsApi(this)
  readonly topics = new TopicsApi(this)
  readonly messages = new MessagesApi(this)
  readonly offsets = new OffsetsApi(this)
  readonly groups = new GroupsApi(this)
  readonly target: ConnectionTarget
  readonly clock: Clock
  readonly random: () => number
  readonly #dial: Dial
  readonly #options: ClientOptions
  readonly #abort = new AbortController()
  readonly #backoff: Backoff
  readonly #waiters: { resolve(connection: Connection): void; reject(error: EdgeError): void }[] = []
  /** Called after each login, the first one excepted: groups are joined again. */
  readonly #onReconnected = new Set<() => void>()
  #connection: Connection | null = null
  #connectedAtUs = 0
  #connectionCount = 0
  #state: ClientState = 'disconnected'
  #running: Promise<void> | null = null

  /** Use `connect`. */
  constructor(target: ConnectionTarget, dial: Dial, options: ClientOptions = {}) {
    this.target = target
    this.#dial = dial
    this.#options = options
    this.clock = options.clock ?? systemClock
    this.random = options.random ?? Math.random
    this.#backoff = new Backoff(
      {
        minDelayUs: target.options.reconnectionIntervalMs * US_MS,
        maxDelayUs: Math.max(SDK_DEFAULTS.reconnectionIntervalMaxMs, target.options.reconnectionIntervalMs) * US_MS,
      },
      this.random,
    )
  }

  get state(): ClientState {
    return this.#state
  }

  /** How many connections there have been: what was known of the server may no longer be so when it changes. */
  get connectionCount(): number {
    return this.#connectionCount
  }

  /** Of the current connection; null while there is none. */
  get dialect(): Dialect | null {
    return this.#connection?.dialect ?? null
  }

  /** Connects for the first time. @throws {EdgeError} what that attempt met; no other is made then. */
  async open(): Promise<void> {
    await this.#connect()
    this.#running = this.#stayConnected()
  }

  /** @throws {EdgeError} the server's refusal, EDGE_UPSTREAM_TIMEOUT, EDGE_CONNECTION_LOST, EDGE_SHUTTING_DOWN. */
  async request<C extends CommandCode>(
    code: C,
    body: RequestBody<C>,
    options: RequestOptions = {},
  ): Promise<ResponseBody<C>> {
    for (let lostCount = 1; ; lostCount++) {
      const connection = this.#connection ?? (await this.#nextConnection(options.timeoutMs))
      try {
        return await connection.request(code, body, options)
      } catch (error) {
        const isLost = error instanceof EdgeError && error.code === 'EDGE_CONNECTION_LOST'
        const isAgain = isReadOnly(code, body) && lostCount < SDK_DEFAULTS.readConnections
        if (!isLost || !isAgain || this.#state === 'closed') throw error
        if (this.#connection === connection) this.#connection = null
      }
    }
  }

  producer(options: ProducerOptions): Producer {
    return new Producer(this, options)
  }

  consumer(options: ConsumerOptions): Consumer {
    return new Consumer(this, options)
  }

  /** @returns a function that takes the callback away again. */
  onReconnected(callback: () => void): () => void {
    this.#onReconnected.add(callback)
    return () => this.#onReconnected.delete(callback)
  }

  /** Logs out of nothing: the server ends the session with the connection. Idempotent. */
  async close(): Promise<void> {
    if (this.#state === 'closed') return
    this.#enter('closed', null)
    this.#abort.abort()
    this.#connection?.close()
    const error = new EdgeError('EDGE_SHUTTING_DOWN', 'the client was closed')
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error)
    await this.#running
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // ---- connection --------------------------------------------------------------------------------------------------------

  async #connect(): Promise<Connection> {
    this.#enter('connecting', null)
    const { options, credentials } = this.target
    try {
      const connection = await Connection.open(
        {
          dial: this.#dial,
          generation: options.generation,
          credentials,
          connectTimeoutMs: options.connectTimeoutMs,
          patience: fixedPatience(options.requestTimeoutMs),
          heartbeatIntervalMs: options.heartbeatIntervalMs,
          maxInFlight: SDK_DEFAULTS.maxInFlight,
          clock: this.clock,
          randomU128: randomId,
        },
        this.#abort.signal,
      )
      this.#connected(connection)
      return connection
    } catch (error) {
      this.#enter('disconnected', toEdgeError(error))
      throw error
    }
  }

  #connected(connection: Connection): void {
    if (this.#state === 'closed') {
      connection.close()
      return
    }
    this.#connection = connection
    this.#connectedAtUs = this.clock.monotonicUs()
    this.#connectionCount += 1
    this.#enter('connected', null)
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(connection)
    if (this.#connectionCount > 1) for (const callback of this.#onReconnected) callback()
  }

  async #stayConnected(): Promise<void> {
    const { reconnectionRetries } = this.target.options
    const reestablishAfterMs = Math.max(this.target.options.reestablishAfterMs, SDK_DEFAULTS.leastAliveMs)
    let failures = 0
    while (this.#state !== 'closed') {
      const connection = this.#connection
      if (connection !== null) {
        const error = await connection.closed
        if (this.#connection === connection) this.#connection = null
        if (this.#isClosed()) return
        this.#enter('disconnected', error)
        const aliveMs = (this.clock.monotonicUs() - this.#connectedAtUs) / US_MS
        if (aliveMs > SDK_DEFAULTS.stableAfterMs) this.#backoff.reset()
        if (aliveMs < reestablishAfterMs) await sleep(this.#backoff.nextDelayUs() / US_MS, this.#abort.signal)
      }
      try {
        await this.#connect()
        failures = 0
      } catch (error) {
        failures += 1
        if (this.#isClosed()) return
        if (isHopeless(error) || (reconnectionRetries !== null && failures > reconnectionRetries)) {
          this.#failWaiters(toEdgeError(error))
        }
        await sleep(this.#backoff.nextDelayUs() / US_MS, this.#abort.signal)
      }
    }
  }

  #isClosed(): boolean {
    return this.#state === 'closed'
  }

  #nextConnection(timeoutMs = this.target.options.requestTimeoutMs): Promise<Connection> {
    if (this.#state === 'closed') return Promise.reject(new EdgeError('EDGE_SHUTTING_DOWN', 'the client was closed'))
    if (this.#waiters.length >= SDK_DEFAULTS.maxQueuedRequests) {
      return Promise.reject(
        new EdgeError('EDGE_BACKPRESSURE', `${this.#waiters.length} requests wait for a connection`),
      )
    }
    const { promise, resolve, reject } = Promise.withResolvers<Connection>()
    const waiter = { resolve, reject }
    const stopTimer = setLongTimeout(() => {
      const index = this.#waiters.indexOf(waiter)
      if (index >= 0) this.#waiters.splice(index, 1)
      reject(new EdgeError('EDGE_UPSTREAM_TIMEOUT', `no connection within ${timeoutMs} ms`))
    }, timeoutMs)
    this.#waiters.push(waiter)
    return promise.finally(stopTimer)
  }

  #failWaiters(error: EdgeError): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error)
  }

  #enter(state: ClientState, error: EdgeError | null): void {
    if (this.#state === 'closed') return
    this.#state = state
    this.#options.onStateChange?.(state, error)
  }
}

/** Trying again will not help until an operator acts; whoever waits is told at once. */
function isHopeless(error: unknown): boolean {
  return error instanceof EdgeError && (error.kind === 'auth' || error.code === 'EDGE_VERSION_UNSUPPORTED')
}

function isReadOnly<C extends CommandCode>(code: C, body: RequestBody<C>): boolean {
  if (code === CODE.pollMessages) return !(body as RequestBody<typeof CODE.pollMessages>).autoCommit
  return operationOf(code) === OPERATION.nonReplicated && code !== CODE.flushUnsavedBuffer
}
