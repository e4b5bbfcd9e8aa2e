/** The messages of a server (RFC 8446 sections 4.1.3 to 4.4), encoded. Pure. */
import type { CipherSuite } from '../crypto/cipher-suite.ts'
import type { Group, KeyShare } from '../crypto/key-exchange.ts'
import type { SignatureScheme } from './api.ts'
import {
  EXTENSION,
  encodeMessage,
  extension,
  LEGACY_VERSION,
  MESSAGE,
  RETRY_RANDOM,
  TLS_1_3,
  uint16,
  vector,
} from './message.ts'

const NO_COMPRESSION = Uint8Array.of(0)

/** Asks for a hello with a key share of `group`. */
export function encodeRetryRequest(suite: CipherSuite, group: Group): Uint8Array {
  return encodeHello(RETRY_RANDOM, suite, uint16(group))
}

/** @param random 32 bytes. */
export function encodeServerHello(random: Uint8Array, suite: CipherSuite, share: KeyShare): Uint8Array {
  return encodeHello(random, suite, uint16(share.group), vector(2, share.publicBytes))
}

/** @param protocol agreed on by ALPN. */
export function encodeEncryptedExtensions(protocol: string | undefined, transportParameters: Uint8Array): Uint8Array {
  const extensions = [extension(EXTENSION.quicTransportParameters, transportParameters)]
  if (protocol !== undefined) {
    extensions.push(extension(EXTENSION.alpn, vector(2, vector(1, Buffer.from(protocol, 'latin1')))))
  }
  return encodeMessage(MESSAGE.encryptedExtensions, vector(2, ...extensions))
}

/** @param certificates DER. */
export function encodeCertificate(certificates: readonly Uint8Array[]): Uint8Array {
  const noContext = vector(1)
  const noExtensions = vector(2)
  const entries = certificates.flatMap((certificate) => [vector(3, certificate), noExtensions])
  return encodeMessage(MESSAGE.certificate, noContext, vector(3, ...entries))
}

export function encodeCertificateVerify(scheme: SignatureScheme, signature: Uint8Array): Uint8Array {
  return encodeMessage(MESSAGE.certificateVerify, uint16(scheme), vector(2, signature))
}

export function encodeFinished(mac: Uint8Array): Uint8Array {
  return encodeMessage(MESSAGE.finished, mac)
}

function encodeHello(random: Uint8Array, suite: CipherSuite, ...keyShare: readonly Uint8Array[]): Uint8Array {
  const noSession = vector(1) // clients send none in QUIC, and it is echoed
  return encodeMessage(
    MESSAGE.serverHello,
    uint16(LEGACY_VERSION),
    random,
    noSession,
    uint16(suite.id),
    NO_COMPRESSION,
    vector(2, extension(EXTENSION.supportedVersions, uint16(TLS_1_3)), extension(EXTENSION.keyShare, ...keyShare)),
  )
}
