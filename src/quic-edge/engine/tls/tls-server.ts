/**
 * The server's half of a TLS 1.3 handshake for QUIC (RFC 8446, RFC 9001): one certificate, no tickets, no early data, no
 * client certificates.
 *
 * ```
 * client                                   server
 * ClientHello             Initial    ->
 *                                    <-    HelloRetryRequest, when it brought no share of a group of ours
 * ClientHello             Initial    ->
 *                                    <-    Initial    ServerHello
 *                                    <-    Handshake  EncryptedExtensions, Certificate, CertificateVerify, Finished
 * Finished                Handshake  ->
 * ```
 *
 * `#handshake` is that picture as a program: it stops where it waits for the client, so that no message can be taken out of
 * turn. Everything else is refused with unexpected_message: a KeyUpdate, EndOfEarlyData, a second hello.
 */
import { timingSafeEqual } from 'node:crypto'
import { concatBytes } from '../../../byte-concat.ts'
import type { CipherSuite } from '../crypto/cipher-suite.ts'
import { createKeyShare, type Group } from '../crypto/key-exchange.ts'
import { ALERT, alertError } from '../wire/quic-error.ts'
import { LEVEL, type Level, type TlsEndpoint, type TlsEvents, type TlsServerOptions } from './api.ts'
import { CLIENT_HELLO_SIZE_MAX, type ClientHello, isSameHello, readClientHello } from './client-hello.ts'
import {
  applicationTraffic,
  finishedMac,
  handshakeSecretOf,
  handshakeTraffic,
  mainSecretOf,
  Transcript,
} from './key-schedule.ts'
import {
  certificateVerifyInput,
  EXTENSION,
  MESSAGE,
  MESSAGE_HEADER_SIZE,
  type MessageType,
  RANDOM_SIZE,
} from './message.ts'
import { MessageBuffer } from './message-buffer.ts'
import { chooseGroup, chooseProtocol, chooseScheme, chooseSuite } from './negotiation.ts'
import {
  encodeCertificate,
  encodeCertificateVerify,
  encodeEncryptedExtensions,
  encodeFinished,
  encodeRetryRequest,
  encodeServerHello,
} from './server-flight.ts'

interface Awaited {
  readonly level: Level
  readonly type: MessageType
  /** Header included. */
  readonly sizeMax: number
}

/** Yields what it waits for; is handed that message, whole and owned. */
type Handshake = Generator<Awaited, void, Uint8Array>

const HASH_SIZE_MAX = 48
const CLIENT_HELLO: Awaited = { level: LEVEL.initial, type: MESSAGE.clientHello, sizeMax: CLIENT_HELLO_SIZE_MAX }
const CLIENT_FINISHED: Awaited = {
  level: LEVEL.handshake,
  type: MESSAGE.finished,
  sizeMax: MESSAGE_HEADER_SIZE + HASH_SIZE_MAX,
}

export class TlsServer implements TlsEndpoint {
  readonly #options: TlsServerOptions
  readonly #events: TlsEvents
  /** Undefined once it is over, well or badly: its secrets are let go. */
  #running: Handshake | undefined
  #awaited: Awaited | undefined
  #buffer: MessageBuffer | undefined
  #serverName: string | undefined
  #alpn: string | undefined
  #hasFailed = false

  constructor(options: TlsServerOptions, events: TlsEvents) {
    this.#options = options
    this.#events = events
    this.#running = this.#handshake()
    this.#await(this.#running.next())
  }

  get serverName(): string | undefined {
    return this.#serverName
  }

  get alpn(): string | undefined {
    return this.#alpn
  }

  receive(level: Level, bytesView: Uint8Array): void {
    if (this.#hasFailed || bytesView.length === 0) return
    try {
      this.#take(level, bytesView)
    } catch (error) {
      this.#hasFailed = true
      this.#await(undefined)
      throw error
    }
  }

  #take(level: Level, bytesView: Uint8Array): void {
    if (this.#running === undefined || this.#awaited?.level !== level || this.#buffer === undefined) {
      throw alertError(ALERT.unexpectedMessage, `handshake data at level ${level}`)
    }
    const message = this.#buffer.add(bytesView)
    if (message !== undefined) this.#await(this.#running.next(message))
  }

