/**
 * A client and a server connection over a faulty link with address changes and key updates, all moved by one seed: the same
 * seed gives the same trace.
 *
 * Invariants: bytes arrive as they were written, in order, once; before an address has shown that it receives, at most
 * three times what came from it is sent there; no key seals a packet number twice; flow control is kept (a breach of either
 * side closes the connection, which must not happen); nothing stands still; at the end nothing is left.
 */
import { createHash } from 'node:crypto'
import type { ConnectionLimits, PeerAddress } from '../../../src/quic-edge/engine/connection/api.ts'
import type { QuicConnection } from '../../../src/quic-edge/engine/connection/connection.ts'
import { GROUP } from '../../../src/quic-edge/engine/crypto/key-exchange.ts'
import { SeededRandom } from '../seeded-random.ts'
import { FaultyLink } from './faulty-link.ts'
import { ClientLoad, ServerLoad } from './quic-load.ts'
import { addressOf, type PairOptions, QuicPair, SERVER_ADDRESS } from './quic-pair.ts'
import { watchSealing } from './sealing-watch.ts'
import { VirtualTime } from './virtual-time.ts'

const LOSSES = [0, 0.02, 0.05, 0.1, 0.2, 0.3]
const STEPS_MAX = 2_000_000
const TIME_MAX_MS = 100 * 60_000
/** Events of one instant after which time counts as standing still. */
const INSTANT_EVENTS_MAX = 20_000
const DATAGRAMS_PER_FLUSH = 1000
/** So that neither side is idle, and a client that only waits shows the server its new address. */
const PING_INTERVAL_MS = 15_000
/** What must be left by then is left for ever. */
const QUIET_MS = 60_000
/** Address changes are over by then: the last ping that shows the server where the client is. */
const LAST_PING_MS = 5000
const REORDERED_ADDRESS_CHANCE = 0.3

/** Most handshakes are the shortest; some need a HelloRetryRequest, some have a hello of two packets. */
function handshakeOf(seed: number): PairOptions {
  if (seed % 7 === 3) return { serverTls: { groups: [GROUP.p256] } }
  if (seed % 7 === 5) return { clientTls: { foreignShares: [{ group: 0x11ec, publicBytes: new Uint8Array(1216) }] } }
  return {}
}

export interface WorldResult {
  readonly seed: number
  readonly fault: string | undefined
  /** Of every datagram: when, from whom, how large. */
  readonly trace: string
  readonly summary: string
}

export class QuicWorld {
  readonly seed: number
  readonly time = new VirtualTime()
  readonly random: SeededRandom
  readonly #pair: QuicPair
  readonly #link: FaultyLink
  readonly #clientLoad: ClientLoad
  readonly #trace = createHash('sha256')
  /** What the server got from, and sent to, each address; and whether anything of it arrived. */
  readonly #traffic = new Map<string, { received: number; sent: number; isProven: boolean }>()
  readonly #armed = new Map<QuicConnection, number>()
  readonly #flushing = new Set<QuicConnection>()
  #clientPort = 40_000
  #clientHost = 1
  #isQuiet = false
  #fault: string | undefined

