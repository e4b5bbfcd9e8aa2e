/** Builds a ClientHello part by part, also such as no honest client would send. */
import {
  EXTENSION,
  encodeMessage,
  extension,
  LEGACY_VERSION,
  MESSAGE,
  TLS_1_3,
  uint16,
  vector,
} from '../../../src/quic-edge/engine/tls/message.ts'

/** Number of an extension and its content. */
export type HelloExtension = readonly [id: number, content: Uint8Array]

export interface HelloParts {
  readonly legacyVersion: number
  readonly random: Uint8Array
  readonly sessionId: Uint8Array
  readonly suites: readonly number[]
  readonly compression: Uint8Array
  /** In the order sent. */
  readonly extensions: readonly HelloExtension[]
}

export interface OfferedShare {
  readonly group: number
  readonly publicBytes: Uint8Array
}

export function encodeClientHello(parts: HelloParts): Uint8Array {
  return encodeMessage(
    MESSAGE.clientHello,
    uint16(parts.legacyVersion),
    parts.random,
    vector(1, parts.sessionId),
    vector(2, ...parts.suites.map(uint16)),
    vector(1, parts.compression),
    vector(2, ...parts.extensions.map(([id, content]) => extension(id, content))),
  )
}

/** What an honest client puts around its extensions. */
export function helloOf(
  random: Uint8Array,
  suites: readonly number[],
  extensions: readonly HelloExtension[],
): HelloParts {
  const compression = Uint8Array.of(0)
  return { legacyVersion: LEGACY_VERSION, random, sessionId: new Uint8Array(), suites, compression, extensions }
}

export const versions = (...ids: readonly number[]): HelloExtension => [
  EXTENSION.supportedVersions,
  vector(1, ...ids.map(uint16)),
]

export const tls13 = (): HelloExtension => versions(TLS_1_3)

export const groups = (...ids: readonly number[]): HelloExtension => [
  EXTENSION.supportedGroups,
  vector(2, ...ids.map(uint16)),
]

export const signatureSchemes = (...ids: readonly number[]): HelloExtension => [
  EXTENSION.signatureAlgorithms,
  vector(2, ...ids.map(uint16)),
]

export const keyShares = (...shares: readonly OfferedShare[]): HelloExtension => [
  EXTENSION.keyShare,
  vector(2, ...shares.flatMap(({ group, publicBytes }) => [uint16(group), vector(2, publicBytes)])),
]

export const protocols = (...names: readonly string[]): HelloExtension => [
  EXTENSION.alpn,
  vector(2, ...names.map((name) => vector(1, Buffer.from(name, 'latin1')))),
]

export const serverName = (name: string): HelloExtension => [
  EXTENSION.serverName,
  vector(2, Uint8Array.of(0), vector(2, Buffer.from(name, 'latin1'))),
]

export const transportParameters = (bytes: Uint8Array): HelloExtension => [EXTENSION.quicTransportParameters, bytes]
