/** What a server picks from a ClientHello: ours in order of preference, among what the client offers. Pure. */
import { CHACHA20_POLY1305, CIPHER_SUITES, type CipherSuite } from '../crypto/cipher-suite.ts'
import { GROUPS, type Group, isGroup } from '../crypto/key-exchange.ts'
import { ALERT, alertError } from '../wire/quic-error.ts'
import type { SignatureScheme, TlsIdentity, TlsServerOptions } from './api.ts'
import type { ClientHello } from './client-hello.ts'

/** @throws QuicError handshake_failure */
export function chooseSuite(hello: ClientHello, { suites }: Pick<TlsServerOptions, 'suites'>): CipherSuite {
  const ours = suites?.flatMap((id) => CIPHER_SUITES.find((suite) => suite.id === id) ?? []) ?? CIPHER_SUITES
  const common = ours.filter(({ id }) => hello.suites.includes(id))
  // A client that puts ChaCha20 first has no instructions for AES: it costs us little and spares it much.
  const prefersChaCha = hello.suites[0] === CHACHA20_POLY1305.id && common.includes(CHACHA20_POLY1305)
  const suite = prefersChaCha ? CHACHA20_POLY1305 : common[0]
  if (suite === undefined) throw alertError(ALERT.handshakeFailure, 'no common cipher suite')
  return suite
}

/**
 * A group that a key share is there for goes before one that costs a round trip.
 *
 * @throws QuicError handshake_failure
 */
export function chooseGroup(hello: ClientHello, { groups }: Pick<TlsServerOptions, 'groups'>): Group {
  const ours = groups?.filter(isGroup) ?? GROUPS
  const common = ours.filter((id) => hello.groups.includes(id))
  const group = common.find((id) => hello.keyShares.has(id)) ?? common[0]
  if (group === undefined) throw alertError(ALERT.handshakeFailure, 'no common group')
  return group
}

/** @throws QuicError handshake_failure */
export function chooseScheme(hello: ClientHello, identity: TlsIdentity): SignatureScheme {
  const scheme = identity.schemes.find((id) => hello.signatureSchemes.includes(id))
  if (scheme === undefined) throw alertError(ALERT.handshakeFailure, 'no common signature scheme')
  return scheme
}

/**
 * @returns undefined when none is needed.
 * @throws QuicError no_application_protocol, which QUIC demands where an application needs a protocol (RFC 9001 section 8.1).
 */
export function chooseProtocol(
  hello: ClientHello,
  { alpnProtocols }: Pick<TlsServerOptions, 'alpnProtocols'>,
): string | undefined {
  if (alpnProtocols.length === 0) return undefined
  const protocol = alpnProtocols.find((name) => hello.protocols?.includes(name))
  if (protocol === undefined) throw alertError(ALERT.noApplicationProtocol, 'no common application protocol')
  return protocol
}
