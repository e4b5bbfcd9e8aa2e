/** The dialing side: what the package constructs as a pair of socket and client. */
import { isIPv6 } from 'node:net'
import { QuinnSession } from './adapter-session.ts'
import { quinnAddon } from './addon.ts'
import { needClientSocket } from './client-socket.ts'
import type { NativeClient, NativeSession } from './native-types.ts'
import type { ClientArguments, ClientOwner } from './package-types.ts'

const DEFAULT_PORT = 443

export class Http3WebTransportClientSocket {
  cobj: { closeClientInt(): void } | undefined

  init(): void {}

  closeClient(): void {
    this.cobj?.closeClientInt()
  }
}

export class Http3WebTransportClient {
  jsobj: ClientOwner | undefined
  readonly #args: ClientArguments
  #native: NativeSession | undefined
  #session: QuinnSession | undefined
  #isGone = false

  constructor(args: ClientArguments) {
    this.#args = args
  }

  createTransport(target: { path: string }): void {
    const { host, port, protocols } = this.#args
    const url = `https://${isIPv6(host) ? `[${host}]` : host}:${Number(port ?? DEFAULT_PORT)}${target.path}`
    this.#client()
      .then((client) => client.connect(url, protocols?.length ? { protocols } : null))
      .then(
        (native) => this.#connected(native),
        (error: unknown) => this.#failed(error),
      )
  }

  openWTSession(): void {
    if (this.#native === undefined) return
    const session = new QuinnSession(this.#native)
    this.#session = session
    this.#native = undefined
    this.jsobj?.onHttpWTSessionVisitor({ session, reliable: false })
    session.start()
  }

  /** A connect under way cannot be called off: what it brings is closed when it comes (30 s at most). */
  closeClient(): void {
    this.#isGone = true
    this.#native?.close(0, '')
    this.#native = undefined
    if (this.#session?.isClosed === false) this.#session.close({ code: 0, reason: '' })
  }

  /** Async so that a failure reaches the package after it has set `jsobj`, like every other one. */
  async #client(): Promise<NativeClient> {
    const hashes = this.#args.serverCertificateHashes
    const { NapiClient } = quinnAddon()
    await needClientSocket()
    if (!hashes?.length) return NapiClient.withSystemRoots()
    return NapiClient.withCertificateHashes(hashes.map((hash) => bufferOf(hash.value)))
  }

  #connected(native: NativeSession): void {
    if (this.#isGone) {
      native.close(0, '')
      return
    }
    this.#native = native
    this.jsobj?.onClientConnected({ success: true })
    this.jsobj?.onClientWebTransportSupport({})
  }

  #failed(error: unknown): void {
    if (this.#isGone) return
    this.#args.onConnectFailed?.(error)
    this.jsobj?.onClientConnected({ success: false })
  }
}

function bufferOf(value: Uint8Array | ArrayBuffer): Buffer {
  if (value instanceof ArrayBuffer) return Buffer.from(value)
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}
