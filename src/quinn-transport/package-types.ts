/**
 * The seam between @fails-components/webtransport and a transport: what it calls on us, what we call on it (`jsobj`).
 * Its own declarations leave most of this untyped, so the parts we rely on are stated here, as read in version 1.6.8.
 */

/** The package's stream object, as a transport sees it. */
export interface StreamOwner {
  readonly readableclosed?: boolean
  readonly readableController?: { readonly desiredSize: number | null }
  commitReadBuffer(read: { buffer?: Uint8Array; readBytes?: number; drained?: boolean; fin: boolean }): {
    stopReading?: boolean
  }
  onStreamWrite(result: { success: boolean }): void
  onStreamRecvSignal(signal: { nettask: 'resetStream' | 'stopSending'; code: number }): void
  onStreamNetworkFinish(finished: { nettask: 'streamFinal' | 'resetStream' | 'stopSending' }): void
}

/** What the package calls on a stream of ours. It sets `jsobj` in its constructor, before anything else. */
export interface TransportStream {
  jsobj: StreamOwner | undefined
  startReading(): void
  stopReading(): void
  drainReads(): void
  writeChunk(chunkView: Uint8Array): void
  streamFinal(): void
  resetStream(code: number): void
  stopSending(code: number): void
  updateSendOrderAndGroup(order: { sendOrder: number | bigint }): void
}

/** The package's session object, as a transport sees it. */
export interface SessionOwner {
  readonly incomDatagramController_?: { readonly desiredSize: number | null }
  readonly incomDatagramControllerBytes_?: { readonly desiredSize: number | null }
  onReady(ready: { protocol?: string }): void
  onClose(closed: { errorcode: number; error: string }): void
  onStream(opened: {
    stream: TransportStream
    bidirectional: boolean
    incoming: boolean
    sendGroupId: bigint
    sendOrder: number
  }): void
  onDatagramReceived(received: { datagram: Uint8Array }): void
  onSessionStats(stats: Record<string, number | bigint>): void
  onDatagramStats(stats: Record<string, number | bigint>): void
}

export interface ServerOwner {
  onServerListening(listening: { port: number; host: string }): void
  onServerError(error: unknown): void
  onServerClose(): void
  onSessionRequest(request: {
    header: Record<string, string>
    session: unknown
    peerAddress: string | undefined
    protocol: string
    promise: boolean
    object: unknown
  }): void
  onHttpWTSessionVisitor(visit: {
    session: unknown
    path: string
    header: Record<string, string>
    peerAddress: string | undefined
    userData: unknown
    reliable: boolean
  }): void
}

export interface ClientOwner {
  onClientConnected(connected: { success: boolean }): void
  onClientWebTransportSupport(support: Record<string, never>): void
  onHttpWTSessionVisitor(visit: { session: unknown; reliable: boolean }): void
}

/** Arguments of the package's servers that reach the transport. */
export interface ServerArguments {
  readonly host?: string
  readonly port?: number | string
  readonly cert: string | string[]
  readonly privKey: string | string[]
  readonly maxConnections?: number
}

export interface ClientArguments {
  readonly host: string
  readonly port?: number | string
  readonly serverCertificateHashes?: readonly { readonly value: Uint8Array | ArrayBuffer }[]
  readonly protocols?: string[]
  /** Ours, passed through by the package: told why the connection failed, which the package itself forgets. */
  readonly onConnectFailed?: (error: unknown) => void
}
