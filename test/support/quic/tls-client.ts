/**
 * The client's half of a TLS 1.3 handshake for QUIC, to test the server's with: it checks everything that a server could
 * get wrong and that would be seen in no other way (signature, Finished, what was never asked for).
 *
 * The first flight leaves within the constructor.
 */
import { timingSafeEqual, X509Certificate } from 'node:crypto'
import { CIPHER_SUITES, type CipherSuite } from '../../../src/quic-edge/engine/crypto/cipher-suite.ts'
import { createKeyShare, GROUPS, isGroup, type KeyShare } from '../../../src/quic-edge/engine/crypto/key-exchange.ts'
import {
  LEVEL,
  type Level,
  SIGNATURE_SCHEME,
  type TlsEndpoint,
  type TlsEvents,
} from '../../../src/quic-edge/engine/tls/api.ts'
import {
  applicationTraffic,
  finishedMac,
  handshakeSecretOf,
  handshakeTraffic,
  mainSecretOf,
  Transcript,
} from '../../../src/quic-edge/engine/tls/key-schedule.ts'
import {
  certificateVerifyInput,
  EXTENSION,
  LEGACY_VERSION,
  MESSAGE,
  MESSAGE_HEADER_SIZE,
  type MessageType,
  RANDOM_SIZE,
  RETRY_RANDOM,
  TLS_1_3,
} from '../../../src/quic-edge/engine/tls/message.ts'
import { encodeFinished } from '../../../src/quic-edge/engine/tls/server-flight.ts'
import { ALERT, alertError, QuicError, TRANSPORT_ERROR } from '../../../src/quic-edge/engine/wire/quic-error.ts'
import { Reader } from '../../../src/quic-edge/engine/wire/reader.ts'
import {
  encodeClientHello,
  groups,
  type HelloExtension,
  helloOf,
  keyShares,
  type OfferedShare,
  protocols,
  serverName,
  signatureSchemes,
  tls13,
  transportParameters,
} from './client-hello.ts'
import { verifySignature } from './signature.ts'

export interface TlsClientOptions {
  /** Ours, encoded. */
  readonly transportParameters: Uint8Array
  random(size: number): Uint8Array
  readonly serverName?: string
  readonly alpnProtocols?: readonly string[]
  /** By id, best first. */
  readonly suites?: readonly number[]
  readonly groups?: readonly number[]
  /** Groups to send a key share of at once; the first group only by default. */
  readonly shareGroups?: readonly number[]
  /** Sent before ours, of groups that nobody here speaks: hybrid ones. */
  readonly foreignShares?: readonly OfferedShare[]
  readonly signatureSchemes?: readonly number[]
  /** Sent besides, such as padding. */
  readonly extensions?: readonly HelloExtension[]
  /** Throws to refuse. */
  verify?(certificates: readonly X509Certificate[]): unknown
}

interface Awaited {
  readonly level: Level
  readonly type: MessageType
}

type Handshake = Generator<Awaited, void, Uint8Array>

const SERVER_HELLO: Awaited = { level: LEVEL.initial, type: MESSAGE.serverHello }
const inHandshake = (type: MessageType): Awaited => ({ level: LEVEL.handshake, type })

interface ServerHello {
  readonly randomView: Uint8Array
  readonly suite: CipherSuite
  readonly extensions: ReadonlyMap<number, Uint8Array>
}

export class TlsClient implements TlsEndpoint {
  readonly #options: TlsClientOptions
  readonly #events: TlsEvents
  readonly #random: Uint8Array
  readonly #running: Handshake
  #awaited: Awaited | undefined
  #pending: Uint8Array = new Uint8Array()
  #alpn: string | undefined
  #suite: CipherSuite | undefined
  #scheme: number | undefined
  #hasRetried = false

  constructor(options: TlsClientOptions, events: TlsEvents) {
    this.#options = options
    this.#events = events
    this.#random = options.random(RANDOM_SIZE)
    this.#running = this.#handshake()
    this.#awaited = this.#running.next().value ?? undefined
  }

  get serverName(): string | undefined {
    return this.#options.serverName
  }

  get alpn(): string | undefined {
    return this.#alpn
  }

  /** What the server chose. */
  get suite(): CipherSuite | undefined {
    return this.#suite
  }

  get signatureScheme(): number | undefined {
    return this.#scheme
  }

  get hasRetried(): boolean {
    return this.#hasRetried
  }

