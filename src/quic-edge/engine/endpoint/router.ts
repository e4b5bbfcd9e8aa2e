/**
 * Whose a datagram is, and what is answered to one that is nobody's. Pure: time and chance come in, bytes go out.
 *
 * Decides: which connection takes a datagram; whether a client's first packet may become one, must prove its address first
 * (Retry), or is refused; when a lost peer is told that its connection is gone. Relies on its owner to tell what ids
 * connections have and when they are through their handshake. Never keeps anything for a packet that may be forged: what it
 * accepts is forgotten again when nothing in it authenticates.
 */
import type { PeerAddress } from '../connection/api.ts'
import { LOCAL_ID_SIZE } from '../connection/local-ids.ts'
import {
  hasFixedBit,
  INITIAL_DATAGRAM_SIZE_MIN,
  type InvariantHeader,
  isLongHeader,
  type LongHeader,
  PACKET_TYPE,
  readInvariantHeader,
  readLongHeader,
  VERSION_1,
} from '../wire/packet-header.ts'
import { TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { refusalPacket, retryPacket, statelessReset, versionNegotiation } from './stateless-packets.ts'

/** Of the id that a client chooses for its first Initial (RFC 9000 section 7.2). */
const INITIAL_ID_SIZE_MIN = 8
/** Short header, id, and what a packet needs to be told from noise: smaller ones are not worth a look. */
const DATAGRAM_SIZE_MIN = 21

export interface RouterLimits {
  /** Handshakes under way; further clients are left to try again. */
  readonly maxHandshakes: number
  /** From so many on a client must prove its address; 0: always. */
  readonly retryAboveHandshakes: number
  /** Answers to packets of connections that are gone. */
  readonly maxResetsPerSecond: number
}

/** See `endpoint-secrets.ts`. */
export interface RouterSecrets {
  sealToken(bound: { addressKey: string; retryId: Uint8Array }, originalId: Uint8Array, nowMs: number): Uint8Array
  isOwnToken(tokenView: Uint8Array): boolean
  openToken(
    tokenView: Uint8Array,
    bound: { addressKey: string; retryId: Uint8Array },
    nowMs: number,
  ): Uint8Array | undefined
  resetToken(idView: Uint8Array): Uint8Array
}

export interface RouterOptions {
  readonly limits: RouterLimits
  readonly secrets: RouterSecrets
  /** Unpredictable bytes. */
  random(size: number): Uint8Array
  /** Whether an Initial packet is sealed as it must be: see `initial-check.ts`. */
  isSealed(datagramView: Uint8Array, header: LongHeader): boolean
  /** Whether one more connection may come from there. */
  admit(from: PeerAddress): boolean
}

/** A client's first packet that may become a connection. Owned bytes. */
export interface Acceptance {
  readonly initialDestinationIdBytes: Uint8Array
  readonly peerIdBytes: Uint8Array
  readonly originalDestinationIdBytes: Uint8Array
  readonly retrySourceIdBytes: Uint8Array | undefined
  readonly isPeerValidated: boolean
}

/** What was not begun, by reason, and what was asked of clients; since the start. */
export interface RouterCounts {
  readonly refused: { limit: number; handshakes: number; token: number; stopping: number }
  retries: number
}

export type Answer =
  | { readonly type: 'accept'; readonly acceptance: Acceptance }
  | { readonly type: 'send'; readonly bytes: Uint8Array }
  | null

/** What one connection is known by. */
interface Route {
  readonly ids: Set<string>
  isHandshaking: boolean
}

export class Router<C> {
  readonly counts: RouterCounts = { refused: { limit: 0, handshakes: 0, token: 0, stopping: 0 }, retries: 0 }
  readonly #options: RouterOptions
  readonly #byId = new Map<string, C>()
  readonly #routes = new Map<C, Route>()
  #handshakeCount = 0
  #resetSecond = 0
  #resetCount = 0
  #isStopped = false

  constructor(options: RouterOptions) {
    this.#options = options
  }

  get connectionCount(): number {
    return this.#routes.size
  }

  get handshakeCount(): number {
    return this.#handshakeCount
  }

  // ---- connections

  /** A connection was made of an acceptance. */
  add(connection: C, acceptance: Acceptance): void {
    this.#routes.set(connection, { ids: new Set(), isHandshaking: true })
    this.#handshakeCount++
    // Until it knows an id of ours, the client sends to the one it has chosen; a late copy of that must not begin anew.
    this.#addKey(connection, initialKeyOf(acceptance.initialDestinationIdBytes))
  }

  addId(connection: C, idBytes: Uint8Array): void {
    this.#addKey(connection, keyOf(idBytes, 0))
  }

  removeId(connection: C, idBytes: Uint8Array): void {
    const key = keyOf(idBytes, 0)
    if (this.#routes.get(connection)?.ids.delete(key) === true) this.#byId.delete(key)
  }

  /** The handshake is through: the peer has proved its address. */
  connected(connection: C): void {
    const route = this.#routes.get(connection)
    if (route === undefined || !route.isHandshaking) return
    route.isHandshaking = false
    this.#handshakeCount--
  }

  /** Idempotent. */
  remove(connection: C): void {
    const route = this.#routes.get(connection)
    if (route === undefined) return
    this.connected(connection)
    for (const key of route.ids) this.#byId.delete(key)
    this.#routes.delete(connection)
  }

  /** From now on nobody is taken; who is known is still found. */
  stop(): void {
    this.#isStopped = true
  }

  // ---- datagrams

  /** @returns the connection that takes the datagram, if there is one. */
  find(datagram: Uint8Array): C | undefined {
    if (datagram.length < DATAGRAM_SIZE_MIN) return undefined
    const first = datagram[0] ?? 0
    if (!isLongHeader(first)) return this.#byId.get(keyOf(datagram, 1))
    if (datagram[5] === LOCAL_ID_SIZE) {
      const found = this.#byId.get(keyOf(datagram, 6))
      if (found !== undefined) return found
    }
    const id = readInvariantHeader(datagram)?.destinationIdView
    return id === undefined || id.length < INITIAL_ID_SIZE_MIN ? undefined : this.#byId.get(initialKeyOf(id))
  }

  /** @returns what to do about a datagram that no connection takes; null: nothing. */
  answer(datagram: Uint8Array, from: PeerAddress, nowMs: number): Answer {
    if (datagram.length < DATAGRAM_SIZE_MIN) return null
    if (!isLongHeader(datagram[0] ?? 0)) return this.#reset(datagram, nowMs)
    // Everything else is an answer to a client that has something at stake, and no larger than what it sent.
    if (datagram.length < INITIAL_DATAGRAM_SIZE_MIN) return null
    const invariant = readInvariantHeader(datagram)
    if (invariant === undefined || invariant.version === 0) return null
    if (invariant.version !== VERSION_1) return sending(versionNegotiation(invariant, this.#randomByte()))
    const header = readLongHeader(datagram)
    if (header === undefined || header.type !== PACKET_TYPE.initial) return null
    if (header.destinationIdView.length < INITIAL_ID_SIZE_MIN) return null
    return this.#answerInitial(datagram, header, from, nowMs)
  }

  #answerInitial(datagram: Uint8Array, header: LongHeader, from: PeerAddress, nowMs: number): Answer {
    const { refused } = this.counts
    if (this.#isStopped) {
      refused.stopping++
      return refusal(header, TRANSPORT_ERROR.connectionRefused)
    }
    const { limits, secrets } = this.#options
    // One of another server that was here before proves nothing and is no fault (RFC 9000 section 8.1.3).
    const isProved = secrets.isOwnToken(header.tokenView)
    let originalId: Uint8Array | undefined = header.destinationIdView
    if (isProved) {
      const bound = { addressKey: from.key, retryId: header.destinationIdView }
      originalId = secrets.openToken(header.tokenView, bound, nowMs)
      // We give out tokens in Retry packets alone, and a client takes one Retry: another would not help it.
      if (originalId === undefined) {
        refused.token++
        return refusal(header, TRANSPORT_ERROR.invalidToken)
      }
    } else if (this.#handshakeCount >= limits.retryAboveHandshakes) {
      return this.#retry(header, from, nowMs)
    }
    if (this.#handshakeCount >= limits.maxHandshakes) {
      refused.handshakes++
      return null
    }
    // Whoever floods us with noise must not make us begin a connection for each.
    if (!this.#options.isSealed(datagram, header)) return null
    if (!this.#options.admit(from)) {
      refused.limit++
      return refusal(header, TRANSPORT_ERROR.connectionRefused)
    }
    const initialId = new Uint8Array(header.destinationIdView)
    return {
      type: 'accept',
      acceptance: {
        initialDestinationIdBytes: initialId,
        peerIdBytes: new Uint8Array(header.sourceIdView),
        originalDestinationIdBytes: new Uint8Array(originalId),
        retrySourceIdBytes: isProved ? initialId : undefined,
        isPeerValidated: isProved,
      },
    }
  }

  #retry(header: LongHeader, from: PeerAddress, nowMs: number): Answer {
    this.counts.retries++
    const retryId = this.#options.random(LOCAL_ID_SIZE)
    const bound = { addressKey: from.key, retryId }
    const token = this.#options.secrets.sealToken(bound, header.destinationIdView, nowMs)
    return sending(retryPacket(header, { retryId, token, randomByte: this.#randomByte() }))
  }

  #reset(datagram: Uint8Array, nowMs: number): Answer {
    if (!hasFixedBit(datagram[0] ?? 0)) return null
    const second = Math.floor(nowMs / 1000)
    if (second !== this.#resetSecond) {
      this.#resetSecond = second
      this.#resetCount = 0
    }
    if (this.#resetCount >= this.#options.limits.maxResetsPerSecond) return null
    this.#resetCount++
    const token = this.#options.secrets.resetToken(datagram.subarray(1, 1 + LOCAL_ID_SIZE))
    const bytes = statelessReset(token, datagram.length, (size) => this.#options.random(size))
    return bytes === undefined ? null : sending(bytes)
  }

  #randomByte(): number {
    return this.#options.random(1)[0] ?? 0
  }

  #addKey(connection: C, key: string): void {
    const route = this.#routes.get(connection)
    if (route === undefined) return
    route.ids.add(key)
    this.#byId.set(key, connection)
  }
}

const sending = (bytes: Uint8Array): Answer => ({ type: 'send', bytes })

const refusal = (header: InvariantHeader, code: number): Answer => sending(refusalPacket(header, code))

/** Of an id of ours. */
function keyOf(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(
    bytes[at] ?? 0,
    bytes[at + 1] ?? 0,
    bytes[at + 2] ?? 0,
    bytes[at + 3] ?? 0,
    bytes[at + 4] ?? 0,
    bytes[at + 5] ?? 0,
    bytes[at + 6] ?? 0,
    bytes[at + 7] ?? 0,
  )
}

/** Of an id that a client has chosen, of 8 bytes or more: told from ours by its length. */
function initialKeyOf(idView: Uint8Array): string {
  return `i${String.fromCharCode(...idView)}`
}
