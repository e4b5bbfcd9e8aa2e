/**
 * One QUIC connection (RFC 9000, 9001, 9002), server or client, without socket, clock and chance: datagrams and times come
 * in, datagrams and a deadline come out. It composes the parts, each of which has one subject, and decides what concerns
 * several of them: the handshake's progress, migration, and the end.
 */
import { LEVEL } from '../tls/api.ts'
import { FRAME } from '../wire/frame-type.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import type { TransportParameters } from '../wire/transport-parameters.ts'
import type {
  CloseInfo,
  ConnectionHost,
  ConnectionOptions,
  ConnectionStats,
  EngineConnection,
  EngineStream,
  PeerAddress,
} from './api.ts'
import { areEqualBytes } from './bytes.ts'
import { Closing } from './closing.ts'
import { DatagramBuilder } from './datagram-builder.ts'
import { FrameHandler, type FrameHost } from './frame-handler.ts'
import { Handshake, type HandshakeHost } from './handshake.ts'
import { IdleTimer } from './idle-timer.ts'
import { KeyPhases } from './key-phases.ts'
import { LocalIds } from './local-ids.ts'
import { LossRecovery, type PacketSpaces } from './loss-recovery.ts'
import { type OpenedPacket, type PacketHost, PacketReceiver } from './packet-receiver.ts'
import { PacketSpace } from './packet-space.ts'
import type { ConnectionParts } from './parts.ts'
import type { Path } from './path.ts'
import { Paths } from './paths.ts'
import { PeerIds } from './peer-ids.ts'
import type { QuicStream } from './stream.ts'
import type { Direction } from './stream-id.ts'
import { StreamTable, type StreamTableHost } from './stream-table.ts'

/** How long we answer or ignore what still comes after the end. */
const CLOSING_TIMEOUTS = 3
/** … but no longer than that: a peer may have made us believe in a very slow path. */
const CLOSING_MAX_MS = 10_000
/** Probe timeout of a path of which nothing is known. */
const UNKNOWN_PATH_TIMEOUT_MS = 999

type Send = (datagramBytes: Uint8Array, to: PeerAddress) => void

export class QuicConnection implements EngineConnection, HandshakeHost, FrameHost, PacketHost, StreamTableHost {
  readonly #parts: ConnectionParts
  readonly #host: ConnectionHost
  readonly #receiver: PacketReceiver
  readonly #frames: FrameHandler
  readonly #builder: DatagramBuilder
  #handshakeEndMs: number
  /** Of the call that is under way. */
  #nowMs: number
  /** The path of the datagram that is being taken. */
  #path: Path
  #peerIdLimit = 0

  onConnected: (() => void) | null = null
  onStream: ((stream: EngineStream) => void) | null = null
  onStreamsAvailable: (() => void) | null = null
  onClosed: ((info: CloseInfo) => void) | null = null

  constructor(options: ConnectionOptions) {
    const { limits, host, nowMs } = options
    this.#host = host
    this.#nowMs = nowMs
    this.#handshakeEndMs = nowMs + limits.handshakeTimeoutMs
    this.#parts = createParts(options, this)
    this.#path = this.#parts.paths.current
    this.#receiver = new PacketReceiver(this.#parts, this)
    this.#frames = new FrameHandler(this.#parts, this)
    const ownIdBytes = this.#parts.localIds.firstBytes
    const tokenBytes = options.role === 'client' ? options.tokenBytes : new Uint8Array()
    this.#builder = new DatagramBuilder(this.#parts, { ownIdBytes, tokenBytes, datagramSize: limits.datagramSize })
    this.#parts.handshake.start(options, ownIdBytes)
  }

  get hasAuthenticated(): boolean {
    return this.#parts.counters.receivedPackets > 0
  }

  get isConnected(): boolean {
    return this.#parts.handshake.isComplete && this.#parts.closing.isOpen
  }

  get isFinished(): boolean {
    return this.#parts.closing.state === 'finished'
  }

  get closeInfo(): CloseInfo | undefined {
    return this.#parts.closing.info
  }

  get peer(): PeerAddress {
    return this.#parts.paths.current.peer
  }

  get serverName(): string | undefined {
    return this.#parts.handshake.serverName
  }

