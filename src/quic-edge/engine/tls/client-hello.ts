/**
 * Reads a ClientHello (RFC 8446 section 4.1.2) as strictly as a server may. Pure.
 *
 * ```
 * [legacy version:2] [random:32] [session id:1+0] [cipher suites:2+2n] [compression:1+1, zero] [extensions:2+n]
 * ```
 *
 * Extensions that the server does not act on are skipped, reserved ones among them; those it does act on must be whole,
 * in place and consistent with each other.
 */
import { ALERT, alertError, QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { Reader } from '../wire/reader.ts'
import { EXTENSION, MESSAGE_HEADER_SIZE, RANDOM_SIZE, TLS_1_3 } from './message.ts'

/**
 * Largest hello, header included. Current clients send 250 to 600 bytes, 1,700 with a hybrid key share; encrypted names and
 * more hybrid shares may double that.
 */
export const CLIENT_HELLO_SIZE_MAX = 16 * 1024

const HOST_NAME = 0
const HOST_NAME_SIZE_MAX = 255

/** Views of the message, which the reader of it keeps. */
export interface ClientHello {
  /** The whole message. */
  readonly messageBytes: Uint8Array
  readonly randomView: Uint8Array
  /** In the client's order, as all lists. */
  readonly suites: readonly number[]
  readonly groups: readonly number[]
  /** By group. */
  readonly keyShares: ReadonlyMap<number, Uint8Array>
  readonly signatureSchemes: readonly number[]
  /** Undefined: the client knows no ALPN. */
  readonly protocols: readonly string[] | undefined
  readonly serverName: string | undefined
  readonly transportParametersView: Uint8Array
  readonly extensions: ReadonlyMap<number, Uint8Array>
}

/** @throws QuicError with the alert that RFC 8446 or RFC 9001 names. */
export function readClientHello(messageBytes: Uint8Array): ClientHello {
  try {
    return clientHelloOf(messageBytes)
  } catch (error) {
    // The reader knows of no TLS: what is cut short is a decode_error here.
    const isTruncated = error instanceof QuicError && error.code === TRANSPORT_ERROR.frameEncodingError
    throw isTruncated ? malformed('cut short') : error
  }
}

/** After a HelloRetryRequest all but the key share must be as it was (RFC 8446 section 4.1.2): what the server acts on. */
export function isSameHello(first: ClientHello, second: ClientHello): boolean {
  const kept = [
    EXTENSION.serverName,
    EXTENSION.supportedGroups,
    EXTENSION.signatureAlgorithms,
    EXTENSION.alpn,
    EXTENSION.supportedVersions,
    EXTENSION.quicTransportParameters,
  ]
  return (
    isEqual(first.randomView, second.randomView) &&
    first.suites.join() === second.suites.join() &&
    kept.every((id) => isEqual(first.extensions.get(id), second.extensions.get(id)))
  )
}

function clientHelloOf(messageBytes: Uint8Array): ClientHello {
  const reader = new Reader(messageBytes, MESSAGE_HEADER_SIZE)
  reader.u16() // the legacy version decides nothing beside supported_versions (RFC 8446 section 4.2.1)
  const randomView = reader.take(RANDOM_SIZE)
  if (reader.vector8().left > 0) {
    // The "compatibility mode" is for middleboxes of TCP (RFC 9001 section 8.4).
    throw new QuicError(TRANSPORT_ERROR.protocolViolation, 'TLS session id in QUIC')
  }
  const suites = readNumbers(reader.vector16(), 'cipher suites')
  const compression = reader.vector8().rest()
  if (compression.length !== 1 || compression[0] !== 0) throw illegal('compression')
  const extensions = readExtensions(reader)
  expectTls13(extensions)
  expectPskRules(extensions)
  expectAllOf(extensions, ['signatureAlgorithms', 'supportedGroups', 'keyShare', 'quicTransportParameters'])
  const groups = readList(extensions, EXTENSION.supportedGroups, 'supported groups')
  return {
    messageBytes,
    randomView,
    suites,
    groups,
    keyShares: readKeyShares(partOf(extensions, EXTENSION.keyShare), groups),
    signatureSchemes: readList(extensions, EXTENSION.signatureAlgorithms, 'signature algorithms'),
    protocols: extensions.has(EXTENSION.alpn) ? readProtocols(partOf(extensions, EXTENSION.alpn)) : undefined,
    serverName: extensions.has(EXTENSION.serverName)
      ? readServerName(partOf(extensions, EXTENSION.serverName))
      : undefined,
    transportParametersView: partOf(extensions, EXTENSION.quicTransportParameters).rest(),
    extensions,
  }
}

/** In the order sent, which a `Map` keeps. A hello of TLS 1.2 may end before. */
function readExtensions(reader: Reader): ReadonlyMap<number, Uint8Array> {
  const extensions = new Map<number, Uint8Array>()
  if (reader.left === 0) return extensions
  const block = reader.vector16()
  expectEnd(reader, 'extensions')
  while (block.left > 0) {
    const id = block.u16()
    if (extensions.has(id)) throw malformed(`extension ${id} twice`)
    extensions.set(id, block.vector16().rest())
  }
  return extensions
}

function expectTls13(extensions: ReadonlyMap<number, Uint8Array>): void {
  const versions = extensions.has(EXTENSION.supportedVersions)
    ? readWhole(partOf(extensions, EXTENSION.supportedVersions), 'supported versions', (part) => part.vector8())
    : undefined
  const isOffered = versions !== undefined && readNumbers(versions, 'supported versions').includes(TLS_1_3)
  if (!isOffered) throw alertError(ALERT.protocolVersion, 'TLS 1.3 is not offered')
}

/** No ticket is ever given out, so none is accepted; a cookie neither. What must hold of their place is still checked. */
function expectPskRules(extensions: ReadonlyMap<number, Uint8Array>): void {
  if (extensions.has(EXTENSION.cookie)) throw illegal('a cookie that nobody gave')
  if (!extensions.has(EXTENSION.preSharedKey)) return
  if ([...extensions.keys()].at(-1) !== EXTENSION.preSharedKey) throw illegal('pre_shared_key is not last')
  expectAllOf(extensions, ['pskKeyExchangeModes'])
}

function expectAllOf(extensions: ReadonlyMap<number, Uint8Array>, names: readonly (keyof typeof EXTENSION)[]): void {
  const missing = names.find((name) => !extensions.has(EXTENSION[name]))
  if (missing !== undefined) throw alertError(ALERT.missingExtension, `extension ${EXTENSION[missing]} is missing`)
}

function readKeyShares(part: Reader, groups: readonly number[]): ReadonlyMap<number, Uint8Array> {
  const list = readWhole(part, 'key shares', (whole) => whole.vector16())
  const shares = new Map<number, Uint8Array>()
  // Thousands of both fit into one hello.
  const offered = new Set(groups)
  while (list.left > 0) {
    const group = list.u16()
    const key = list.vector16().rest()
    if (key.length === 0) throw malformed('empty key share')
    if (shares.has(group)) throw illegal(`two key shares of group ${group}`)
    if (!offered.has(group)) throw illegal(`key share of group ${group}, which is not offered`)
    shares.set(group, key)
  }
  return shares
}

/** Names are bytes; Latin-1 keeps them as they are. */
function readProtocols(part: Reader): readonly string[] {
  const list = readWhole(part, 'protocols', (whole) => whole.vector16())
  if (list.left === 0) throw malformed('no protocols')
  const protocols: string[] = []
  while (list.left > 0) {
    const name = list.vector8().rest()
    if (name.length === 0) throw malformed('empty protocol name')
    protocols.push(latin1Of(name))
  }
  return protocols
}

/** One name of the one type there is (RFC 6066 section 3). */
function readServerName(part: Reader): string {
  const list = readWhole(part, 'server name', (whole) => whole.vector16())
  if (list.u8() !== HOST_NAME) throw illegal('type of the server name')
  const name = readWhole(list, 'server name', (whole) => whole.vector16()).rest()
  if (name.length === 0) throw malformed('empty server name')
  const isText = name.length <= HOST_NAME_SIZE_MAX && name.every((byte) => byte > 0x20 && byte < 0x7f)
  if (!isText) throw illegal('server name')
  return latin1Of(name).toLowerCase()
}

function readList(extensions: ReadonlyMap<number, Uint8Array>, id: number, what: string): readonly number[] {
  return readNumbers(
    readWhole(partOf(extensions, id), what, (part) => part.vector16()),
    what,
  )
}

/** At least one number of two bytes. */
function readNumbers(list: Reader, what: string): readonly number[] {
  if (list.left === 0) throw malformed(`no ${what}`)
  const numbers: number[] = []
  while (list.left > 0) numbers.push(list.u16())
  return numbers
}

/** What `read` takes must be all there is. */
function readWhole(part: Reader, what: string, read: (part: Reader) => Reader): Reader {
  const inner = read(part)
  expectEnd(part, what)
  return inner
}

function expectEnd(reader: Reader, what: string): void {
  if (reader.left > 0) throw malformed(`bytes after ${what}`)
}

function partOf(extensions: ReadonlyMap<number, Uint8Array>, id: number): Reader {
  return new Reader(extensions.get(id) ?? new Uint8Array())
}

function isEqual(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return one.length === other.length && one.every((byte, at) => byte === other[at])
}

function latin1Of(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

function malformed(reason: string): QuicError {
  return alertError(ALERT.decodeError, `ClientHello: ${reason}`)
}

function illegal(reason: string): QuicError {
  return alertError(ALERT.illegalParameter, `ClientHello: ${reason}`)
}
