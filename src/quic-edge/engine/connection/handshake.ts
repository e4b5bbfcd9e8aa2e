/**
 * What TLS and the packets of a connection do for each other (RFC 9001 section 4): CRYPTO bytes in order, keys to their
 * packet number spaces, transport parameters both ways, and how far the handshake has come. Pure but for the keys it makes.
 */

import type { CipherSuite } from '../crypto/cipher-suite.ts'
import { initialKeys, PacketKeys } from '../crypto/packet-keys.ts'
import type { Level, TlsEndpoint, TlsEvents } from '../tls/api.ts'
import { FRAME } from '../wire/frame-type.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import {
  decodeTransportParameters,
  encodeTransportParameters,
  TRANSPORT_PARAMETER_DEFAULTS,
  type TransportParameters,
} from '../wire/transport-parameters.ts'
import type { ConnectionOptions, Role } from './api.ts'
import { areEqualBytes } from './bytes.ts'
import type { HandshakeProgress, PacketSpaces } from './loss-recovery.ts'
import { CRYPTO_BUFFER_SIZE, type PacketSpace } from './packet-space.ts'
import { PEER_IDS_MAX } from './peer-ids.ts'

/** Payload of an Ethernet packet: the peer need not try for more. */
const RECEIVED_DATAGRAM_SIZE_MAX = 1500

/** What the handshake tells the connection. */
export interface HandshakeHost {
  /** The peer's limits. @throws QuicError to refuse them. */
  parametersKnown(parameters: TransportParameters): void
  /** Both sides have all keys, and each knows the other. */
  completed(): void
}

export class Handshake implements TlsEvents, HandshakeProgress {
  readonly #role: Role
  readonly #spaces: PacketSpaces
  readonly #host: HandshakeHost
  /** Ids that the peer's transport parameters must repeat, so that nobody changed them on the way. */
  #expected: { readonly original: Uint8Array; readonly retry: Uint8Array | undefined } | undefined
  /** Source id of the peer's first Initial packet: that of all its long headers. A client learns it from the server. */
  peerInitialId: Uint8Array | undefined
  #tls: TlsEndpoint | undefined
  #isComplete = false
  #isConfirmed = false
  #isAddressProven: boolean
  /** The server owes the client a HANDSHAKE_DONE. */
  isDoneDue = false

  constructor(options: ConnectionOptions, spaces: PacketSpaces, host: HandshakeHost) {
    this.#role = options.role
    this.#spaces = spaces
    this.#host = host
    this.#expected = { original: options.originalDestinationIdBytes, retry: options.retrySourceIdBytes }
    if (options.role === 'server') this.peerInitialId = options.peerIdBytes
    this.#isAddressProven = options.role === 'server'
    const keys = initialKeys(options.initialDestinationIdBytes)
    const [initial] = spaces
    initial.sendKeys = keys[options.role]
    initial.receiveKeys = keys[options.role === 'server' ? 'client' : 'server']
  }

  get isComplete(): boolean {
    return this.#isComplete
  }

  get isConfirmed(): boolean {
    return this.#isConfirmed
  }

  get isAddressProven(): boolean {
    return this.#isAddressProven
  }

  get serverName(): string | undefined {
    return this.#tls?.serverName
  }

  get alpn(): string | undefined {
    return this.#tls?.alpn
  }

  /** Makes our half of TLS; a client's first flight is ready to be sent afterwards. */
  start(options: ConnectionOptions, ownIdBytes: Uint8Array): void {
    this.#tls = options.createTls(this, encodeTransportParameters(ownParameters(options, ownIdBytes)))
  }

  /** The client learned that the server has what it needs. */
  addressProven(): void {
    this.#isAddressProven = true
  }

  confirm(): void {
    this.#isConfirmed = true
    this.#isAddressProven = true
  }

  /** @throws QuicError CRYPTO_BUFFER_EXCEEDED, or what TLS objects to. */
  received(space: PacketSpace, offset: number, bytesView: Uint8Array): void {
    if (space.isDiscarded) return
    const buffer = space.cryptoIn
    if (offset + bytesView.length > buffer.readOffset + CRYPTO_BUFFER_SIZE) {
      throw new QuicError(TRANSPORT_ERROR.cryptoBufferExceeded, 'handshake bytes too far ahead', FRAME.crypto)
    }
    buffer.receive(offset, bytesView, false)
    for (let bytes = buffer.read(); bytes !== null; bytes = buffer.read()) this.#tls?.receive(space.level, bytes)
  }

  // What TLS says

  sendHandshake(level: Level, bytes: Uint8Array): void {
    this.#spaces[level].cryptoOut.append(bytes)
  }

  keysReady(level: Level, direction: 'send' | 'receive', suite: CipherSuite, secret: Uint8Array): void {
    const keys = new PacketKeys(suite, secret)
    if (direction === 'send') this.#spaces[level].sendKeys = keys
    else this.#spaces[level].receiveKeys = keys
  }

  peerTransportParameters(bytesView: Uint8Array): void {
    const parameters = decodeTransportParameters(bytesView, this.#role === 'server' ? 'client' : 'server')
    this.#checkIds(parameters)
    this.#host.parametersKnown(parameters)
  }

  handshakeDone(): void {
    this.#isComplete = true
    this.#expected = undefined
    this.#host.completed()
  }

  #checkIds(parameters: TransportParameters): void {
    checkId('initial_source_connection_id', parameters.initialSourceId, this.peerInitialId)
    if (this.#role === 'server') return
    checkId('original_destination_connection_id', parameters.originalDestinationId, this.#expected?.original)
    checkId('retry_source_connection_id', parameters.retrySourceId, this.#expected?.retry)
  }
}

function checkId(name: string, found: Uint8Array | undefined, expected: Uint8Array | undefined): void {
  const isSame = found === undefined || expected === undefined ? found === expected : areEqualBytes(found, expected)
  if (!isSame) throw new QuicError(TRANSPORT_ERROR.transportParameterError, `${name} is not that of the packets`)
}

function ownParameters(options: ConnectionOptions, ownIdBytes: Uint8Array): TransportParameters {
  const { limits } = options
  const parameters: TransportParameters = {
    ...TRANSPORT_PARAMETER_DEFAULTS,
    idleTimeoutMs: limits.idleTimeoutMs,
    maxDatagramSize: RECEIVED_DATAGRAM_SIZE_MAX,
    maxData: limits.connectionWindowBytes,
    maxStreamDataBidiLocal: limits.streamWindowBytes,
    maxStreamDataBidiRemote: limits.streamWindowBytes,
    maxStreamDataUni: limits.streamWindowBytes,
    maxStreamsBidi: limits.maxBidirectionalStreams,
    maxStreamsUni: limits.maxUnidirectionalStreams,
    maxAckDelayMs: limits.maxAckDelayMs,
    connectionIdLimit: PEER_IDS_MAX,
    initialSourceId: ownIdBytes,
  }
  if (options.role === 'client') return parameters
  return {
    ...parameters,
    originalDestinationId: options.originalDestinationIdBytes,
    retrySourceId: options.retrySourceIdBytes,
    statelessResetToken: options.host.statelessResetToken(ownIdBytes),
  }
}
