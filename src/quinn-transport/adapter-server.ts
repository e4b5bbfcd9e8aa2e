/** The listening side: what the package constructs as a pair of socket and server. */
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { QuinnSession } from './adapter-session.ts'
import { quinnAddon } from './addon.ts'
import { needClientSocket } from './client-socket.ts'
import type { NativeRequest, NativeServer } from './native-types.ts'
import type { ServerArguments, ServerOwner } from './package-types.ts'

const DEFAULT_PORT = 443
const STATUS_OK = 200
const STATUS_NOT_FOUND = 404
const STATUS_UNAVAILABLE = 503

export class Http3WebTransportServerSocket {
  jsobj: ServerOwner | undefined
  cobj: Http3WebTransportServer | undefined
  readonly #args: ServerArguments
  #address = ''
  #isStopping = false

  constructor(args: ServerArguments) {
    this.#args = args
  }

  init(): void {
    this.#run().catch((error: unknown) => this.jsobj?.onServerError(error))
  }

  /**
   * Ends all sessions and stops accepting. The native `close()` blocks the whole thread while an `accept()` is pending,
   * so we connect to ourselves: that wakes the accept, and the loop closes once none is pending. Where no client can be had,
   * the next peer that connects does it.
   */
  stopServer(): void {
    if (this.#isStopping) return
    this.#isStopping = true
    this.cobj?.closeSessions()
    if (this.#address === '') return
    this.#wake().catch(() => {}) // refused by our own loop, as meant
  }

  async #wake(): Promise<void> {
    await needClientSocket()
    const session = await quinnAddon().NapiClient.disableVerify().connect(`https://${this.#address}/`, null)
    session.close(0, '')
  }

  async #run(): Promise<void> {
    const { address } = await lookup(this.#args.host || 'localhost')
    const wanted = Number(this.#args.port ?? DEFAULT_PORT)
    const port = wanted === 0 ? await freeUdpPort(address) : wanted
    const server = quinnAddon().NapiServer.bind(
      `${bracketed(address)}:${port}`,
      pemOf(this.#args.cert),
      pemOf(this.#args.privKey),
    )
    this.#address = `${bracketed(reachable(address))}:${port}`
    this.jsobj?.onServerListening({ port, host: address })
    if (this.#isStopping) {
      server.close()
    } else {
      await this.#acceptAll(server)
    }
    this.jsobj?.onServerClose()
  }

  async #acceptAll(server: NativeServer): Promise<void> {
    try {
      while (!this.#isStopping) {
        const request = await server.accept()
        if (request === null) break
        if (this.#isStopping) await request.reject(STATUS_UNAVAILABLE).catch(() => {})
        else this.cobj?.request(request)
      }
    } finally {
      server.close()
    }
  }
}

export class Http3WebTransportServer {
  jsobj: ServerOwner | undefined
  readonly #maxSessions: number
  readonly #paths = new Set<string>()
  readonly #sessions = new Set<QuinnSession>()
  #hasRequestHandler = false

  constructor(args: ServerArguments) {
    this.#maxSessions = args.maxConnections ?? Number.POSITIVE_INFINITY
  }

  addPath(path: string): void {
    this.#paths.add(path)
  }

  setJSRequestHandler(hasHandler: boolean): void {
    this.#hasRequestHandler = hasHandler
  }

  closeSessions(): void {
    for (const session of [...this.#sessions]) session.close({ code: 0, reason: 'server stopped' })
  }

  request(request: NativeRequest): void {
    this.#answer(request).catch(() => {}) // the peer went away while it asked
  }

  /** The package answers here once its request handler has decided. */
  finishSessionRequest(decision: {
    session: NativeRequest
    status?: number
    path?: string
    header: Record<string, string>
    userData?: unknown
  }): void {
    const { session: request, status = STATUS_NOT_FOUND, header, userData } = decision
    const path = decision.path ?? pathOf(header[':path'] ?? '/')
    const work = status === STATUS_OK ? this.#accept(request, path, header, userData) : request.reject(status)
    work.catch(() => {})
  }

  async #answer(request: NativeRequest): Promise<void> {
    const url = new URL(await request.url)
    const header = {
      ':method': 'CONNECT',
      ':protocol': 'webtransport',
      ':scheme': 'https',
      ':authority': url.host,
      ':path': url.pathname + url.search,
    }
    if (this.#sessions.size >= this.#maxSessions) return request.reject(STATUS_UNAVAILABLE)
    if (this.#hasRequestHandler) {
      // quinn's addon tells neither the peer's address nor its request headers.
      const common = { header, session: request, peerAddress: undefined, protocol: 'http3:quinn', promise: true }
      this.jsobj?.onSessionRequest({ ...common, object: this })
      return
    }
    if (!this.#paths.has(url.pathname)) return request.reject(STATUS_NOT_FOUND)
    await this.#accept(request, url.pathname, header, undefined)
  }

  async #accept(
    request: NativeRequest,
    path: string,
    header: Record<string, string>,
    userData: unknown,
  ): Promise<void> {
    const session = new QuinnSession(await request.ok())
    this.#sessions.add(session)
    session.onDown = () => this.#sessions.delete(session)
    this.jsobj?.onHttpWTSessionVisitor({ session, path, header, peerAddress: undefined, userData, reliable: false })
    session.start()
  }
}

/** The native server does not tell which port it got, so a free one is looked for beforehand. */
function freeUdpPort(address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
    probe.once('error', reject)
    probe.bind(0, address, () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })
}

function reachable(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1'
  return address === '::' ? '::1' : address
}

function bracketed(address: string): string {
  return isIPv6(address) ? `[${address}]` : address
}

function pathOf(pathAndQuery: string): string {
  return new URL(pathAndQuery, 'https://edge').pathname
}

function pemOf(pem: string | string[]): Buffer {
  return Buffer.from(Array.isArray(pem) ? pem.join('\n') : pem)
}
