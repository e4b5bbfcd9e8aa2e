/**
 * WebTransport over QUIC (HTTP/3): the package over quinn, or over its own quiche transport where that is installed.
 *
 * quinn's addon can neither exchange the certificate of a bound socket nor share its port, so a new certificate means a
 * new socket: it is tried on a port of its own first; then living sessions get a while to end, are closed with code 18 (come
 * back at once), and the port is bound anew as soon as the addon has given it back.
 */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import { EdgeError, messageOf } from '../../errors.ts'
import { collectGarbage } from '../../garbage.ts'
import { type LoadedWebTransport, loadWebTransport, type PackageServer } from '../../quinn-transport/index.ts'
import { QUIC_EDGE_DEFAULTS } from '../defaults.ts'
import { type ListenOptions, type QuicDriver, type QuicListener, SESSION_CODES, type SessionGate } from '../ports.ts'
import { listening, serveSessions } from './package-listener.ts'
import { SessionHost, within } from './session-host.ts'

/** @throws EDGE_FEATURE_MISSING when no QUIC transport can be loaded. */
export async function createWebTransportDriver(clock: Clock): Promise<QuicDriver> {
  const library = await loadWebTransport()
  return {
    name: `webtransport-${library.transportName}`,
    listen: (options, gate) => WebTransportListener.open(library, options, gate, clock),
  }
}

const LOOPBACK = '127.0.0.1'

class WebTransportListener implements QuicListener {
  readonly host: string
  readonly port: number
  readonly #library: LoadedWebTransport
  /** As it listens now. */
  #options: ListenOptions
  readonly #gate: SessionGate
  readonly #host: SessionHost
  #server: PackageServer
  #replacing: Promise<void> = Promise.resolve()
  #closing: Promise<void> | undefined
  /** Why nothing listens; empty while it does. */
  failure = ''

  static async open(
    library: LoadedWebTransport,
    options: ListenOptions,
    gate: SessionGate,
    clock: Clock,
  ): Promise<WebTransportListener> {
    const host = new SessionHost(options.limits, gate, clock)
    try {
      const server = startServer(library, options, gate, host)
      const address = await listening(server, options)
      return new WebTransportListener({ library, options, gate, host, server, address })
    } catch (error) {
      host.stop()
      throw error
    }
  }

  private constructor(parts: {
    library: LoadedWebTransport
    options: ListenOptions
    gate: SessionGate
    host: SessionHost
    server: PackageServer
    address: { host: string; port: number }
  }) {
    this.host = parts.address.host
    this.port = parts.address.port
    this.#library = parts.library
    this.#options = { ...parts.options, port: parts.address.port }
    this.#gate = parts.gate
    this.#host = parts.host
    this.#server = parts.server
  }

  async tryCertificate(certificatePem: string, privateKeyPem: string): Promise<void> {
    const options = { ...this.#options, host: LOOPBACK, port: 0, certificatePem, privateKeyPem }
    const trial = startServer(this.#library, options, this.#gate, this.#host)
    await listening(trial, options)
    trial.stopServer()
    await within(QUIC_EDGE_DEFAULTS.resetTimeoutMs, trial.closed, undefined)
  }

  replaceCertificate(certificatePem: string, privateKeyPem: string): Promise<void> {
    const options = { ...this.#options, certificatePem, privateKeyPem }
    this.#replacing = this.#replacing.catch(() => {}).then(() => this.#rebind(options))
    return this.#replacing
  }

  close(code: number, graceMs: number): Promise<void> {
    this.#closing ??= this.#end(code, graceMs)
    return this.#closing
  }

  async #end(code: number, graceMs: number): Promise<void> {
    this.#host.closeAll(code, 'the edge stops')
    await this.#host.whenEmpty(graceMs)
    this.#host.stop()
    this.#server.stopServer()
    await within(graceMs, this.#server.closed, undefined)
    await this.#portReleased(graceMs)
  }

  /** So that whoever starts anew on the same port finds it free. */
  async #portReleased(graceMs: number): Promise<void> {
    const deadline = performance.now() + graceMs
    // The addon's objects hold the socket until they are collected, and a change of certificate cannot wait for that.
    collectGarbage()
    while (!(await isUdpPortFree(this.host, this.port)) && performance.now() < deadline) {
      await sleep(QUIC_EDGE_DEFAULTS.rebindIntervalMs)
      collectGarbage()
    }
  }

  async #rebind(options: ListenOptions): Promise<void> {
    await this.#host.whenEmpty(QUIC_EDGE_DEFAULTS.certificateDrainMs)
    if (this.#closing !== undefined) return
    this.#host.closeAll(SESSION_CODES.shuttingDown, 'new certificate: reconnect')
    await this.#host.whenEmpty(QUIC_EDGE_DEFAULTS.resetTimeoutMs)
    this.#server.stopServer()
    await within(QUIC_EDGE_DEFAULTS.resetTimeoutMs, this.#server.closed, undefined)
    try {
      this.#server = await this.#bindAgain(options)
      this.#options = options
      this.failure = ''
    } catch (error) {
      await this.#bindAsBefore()
      throw error
    }
  }

  async #bindAsBefore(): Promise<void> {
    try {
      this.#server = await this.#bindAgain(this.#options)
      this.failure = ''
    } catch (error) {
      this.failure = `nothing listens over QUIC since the certificate was replaced: ${messageOf(error)}`
    }
  }

  async #bindAgain(options: ListenOptions): Promise<PackageServer> {
    const attempts = QUIC_EDGE_DEFAULTS.rebindTimeoutMs / QUIC_EDGE_DEFAULTS.rebindIntervalMs
    for (let attempt = 1; ; attempt++) {
      collectGarbage()
      const server = startServer(this.#library, options, this.#gate, this.#host)
      try {
        await listening(server, options)
        return server
      } catch (error) {
        const isTaken = error instanceof EdgeError && error.code === 'EDGE_ADDRESS_IN_USE'
        if (!isTaken || attempt >= attempts) throw error
      }
      await sleep(QUIC_EDGE_DEFAULTS.rebindIntervalMs)
    }
  }
}

function startServer(
  library: LoadedWebTransport,
  options: ListenOptions,
  gate: SessionGate,
  host: SessionHost,
): PackageServer {
  const server = new library.Http3Server({
    host: options.host,
    port: options.port,
    secret: 'unused',
    cert: options.certificatePem,
    privKey: options.privateKeyPem,
    defaultDatagramsReadableMode: 'default',
  })
  server.closed.catch(() => {})
  serveSessions(server, gate, host, { isReliableOnly: false, maxStreamsEver: Number.POSITIVE_INFINITY })
  server.startServer()
  return server
}

function isUdpPortFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    probe.once('error', () => probe.close(() => resolve(false)))
    probe.bind({ address: host, port, exclusive: true }, () => probe.close(() => resolve(true)))
  })
}