  receive(level: Level, bytesView: Uint8Array): void {
    this.#pending = Buffer.concat([this.#pending, bytesView])
    for (;;) {
      const [type, high = 0, middle = 0, low = 0] = this.#pending
      const size = MESSAGE_HEADER_SIZE + ((high << 16) | (middle << 8) | low)
      if (this.#pending.length < MESSAGE_HEADER_SIZE || this.#pending.length < size) return
      if (level !== this.#awaited?.level || type !== this.#awaited.type) {
        throw alertError(ALERT.unexpectedMessage, `message ${type} at level ${level}`)
      }
      const message = new Uint8Array(this.#pending.subarray(0, size))
      this.#pending = this.#pending.subarray(size)
      this.#awaited = this.#running.next(message).value ?? undefined
    }
  }

  *#handshake(): Handshake {
    const { verify } = this.#options
    let shares = this.#firstShares()
    let hello = this.#sendHello([...(this.#options.foreignShares ?? []), ...shares])
    let answerBytes = yield SERVER_HELLO
    let answer = readServerHello(answerBytes)
    let transcript = new Transcript(answer.suite.hash)
    if (Buffer.compare(answer.randomView, RETRY_RANDOM) === 0) {
      this.#hasRetried = true
      const { suite } = answer
      transcript = Transcript.afterRetry(suite.hash, hello, answerBytes)
      shares = [createKeyShare(this.#requestedGroup(answer, shares))]
      hello = this.#sendHello(shares)
      answerBytes = yield SERVER_HELLO
      answer = readServerHello(answerBytes)
      if (Buffer.compare(answer.randomView, RETRY_RANDOM) === 0)
        throw alertError(ALERT.unexpectedMessage, 'second retry')
      if (answer.suite !== suite) throw alertError(ALERT.illegalParameter, 'another suite after the retry')
    }
    transcript.add(hello)
    transcript.add(answerBytes)
    const { suite } = answer
    if (!this.#suites().includes(suite.id)) throw alertError(ALERT.illegalParameter, 'suite was not offered')
    this.#suite = suite
    const handshakeSecret = handshakeSecretOf(suite, agree(answer, shares))
    const handshakeKeys = handshakeTraffic(suite, handshakeSecret, transcript.digest())
    this.#events.keysReady(LEVEL.handshake, 'receive', suite, handshakeKeys.server)
    this.#events.keysReady(LEVEL.handshake, 'send', suite, handshakeKeys.client)

    const extensions = yield inHandshake(MESSAGE.encryptedExtensions)
    this.#readExtensions(extensions)
    transcript.add(extensions)
    const certificate = yield inHandshake(MESSAGE.certificate)
    const chain = readCertificate(certificate)
    verify?.(chain)
    transcript.add(certificate)
    const proof = yield inHandshake(MESSAGE.certificateVerify)
    this.#scheme = expectProof(chain, proof, transcript.digest())
    if (!this.#schemes().includes(this.#scheme)) throw alertError(ALERT.illegalParameter, 'scheme was not offered')
    transcript.add(proof)
    const finished = yield inHandshake(MESSAGE.finished)
    const expected = finishedMac(suite, handshakeKeys.server, transcript.digest())
    const found = finished.subarray(MESSAGE_HEADER_SIZE)
    if (found.length !== expected.length || !timingSafeEqual(found, expected)) {
      throw alertError(ALERT.decryptError, 'Finished')
    }
    transcript.add(finished)

    const digest = transcript.digest()
    const applicationKeys = applicationTraffic(suite, mainSecretOf(suite, handshakeSecret), digest)
    this.#events.sendHandshake(LEVEL.handshake, encodeFinished(finishedMac(suite, handshakeKeys.client, digest)))
    this.#events.keysReady(LEVEL.application, 'send', suite, applicationKeys.client)
    this.#events.keysReady(LEVEL.application, 'receive', suite, applicationKeys.server)
    this.#events.handshakeDone()
  }

  #suites(): readonly number[] {
    return this.#options.suites ?? CIPHER_SUITES.map(({ id }) => id)
  }

  #groups(): readonly number[] {
    return this.#options.groups ?? GROUPS
  }

  #schemes(): readonly number[] {
    return this.#options.signatureSchemes ?? Object.values(SIGNATURE_SCHEME)
  }

  #firstShares(): KeyShare[] {
    const ids = this.#options.shareGroups ?? this.#groups().slice(0, 1)
    return ids.filter(isGroup).map(createKeyShare)
  }

  #sendHello(shares: readonly OfferedShare[]): Uint8Array {
    const options = this.#options
    const foreign = options.foreignShares?.map(({ group }) => group) ?? []
    const extensions = [
      tls13(),
      groups(...foreign, ...this.#groups()),
      signatureSchemes(...this.#schemes()),
      keyShares(...shares),
      transportParameters(options.transportParameters),
      ...(options.serverName === undefined ? [] : [serverName(options.serverName)]),
      ...(options.alpnProtocols === undefined ? [] : [protocols(...options.alpnProtocols)]),
      ...(options.extensions ?? []),
    ]
    const hello = encodeClientHello(helloOf(this.#random, this.#suites(), extensions))
    this.#events.sendHandshake(LEVEL.initial, hello)
    return hello
  }

  #requestedGroup({ extensions }: ServerHello, shares: readonly KeyShare[]) {
    const group = new Reader(extensions.get(EXTENSION.keyShare) ?? new Uint8Array()).u16()
    const isNew = isGroup(group) && this.#groups().includes(group) && shares.every((share) => share.group !== group)
    if (!isNew) throw alertError(ALERT.illegalParameter, `group ${group} asked for`)
    return group
  }

  #readExtensions(message: Uint8Array): void {
    const extensions = readExtensions(new Reader(message, MESSAGE_HEADER_SIZE))
    const asked: number[] = [EXTENSION.quicTransportParameters]
    if (this.#options.alpnProtocols !== undefined) asked.push(EXTENSION.alpn)
    expectOnly(extensions, asked)
    const parameters = extensions.get(EXTENSION.quicTransportParameters)
    if (parameters === undefined) throw alertError(ALERT.missingExtension, 'transport parameters')
    this.#events.peerTransportParameters(parameters)
    const protocol = extensions.get(EXTENSION.alpn)
    if (protocol === undefined) return
    this.#alpn = Buffer.from(new Reader(protocol).vector16().vector8().rest()).toString('latin1')
    if (!this.#options.alpnProtocols?.includes(this.#alpn)) throw alertError(ALERT.illegalParameter, 'protocol')
  }
}

function readServerHello(message: Uint8Array): ServerHello {
  const reader = new Reader(message, MESSAGE_HEADER_SIZE)
  if (reader.u16() !== LEGACY_VERSION) throw alertError(ALERT.protocolVersion, 'legacy version')
  const randomView = reader.take(RANDOM_SIZE)
  if (reader.vector8().left > 0) throw alertError(ALERT.illegalParameter, 'session id')
  const id = reader.u16()
  const suite = CIPHER_SUITES.find((one) => one.id === id)
  if (suite === undefined || reader.u8() !== 0) throw alertError(ALERT.illegalParameter, 'suite or compression')
  const extensions = readExtensions(reader)
  expectOnly(extensions, [EXTENSION.supportedVersions, EXTENSION.keyShare])
  const version = new Reader(extensions.get(EXTENSION.supportedVersions) ?? new Uint8Array()).u16()
  if (version !== TLS_1_3) throw alertError(ALERT.protocolVersion, 'version')
  return { randomView, suite, extensions }
}

function agree({ extensions }: ServerHello, shares: readonly KeyShare[]): Uint8Array {
  const reader = new Reader(extensions.get(EXTENSION.keyShare) ?? new Uint8Array())
  const group = reader.u16()
  const share = shares.find((one) => one.group === group)
  if (share === undefined) throw alertError(ALERT.illegalParameter, `share of group ${group}`)
  return share.agree(reader.vector16().rest())
}

function readCertificate(message: Uint8Array): readonly X509Certificate[] {
  const reader = new Reader(message, MESSAGE_HEADER_SIZE)
  if (reader.vector8().left > 0) throw alertError(ALERT.illegalParameter, 'certificate request context')
  const list = reader.vector24()
  expectEnd(reader)
  const chain: X509Certificate[] = []
  while (list.left > 0) {
    chain.push(new X509Certificate(list.vector24().rest()))
    if (list.vector16().left > 0) throw alertError(ALERT.unsupportedExtension, 'certificate extension')
  }
  return chain
}

/** @returns the scheme that was signed with. */
function expectProof([leaf]: readonly X509Certificate[], message: Uint8Array, digest: Uint8Array): number {
  const reader = new Reader(message, MESSAGE_HEADER_SIZE)
  const scheme = reader.u16()
  const signature = reader.vector16().rest()
  expectEnd(reader)
  if (leaf === undefined) throw alertError(ALERT.decodeError, 'no certificate')
  const isValid = verifySignature(scheme, leaf.publicKey, certificateVerifyInput('server', digest), signature)
  if (!isValid) throw alertError(ALERT.decryptError, 'CertificateVerify')
  return scheme
}

function readExtensions(reader: Reader): ReadonlyMap<number, Uint8Array> {
  const block = reader.vector16()
  expectEnd(reader)
  const extensions = new Map<number, Uint8Array>()
  while (block.left > 0) {
    const id = block.u16()
    if (extensions.has(id)) throw alertError(ALERT.decodeError, `extension ${id} twice`)
    extensions.set(id, block.vector16().rest())
  }
  return extensions
}

function expectOnly(extensions: ReadonlyMap<number, Uint8Array>, asked: readonly number[]): void {
  const foreign = [...extensions.keys()].find((id) => !asked.includes(id))
  if (foreign !== undefined) throw alertError(ALERT.unsupportedExtension, `unsolicited extension ${foreign}`)
}

function expectEnd(reader: Reader): void {
  if (reader.left > 0) throw new QuicError(TRANSPORT_ERROR.frameEncodingError, 'trailing bytes')
}
