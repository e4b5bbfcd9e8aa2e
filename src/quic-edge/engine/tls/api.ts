/**
 * What a QUIC connection and its TLS handshake say to each other (RFC 9001 section 4). Types and names alone.
 *
 * TLS sees ordered bytes of three levels and hands out bytes and secrets; packets, loss and order are the connection's.
 */
import type { CipherSuite } from '../crypto/cipher-suite.ts'

/** Levels of protection, in the order they come; each has its own packet number space. */
export const LEVEL = { initial: 0, handshake: 1, application: 2 } as const
export type Level = (typeof LEVEL)[keyof typeof LEVEL]

/** What TLS asks of its connection. All of it happens inside `TlsEndpoint.receive` (a client's first flight: in its constructor). */
export interface TlsEvents {
  /** Whole handshake messages to send in CRYPTO frames, in the order of the calls. The bytes are the connection's from here on. */
  sendHandshake(level: Level, bytes: Uint8Array): void
  /** A traffic secret: `receive` opens the peer's packets, `send` seals ours. Never called for the Initial level. */
  keysReady(level: Level, direction: 'send' | 'receive', suite: CipherSuite, secret: Uint8Array): void
  /** The peer's transport parameters, raw; not authenticated before `handshakeDone`. Throws `QuicError` to refuse them. */
  peerTransportParameters(bytesView: Uint8Array): void
  /** The peer's Finished has been verified: RFC 9001's "handshake complete". */
  handshakeDone(): void
}

export interface TlsEndpoint {
  /**
   * Takes the next CRYPTO bytes of a level, in order, without gaps; any number at a time.
   *
   * @throws QuicError when the peer breaks a rule; the endpoint takes nothing more afterwards.
   */
  receive(level: Level, bytesView: Uint8Array): void
  /** The name that the client asked for, if any, in lower case. Not authenticated before `handshakeDone`. */
  readonly serverName: string | undefined
  /** The protocol agreed on, if any. */
  readonly alpn: string | undefined
}

/** Signature schemes of RFC 8446 section 4.2.3 that are spoken here. */
export const SIGNATURE_SCHEME = {
  ecdsaP256Sha256: 0x0403,
  ecdsaP384Sha384: 0x0503,
  rsaPssSha256: 0x0804,
  rsaPssSha384: 0x0805,
  rsaPssSha512: 0x0806,
  ed25519: 0x0807,
} as const
export type SignatureScheme = (typeof SIGNATURE_SCHEME)[keyof typeof SIGNATURE_SCHEME]

/** Certificate chain and key, as `createIdentity` makes them of PEM text. */
export interface TlsIdentity {
  /** DER, the end entity's first. */
  readonly certificates: readonly Uint8Array[]
  /** What the key can sign with, best first. */
  readonly schemes: readonly SignatureScheme[]
  sign(scheme: SignatureScheme, bytesView: Uint8Array): Uint8Array
}

export interface TlsServerOptions {
  /** Asked once a handshake, so that a renewed certificate is used from the next connection on. */
  identity(): TlsIdentity
  /** Empty: none is needed, and a client's list is ignored. Otherwise the client must offer one of them; ours are in order of preference. */
  readonly alpnProtocols: readonly string[]
  /** Ours, encoded: sent in EncryptedExtensions. */
  readonly transportParameters: Uint8Array
  /** Bytes that nobody can predict, for the ServerHello. Keys do not come from here. */
  random(size: number): Uint8Array
  /** Cipher suites by id, best first; all that are implemented by default. */
  readonly suites?: readonly number[]
  /** Groups by id, best first; all that are implemented by default. */
  readonly groups?: readonly number[]
}
