/**
 * The form of TLS handshake messages (RFC 8446 section 4) and their numbers. Pure.
 *
 * ```
 * message:    [type:1] [size:3] [body]
 * vector:     [size:1, 2 or 3] [content]
 * extensions: [size:2] ( [type:2] [size:2] [content] )*
 * ```
 */
import { concatBytes } from '../../../byte-concat.ts'

export const MESSAGE = {
  clientHello: 1,
  serverHello: 2,
  encryptedExtensions: 8,
  certificate: 11,
  certificateVerify: 15,
  finished: 20,
  /** Never sent: stands for the first hello in a transcript. */
  messageHash: 254,
} as const
export type MessageType = (typeof MESSAGE)[keyof typeof MESSAGE]

export const MESSAGE_HEADER_SIZE = 4

export const EXTENSION = {
  serverName: 0,
  supportedGroups: 10,
  signatureAlgorithms: 13,
  alpn: 16,
  preSharedKey: 41,
  earlyData: 42,
  supportedVersions: 43,
  cookie: 44,
  pskKeyExchangeModes: 45,
  keyShare: 51,
  quicTransportParameters: 57,
} as const

/** In every hello; the true version stands in `supported_versions`. */
export const LEGACY_VERSION = 0x0303
export const TLS_1_3 = 0x0304
export const RANDOM_SIZE = 32

/** The random of a ServerHello that is a HelloRetryRequest: SHA-256 of that name. */
export const RETRY_RANDOM = Uint8Array.fromHex('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c')

export function encodeMessage(type: MessageType, ...parts: readonly Uint8Array[]): Uint8Array {
  return concatBytes([Uint8Array.of(type), vector(3, ...parts)])
}

/** @param sizeBytes of the size in front. */
export function vector(sizeBytes: 1 | 2 | 3, ...parts: readonly Uint8Array[]): Uint8Array {
  const content = concatBytes(parts)
  const size = content.length
  const prefix = Uint8Array.of(size >>> 16, size >>> 8, size).subarray(3 - sizeBytes)
  return concatBytes([prefix, content])
}

export function extension(type: number, ...parts: readonly Uint8Array[]): Uint8Array {
  return concatBytes([uint16(type), vector(2, ...parts)])
}

export function uint16(value: number): Uint8Array {
  return Uint8Array.of(value >>> 8, value)
}

/** What a CertificateVerify signs (RFC 8446 section 4.4.3), so that a signature fits into no other place. */
export function certificateVerifyInput(signer: 'client' | 'server', transcriptDigest: Uint8Array): Uint8Array {
  const context = new TextEncoder().encode(`TLS 1.3, ${signer} CertificateVerify\0`)
  return concatBytes([new Uint8Array(64).fill(0x20), context, transcriptDigest])
}