  #await(step: IteratorResult<Awaited, void> | undefined): void {
    this.#awaited = step?.value ?? undefined
    if (this.#awaited === undefined) this.#running = undefined
    this.#buffer = this.#awaited && new MessageBuffer(this.#awaited.type, this.#awaited.sizeMax)
  }

  *#handshake(): Handshake {
    let hello = readClientHello(yield CLIENT_HELLO)
    const suite = chooseSuite(hello, this.#options)
    const group = chooseGroup(hello, this.#options)
    let transcript = new Transcript(suite.hash)
    if (!hello.keyShares.has(group)) {
      const request = encodeRetryRequest(suite, group)
      this.#events.sendHandshake(LEVEL.initial, request)
      transcript = Transcript.afterRetry(suite.hash, hello.messageBytes, request)
      const second = readClientHello(yield CLIENT_HELLO)
      expectAnswerTo(group, hello, second)
      hello = second
    }
    transcript.add(hello.messageBytes)

    // Everything that may be refused is looked at before a byte of the answer leaves.
    const identity = this.#options.identity()
    const scheme = chooseScheme(hello, identity)
    this.#alpn = chooseProtocol(hello, this.#options)
    this.#serverName = hello.serverName
    const share = createKeyShare(group)
    const shared = share.agree(hello.keyShares.get(group) ?? new Uint8Array())
    this.#events.peerTransportParameters(hello.transportParametersView)

    const serverHello = encodeServerHello(this.#options.random(RANDOM_SIZE), suite, share)
    transcript.add(serverHello)
    this.#events.sendHandshake(LEVEL.initial, serverHello)
    const handshakeSecret = handshakeSecretOf(suite, shared)
    const handshakeKeys = handshakeTraffic(suite, handshakeSecret, transcript.digest())
    this.#events.keysReady(LEVEL.handshake, 'send', suite, handshakeKeys.server)
    this.#events.keysReady(LEVEL.handshake, 'receive', suite, handshakeKeys.client)

    const extensions = encodeEncryptedExtensions(this.#alpn, this.#options.transportParameters)
    transcript.add(extensions)
    const certificate = encodeCertificate(identity.certificates)
    transcript.add(certificate)
    const signature = identity.sign(scheme, certificateVerifyInput('server', transcript.digest()))
    const verify = encodeCertificateVerify(scheme, signature)
    transcript.add(verify)
    const finished = encodeFinished(finishedMac(suite, handshakeKeys.server, transcript.digest()))
    transcript.add(finished)
    this.#events.sendHandshake(LEVEL.handshake, concatBytes([extensions, certificate, verify, finished]))
    const finishedDigest = transcript.digest()
    const applicationKeys = applicationTraffic(suite, mainSecretOf(suite, handshakeSecret), finishedDigest)
    this.#events.keysReady(LEVEL.application, 'send', suite, applicationKeys.server)

    expectFinished(suite, handshakeKeys.client, finishedDigest, yield CLIENT_FINISHED)
    this.#events.keysReady(LEVEL.application, 'receive', suite, applicationKeys.client)
    this.#events.handshakeDone()
  }
}

/** The second hello says the same as the first, with one share of the group that was asked for. */
function expectAnswerTo(group: Group, first: ClientHello, second: ClientHello): void {
  const isAsAsked = second.keyShares.size === 1 && second.keyShares.has(group)
  if (!isAsAsked) throw alertError(ALERT.illegalParameter, 'key share is not the one that was asked for')
  if (second.extensions.has(EXTENSION.earlyData)) throw alertError(ALERT.illegalParameter, 'early data after a retry')
  if (!isSameHello(first, second)) throw alertError(ALERT.illegalParameter, 'second ClientHello differs from the first')
}

function expectFinished(suite: CipherSuite, secret: Uint8Array, digest: Uint8Array, message: Uint8Array): void {
  const found = message.subarray(MESSAGE_HEADER_SIZE)
  if (found.length !== suite.hashSize) throw alertError(ALERT.decodeError, `Finished of ${found.length} bytes`)
  if (!timingSafeEqual(found, finishedMac(suite, secret, digest))) throw alertError(ALERT.decryptError, 'Finished')
}