  get alpn(): string | undefined {
    return this.#parts.handshake.alpn
  }

  get stats(): ConnectionStats {
    const { counters, recovery, keyPhases, paths, streams } = this.#parts
    return {
      ...counters,
      lostPackets: recovery.lostPacketCount,
      probeTimeouts: recovery.probeTimeoutCount,
      keyUpdates: keyPhases.updateCount,
      migrations: paths.migrationCount,
      streamCount: streams.count,
      unreadBytes: streams.unreadBytes,
      smoothedRttMs: recovery.roundTrip.smoothedMs,
      congestionWindowBytes: recovery.congestion.windowBytes,
      bytesInFlight: recovery.congestion.bytesInFlight,
    }
  }

  get deadlineMs(): number {
    const { closing, idle, paths, recovery, handshake, spaces } = this.#parts
    if (!closing.isOpen) return closing.deadlineMs
    const { isBlocked } = paths.current
    let dueMs = Math.min(idle.deadlineMs, paths.deadlineMs, recovery.deadlineMs(isBlocked))
    if (!handshake.isConfirmed) dueMs = Math.min(dueMs, this.#handshakeEndMs)
    // A deadline that cannot be met while nothing may be sent would come up again at once, for ever.
    if (isBlocked) return dueMs
    for (const space of spaces) if (space.canSend) dueMs = Math.min(dueMs, space.received.ackDueMs)
    return dueMs
  }

  receive(datagramView: Uint8Array, from: PeerAddress, nowMs: number): void {
    const { closing, paths, role, counters, keyPhases } = this.#parts
    this.#nowMs = nowMs
    if (closing.state === 'draining' || closing.state === 'finished') return
    keyPhases.dropOld(nowMs)
    // A server does not move; a client takes what authenticates from wherever it seems to come.
    this.#path = role === 'client' ? paths.current : paths.from(from)
    this.#path.received(datagramView.length)
    counters.receivedBytes += datagramView.length
    this.#failOnQuicError(() => this.#receiver.receive(datagramView, nowMs))
  }

  flush(nowMs: number, send: Send, maxDatagrams: number): boolean {
    const { streams, closing } = this.#parts
    this.#nowMs = nowMs
    streams.settle()
    let sentCount = 0
    this.#failOnQuicError(() => {
      if (closing.isOpen) sentCount = this.#flushOpen(send, maxDatagrams)
    })
    if (closing.isFrameDue) this.#flushClose(send)
    return closing.isOpen && sentCount === maxDatagrams
  }

  tick(nowMs: number): void {
    const { closing, idle, handshake, keyPhases, paths, recovery } = this.#parts
    this.#nowMs = nowMs
    if (!closing.isOpen) {
      if (nowMs >= closing.deadlineMs) this.#finish(closing.info ?? timedOut('closed'))
      return
    }
    if (nowMs >= idle.deadlineMs) this.#finish(timedOut('idle timeout'))
    else if (!handshake.isConfirmed && nowMs >= this.#handshakeEndMs) this.#finish(timedOut('handshake timeout'))
    else if (!paths.timeout(nowMs)) this.#finish({ ...timedOut('no viable path'), code: TRANSPORT_ERROR.noViablePath })
    if (!closing.isOpen) return
    keyPhases.dropOld(nowMs)
    recovery.timeout(nowMs, paths.current.isBlocked)
  }

  openStream(direction: Direction): EngineStream | null {
    return this.isConnected ? this.#parts.streams.open(direction) : null
  }

  ping(): void {
    if (!this.isConnected) return
    this.#parts.spaces[LEVEL.application].probeCount ||= 1
    this.#host.wake()
  }

  updateKeys(): boolean {
    if (!this.#parts.handshake.isConfirmed || !this.#parts.closing.isOpen || !this.#parts.keyPhases.update())
      return false
    // The peer learns of it by a packet.
    this.ping()
    return true
  }

  giveUpUnseen(code: number): void {
    this.#parts.streams.giveUpUnseen(code)
  }

  close(code: number, reason: string): void {
    this.#close({ code, reason, isApplication: true, isLocal: true }, 0)
  }

  // What the parts say

  parametersKnown(parameters: TransportParameters): void {
    const { recovery, streams, idle, peerIds, role } = this.#parts
    recovery.peerMaxAckDelayMs = parameters.maxAckDelayMs
    recovery.peerAckDelayExponent = parameters.ackDelayExponent
    recovery.congestion.limitDatagramSize(parameters.maxDatagramSize)
    this.#builder.limitDatagramSize(parameters.maxDatagramSize)
    streams.start(parameters)
    idle.limit(parameters.idleTimeoutMs)
    this.#peerIdLimit = parameters.connectionIdLimit
    if (role === 'client') peerIds.replaceFirst(peerIds.currentBytes, parameters.statelessResetToken)
  }

  completed(): void {
    const { role, handshake, localIds } = this.#parts
    if (role === 'server') {
      handshake.isDoneDue = true
      this.confirmed()
    }
    localIds.offer(this.#peerIdLimit)
    this.onConnected?.()
  }

  confirmed(): void {
    const { handshake, recovery, spaces } = this.#parts
    if (handshake.isConfirmed) return
    handshake.confirm()
    recovery.discard(spaces[LEVEL.handshake])
  }

  streamsAvailable(): void {
    this.onStreamsAvailable?.()
  }

  announce(stream: QuicStream): void {
    this.onStream?.(stream)
  }

  wake(): void {
    this.#host.wake()
  }

  packetOpened(packet: OpenedPacket): void {
    const { closing, counters, idle, recovery, role, spaces, paths } = this.#parts
    const { space } = packet
    if (!this.#isFromPeer(packet)) return
    counters.receivedPackets++
    if (!closing.isOpen) {
      this.#receivedWhileClosing(packet)
      return
    }
    paths.keep(this.#path)
    idle.received(this.#nowMs, recovery.probeTimeoutMs)
    if (role === 'server' && space.level === LEVEL.handshake) {
      // The client read what was sent to the path in use: the keys of this packet were made of it. That proves that address,
      // and no other: a client may finish its handshake in the name of a victim.
      if (this.#path === paths.current) this.#path.validate()
      recovery.discard(spaces[LEVEL.initial])
    }
    const { destinationIdView } = packet
    const verdict = this.#frames.handle(packet.payloadView, { space, path: this.#path, destinationIdView }, this.#nowMs)
    if (space.isDiscarded || !closing.isOpen) return
    const isLatest = space.received.add(packet.number, verdict.asksForAck, this.#nowMs)
    if (isLatest && !verdict.isProbing && space.level === LEVEL.application) this.#followPeer()
  }

  peerClosed(info: CloseInfo): void {
    const isFirst = this.#parts.closing.isOpen
    this.#parts.closing.drain(info, this.#closingEndMs)
    if (isFirst) this.#ended(info)
  }

  statelessReset(): void {
    this.#finish({ code: TRANSPORT_ERROR.noError, reason: 'stateless reset', isApplication: false, isLocal: false })
  }

  get #closingEndMs(): number {
    return this.#nowMs + Math.min(CLOSING_TIMEOUTS * this.#parts.recovery.probeTimeoutMs, CLOSING_MAX_MS)
  }

  /** The source id of long headers stays what it was at first; a server's first Initial tells the client what that is. */
  #isFromPeer({ sourceIdView, space }: OpenedPacket): boolean {
    const { handshake, peerIds, role } = this.#parts
    if (sourceIdView === undefined) return true
    if (handshake.peerInitialId !== undefined) return areEqualBytes(handshake.peerInitialId, sourceIdView)
    if (role === 'server' || space.level !== LEVEL.initial) return false
    handshake.peerInitialId = new Uint8Array(sourceIdView)
    peerIds.replaceFirst(handshake.peerInitialId, undefined)
    return true
  }

  #receivedWhileClosing({ payloadView }: OpenedPacket): void {
    const { closing } = this.#parts
    const type = payloadView[0]
    const isClose = type === FRAME.connectionClose || type === FRAME.applicationClose
    if (isClose && closing.info !== undefined) this.peerClosed(closing.info)
    else closing.packetReceived()
  }

  /** The newest packet came by another path than the one in use. */
  #followPeer(): void {
    const { role, handshake, paths, recovery, peerIds } = this.#parts
    if (role === 'client' || !handshake.isConfirmed || this.#path === paths.current) return
    const timeoutMs = Math.max(recovery.probeTimeoutMs, UNKNOWN_PATH_TIMEOUT_MS)
    const isOtherHost = paths.migrate(this.#path, this.#nowMs, timeoutMs)
    recovery.peerMoved()
    if (!isOtherHost) return
    recovery.pathChanged()
    peerIds.change()
  }

  #flushOpen(send: Send, maxDatagrams: number): number {
    const { paths } = this.#parts
    let sentCount = 0
    for (let frame = paths.takeResponse(); frame !== undefined; frame = paths.takeResponse()) {
      this.#send(this.#builder.pathDatagram(FRAME.pathResponse, frame, this.#nowMs), frame.path, send)
    }
    for (let frame = paths.takeChallenge(); frame !== undefined; frame = paths.takeChallenge()) {
      this.#send(this.#builder.pathDatagram(FRAME.pathChallenge, frame, this.#nowMs), frame.path, send)
    }
    while (sentCount < maxDatagrams && this.#send(this.#builder.next(this.#nowMs), paths.current, send)) sentCount++
    return sentCount
  }

  #flushClose(send: Send): void {
    const { closing, paths } = this.#parts
    closing.frameSent()
    this.#send(this.#builder.closeDatagram(), paths.current, send)
  }

  #send(datagramBytes: Uint8Array | null, path: Path, send: Send): boolean {
    if (datagramBytes === null) return false
    path.sent(datagramBytes.length)
    this.#parts.counters.sentBytes += datagramBytes.length
    send(datagramBytes, path.peer)
    return true
  }

  /** What a peer does wrong ends the connection; what we do wrong is not caught. */
  #failOnQuicError(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!(error instanceof QuicError)) throw error
      this.#close({ code: error.code, reason: error.message, isApplication: false, isLocal: true }, error.frameType)
    }
  }

  #close(info: CloseInfo, frameType: number): void {
    if (!this.#parts.closing.isOpen) return
    this.#parts.closing.close(info, frameType, this.#closingEndMs)
    this.#ended(info)
    this.#host.wake()
  }

  #finish(info: CloseInfo): void {
    const isFirst = this.#parts.closing.isOpen
    this.#parts.closing.finish(info)
    if (isFirst) this.#ended(info)
    this.#parts.localIds.retireAll()
  }

  #ended(info: CloseInfo): void {
    this.#parts.streams.clear()
    for (const space of this.#parts.spaces) space.sent.clear()
    this.onClosed?.(info)
  }
}