  constructor(seed: number) {
    this.seed = seed
    this.random = new SeededRandom(seed)
    const delayMs = 1 + this.random.next() * 60
    this.#link = new FaultyLink(this.time, this.random, {
      loss: LOSSES[seed % LOSSES.length] ?? 0,
      repetition: this.random.next() * 0.05,
      damage: this.random.next() * 0.02,
      delayMs,
      jitterMs: this.random.chance(0.5) ? 0 : this.random.next() * delayMs,
    })
    const limits = this.#limits()
    this.#pair = new QuicPair({
      ...handshakeOf(seed),
      client: limits,
      server: limits,
      random: (size) => this.#bytes(size),
    })
    this.#pair.clientAddress = this.#address()
    const { client, server, clientHost, serverHost } = this.#pair
    this.#clientLoad = new ClientLoad(this, client)
    new ServerLoad(this, server)
    client.onConnected = () => this.#connected()
    for (const connection of [client, server]) connection.onClosed = ({ reason }) => this.#closed(connection, reason)
    clientHost.onWake = () => this.#flushSoon(client)
    serverHost.onWake = () => this.#flushSoon(server)
  }

  fail = (what: string): void => {
    this.#fault ??= `${what} (at ${this.time.nowMs.toFixed(1)} ms)`
  }

  /** Runs until both sides are done and closed, or something is wrong. */
  run(): WorldResult {
    const watch = watchSealing()
    this.time.after(PING_INTERVAL_MS, () => this.#keepAlive())
    this.#flush(this.#pair.client)
    this.#loop()
    if (watch.fault !== undefined) this.fail(watch.fault)
    watch.stop()
    const { client, server } = this.#pair
    if (this.#fault === undefined && !(client.isFinished && server.isFinished)) this.fail(`stalled: ${this.#summary()}`)
    for (const host of [this.#pair.clientHost, this.#pair.serverHost]) {
      if (this.#fault === undefined && host.ids.length > 0) this.fail('connection ids are left')
    }
    return { seed: this.seed, fault: this.#fault, trace: this.#trace.digest('hex'), summary: this.#summary() }
  }

  #loop(): void {
    const { client, server } = this.#pair
    let instantMs = -1
    let instantEvents = 0
    for (let step = 0; step < STEPS_MAX && this.time.nowMs < TIME_MAX_MS && this.#fault === undefined; step++) {
      if (!this.#isQuiet && this.#clientLoad.isDone && client.stats.streamCount + server.stats.streamCount === 0) {
        this.#isQuiet = true
        this.time.after(LAST_PING_MS, () => client.ping())
        this.time.after(QUIET_MS, () => this.#finish())
      }
      if ((client.isFinished && server.isFinished) || !this.time.step()) return
      instantEvents = this.time.nowMs === instantMs ? instantEvents + 1 : 0
      instantMs = this.time.nowMs
      if (instantEvents > INSTANT_EVENTS_MAX) this.fail('time stands still')
    }
  }

  #limits(): Partial<ConnectionLimits> {
    const { random } = this
    return {
      connectionWindowBytes: 2 ** (15 + random.below(6)),
      streamWindowBytes: 2 ** (14 + random.below(5)),
      maxBidirectionalStreams: 4 + random.below(40),
      maxUnidirectionalStreams: 3 + random.below(20),
      idleTimeoutMs: 3_600_000,
      handshakeTimeoutMs: 3_600_000,
      sendHighWaterBytes: 2 ** (13 + random.below(6)),
    }
  }

  #bytes(size: number): Uint8Array {
    return Uint8Array.from({ length: size }, () => this.random.below(256))
  }

  #address(): PeerAddress {
    return addressOf(`192.0.2.${this.#clientHost}`, this.#clientPort)
  }

  /** Faults that come on purpose, once there is a connection. */
  #connected(): void {
    const { client, server } = this.#pair
    this.#clientLoad.open()
    const later = (count: number, run: () => void) => {
      for (let index = 0; index < count; index++) this.time.after(this.random.next() * 3000, run)
    }
    if (this.seed % 4 === 1) later(3, () => (this.random.chance(0.5) ? client : server).updateKeys())
    if (this.seed % 5 === 2) later(2, () => this.#changeAddress())
  }

  #changeAddress(): void {
    this.#clientPort++
    if (this.random.chance(REORDERED_ADDRESS_CHANCE)) this.#clientHost++
    this.#pair.clientAddress = this.#address()
  }

  #flushSoon(connection: QuicConnection): void {
    if (this.#flushing.has(connection)) return
    this.#flushing.add(connection)
    this.time.after(0, () => {
      this.#flushing.delete(connection)
      this.#flush(connection)
    })
  }

  #flush(connection: QuicConnection): void {
    const isClient = connection === this.#pair.client
    const send = (bytes: Uint8Array, to: PeerAddress) => (isClient ? this.#toServer(bytes) : this.#toClient(bytes, to))
    while (connection.flush(this.time.nowMs, send, DATAGRAMS_PER_FLUSH)) this.fail('more to send than a window holds')
    this.#arm(connection)
  }

  #toServer(bytes: Uint8Array): void {
    const from = this.#pair.clientAddress
    this.#note('client', bytes)
    this.#link.send(bytes, (arrived) => {
      this.#trafficOf(from).received += arrived.length
      this.#pair.server.receive(arrived, from, this.time.nowMs)
      this.#flush(this.#pair.server)
    })
  }

  #toClient(bytes: Uint8Array, to: PeerAddress): void {
    this.#note('server', bytes)
    const traffic = this.#trafficOf(to)
    traffic.sent += bytes.length
    if (!traffic.isProven && traffic.sent > 3 * traffic.received) {
      this.fail(`${traffic.sent} bytes to an address that sent ${traffic.received}`)
    }
    this.#link.send(bytes, (arrived) => {
      if (to.key !== this.#pair.clientAddress.key) return
      traffic.isProven = true
      this.#pair.client.receive(arrived, SERVER_ADDRESS, this.time.nowMs)
      this.#flush(this.#pair.client)
    })
  }

  #trafficOf(address: PeerAddress): { received: number; sent: number; isProven: boolean } {
    const traffic = this.#traffic.get(address.key) ?? { received: 0, sent: 0, isProven: false }
    this.#traffic.set(address.key, traffic)
    return traffic
  }

  #note(who: string, bytes: Uint8Array): void {
    this.#trace.update(`${this.time.nowMs.toFixed(3)} ${who} ${bytes.length};`)
  }

  #arm(connection: QuicConnection): void {
    const { deadlineMs } = connection
    if (deadlineMs === Number.POSITIVE_INFINITY || this.#armed.get(connection) === deadlineMs) return
    this.#armed.set(connection, deadlineMs)
    this.time.at(deadlineMs, () => {
      if (this.#armed.get(connection) === deadlineMs) this.#armed.delete(connection)
      if (connection.deadlineMs > this.time.nowMs) {
        this.#arm(connection)
        return
      }
      connection.tick(this.time.nowMs)
      this.#flush(connection)
    })
  }

  #keepAlive(): void {
    if (this.#isQuiet || this.#pair.client.closeInfo !== undefined) return
    this.#pair.client.ping()
    this.time.after(PING_INTERVAL_MS, () => this.#keepAlive())
  }

  #finish(): void {
    const { client, server } = this.#pair
    for (const { stats } of [client, server]) {
      if (stats.bytesInFlight !== 0) this.fail(`${stats.bytesInFlight} bytes stay in flight`)
      if (stats.unreadBytes !== 0) this.fail(`${stats.unreadBytes} bytes of credit are lost`)
    }
    client.close(0, 'done')
  }

  #closed(connection: QuicConnection, reason: string): void {
    // The close may get lost; the server then is idle.
    if (reason === 'done' || (this.#isQuiet && reason === 'idle timeout')) return
    const who = connection === this.#pair.client ? 'client' : 'server'
    this.fail(`${who} closed: ${JSON.stringify(connection.closeInfo)}`)
  }

  #summary(): string {
    const { client, server } = this.#pair
    const load = this.#clientLoad
    return [
      `datagrams ${this.#link.sentCount} lost ${this.#link.lostCount}`,
      `streams ${load.doneCount}/${load.streamCount} reset ${load.resetCount} answers ${load.answerCount}/${load.oneWayCount}`,
      `left ${client.stats.streamCount}/${server.stats.streamCount}`,
      `probes ${client.stats.probeTimeouts}/${server.stats.probeTimeouts} updates ${server.stats.keyUpdates}`,
      `migrations ${server.stats.migrations} in flight ${client.stats.bytesInFlight}/${server.stats.bytesInFlight}`,
      `connected ${client.isConnected}/${server.isConnected}`,
    ].join(', ')
  }
}
