/** Shape of the native classes of @moq/web-transport 0.1.4 that we use (its own declarations cannot be imported). */

export interface QuinnAddon {
  readonly NapiServer: { bind(address: string, certificatePem: Buffer, privateKeyPem: Buffer): NativeServer }
  readonly NapiClient: {
    withSystemRoots(): NativeClient
    withCertificateHashes(hashes: Buffer[]): NativeClient
    /** Checks nothing. Only ever used to wake our own listener (`adapter-server.ts`). */
    disableVerify(): NativeClient
  }
}

export interface NativeServer {
  accept(): Promise<NativeRequest | null>
  /** Blocks the whole thread while an `accept()` is pending. */
  close(): void
}

export interface NativeRequest {
  readonly url: Promise<string>
  ok(): Promise<NativeSession>
  reject(status: number): Promise<void>
}

export interface NativeClient {
  connect(url: string, options: { protocols: string[] } | null): Promise<NativeSession>
}

export interface NativeSession {
  readonly protocol: string | null
  acceptUni(): Promise<NativeRecvStream>
  acceptBi(): Promise<NativeBiStream>
  openUni(): Promise<NativeSendStream>
  openBi(): Promise<NativeBiStream>
  sendDatagram(data: Buffer): void
  recvDatagram(): Promise<Buffer>
  maxDatagramSize(): number
  close(code: number, reason: string): void
  closed(): Promise<{ closeCode: number; reason: string }>
}

export interface NativeBiStream {
  takeSend(): NativeSendStream
  takeRecv(): NativeRecvStream
}

export interface NativeSendStream {
  write(data: Buffer): Promise<void>
  finish(): Promise<void>
  /** Waits behind a blocked `write`. */
  reset(code: number): Promise<void>
  setPriority(priority: number): Promise<void>
}

export interface NativeRecvStream {
  /** null at the end of the stream. */
  read(maxSizeBytes: number): Promise<Buffer | null>
  stop(code: number): Promise<void>
}