function createParts(options: ConnectionOptions, connection: QuicConnection): ConnectionParts {
  const { role, limits, host, nowMs, peer } = options
  const random = (size: number): Uint8Array => options.random(size)
  const spaces: PacketSpaces = [
    new PacketSpace(LEVEL.initial, limits.maxAckDelayMs),
    new PacketSpace(LEVEL.handshake, limits.maxAckDelayMs),
    new PacketSpace(LEVEL.application, limits.maxAckDelayMs, random),
  ]
  const handshake = new Handshake(options, spaces, connection)
  const isPathValidated = role === 'client' || options.isPeerValidated
  return {
    role,
    spaces,
    handshake,
    recovery: new LossRecovery(role, spaces, handshake, limits.datagramSize),
    streams: new StreamTable(role, limits, connection),
    localIds: new LocalIds(host, random),
    peerIds: new PeerIds(role === 'server' ? options.peerIdBytes : options.initialDestinationIdBytes),
    paths: new Paths(peer, isPathValidated, random),
    keyPhases: new KeyPhases(spaces[LEVEL.application]),
    closing: new Closing(),
    idle: new IdleTimer(limits.idleTimeoutMs, nowMs),
    counters: {
      receivedPackets: 0,
      sentPackets: 0,
      receivedBytes: 0,
      sentBytes: 0,
      rejectedPackets: 0,
      duplicatePackets: 0,
    },
  }
}

function timedOut(reason: string): CloseInfo {
  return { code: TRANSPORT_ERROR.noError, reason, isApplication: false, isLocal: true }
}
