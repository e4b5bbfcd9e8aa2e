/**
 * What is wrong with a configuration beyond the bounds of single keys: values that do not go together, files that cannot be
 * used. Looked for before anything is opened, so that a start with a bad configuration changes nothing, and told all at once.
 */
import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { EdgeError, messageOf } from '../errors.ts'
import { readFileBytes } from '../file-kind.ts'
import { checkPlainQuicKey } from '../quic-edge/index.ts'
import { configInvalid, firstWord } from './config/load.ts'
import type { Config } from './config/schema.ts'
import { type Address, parseAddress } from './config/value.ts'
import { findExposedListeners } from './exposure.ts'
import { findSyncProblems } from './forwarding.ts'
import { ANY } from './http/cors.ts'
import { isOwnCertificate } from './listener-certificate.ts'

interface CertificateKeys {
  readonly isWanted: boolean
  /** What its listener wants of them beyond what all do. @throws {EdgeError} they are not that. */
  readonly check?: (certificatePem: string, privateKeyPem: string) => void
  readonly certificate: { readonly key: string; readonly path: string }
  readonly privateKey: { readonly key: string; readonly path: string }
}

const NONE: ReadonlySet<string> = new Set()

/**
 * @param misread first words of the sections with values that could not be read: nothing is said of these.
 * @returns a line for each problem, beginning with the keys it is about.
 */
export function findConfigProblems(config: Config, misread = NONE): readonly string[] {
  const problems = [
    // With `system.allow_plaintext` unread, whether a listener may stand in the open is not known.
    ...(misread.has('system') ? [] : findExposedListeners(config)),
    ...(config.tcp.tls_required && !config.tcp.tls_enabled
      ? ['tcp.tls_required: found true without TLS, expected tcp.tls_enabled = true beside it']
      : []),
    ...findSharedPorts(config),
    ...findHttpProblems(config),
    ...certificatesOf(config).flatMap(findCertificateProblems),
    ...findSyncProblems(config),
  ]
  return problems.filter((problem) => !misread.has(firstWord(problem)))
}

/**
 * The configuration itself is right where files of a certificate that it names are all that is wrong: a renewal puts them
 * right, or a disk that is mounted late, so a start is worth another try.
 *
 * @returns undefined when there are no problems.
 */
export function startRefusal(config: Config): EdgeError | undefined {
  const problems = findConfigProblems(config)
  if (problems.length === 0) return undefined
  const invalid = configInvalid(problems)
  const named = certificatesOf(config).filter(({ certificate, privateKey }) => certificate.path && privateKey.path)
  const ofFiles = new Set(named.flatMap(findCertificateProblems))
  if (!problems.every((problem) => ofFiles.has(problem))) return invalid
  return new EdgeError('EDGE_CERTIFICATE_UNUSABLE', invalid.message, { details: invalid.details })
}

const ANY_HOST: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Of our own listeners the system would say that another process has the port. */
function findSharedPorts(config: Config): readonly string[] {
  const { tcp, websocket, http, webtransport, quic } = config
  const overTcp = [
    { key: 'tcp.address', isOn: tcp.enabled, text: tcp.address },
    { key: 'websocket.address', isOn: websocket.enabled, text: websocket.address },
    { key: 'http.address', isOn: http.enabled, text: http.address },
    {
      key: 'webtransport.address',
      isOn: webtransport.enabled && webtransport.tcp_fallback,
      text: webtransport.address,
    },
  ]
  const overUdp = [
    { key: 'webtransport.address', isOn: webtransport.enabled, text: webtransport.address },
    { key: 'quic.address', isOn: quic.enabled, text: quic.address },
  ]
  return [overTcp, overUdp].flatMap(findShared)
}

interface Place {
  readonly key: string
  readonly isOn: boolean
  readonly text: string
}

function findShared(listeners: readonly Place[]): readonly string[] {
  const on = listeners.flatMap((each) => (each.isOn ? [{ ...each, at: parseAddress(each.text) }] : []))
  return on.flatMap(({ key, text, at }, index) => {
    const other = on.slice(0, index).find((each) => isSamePlace(at, each.at))
    return other === undefined ? [] : [`${key}: found "${text}", expected another port than ${other.key} has`]
  })
}

function isSamePlace(a: Address | null, b: Address | null): boolean {
  if (a === null || b === null || a.port === 0 || a.port !== b.port) return false
  return a.host === b.host || ANY_HOST.has(a.host) || ANY_HOST.has(b.host)
}

/** What would fail at the first request, or never be found. */
function findHttpProblems({ 'http.cors': cors, 'http.metrics': metrics }: Config): readonly string[] {
  return [
    ...(cors.enabled ? findCorsProblems(cors) : []),
    ...(metrics.enabled && !/^\/[^\s?#]+$/.test(metrics.endpoint)
      ? [`http.metrics.endpoint: found ${JSON.stringify(metrics.endpoint)}, expected a path such as "/metrics"`]
      : []),
  ]
}

/** Browsers refuse what is allowed to everybody together with credentials. */
function findCorsProblems(cors: Config['http.cors']): readonly string[] {
  const { allowed_origins, allowed_methods, allowed_headers, exposed_headers } = cors
  const isOrigin = (text: string, index: number): boolean =>
    (text === ANY && index === 0) || (URL.canParse(text) && new URL(text).origin === text)
  const wrong = (
    key: string,
    values: readonly string[],
    isRight: (text: string, index: number) => boolean,
    what: string,
  ) =>
    values
      .filter((text, index) => !isRight(text, index))
      .map((text) => `http.cors.${key}: found ${JSON.stringify(text)}, expected ${what}`)
  const open = Object.entries({ allowed_origins, allowed_methods, allowed_headers, exposed_headers }).flatMap(
    ([key, values]) =>
      values.includes(ANY)
        ? [`http.cors.${key}: found *, expected names beside http.cors.allow_credentials = true`]
        : [],
  )
  return [
    ...wrong(
      'allowed_origins',
      allowed_origins,
      isOrigin,
      '* in the first place or an origin such as "https://example.org"',
    ),
    ...wrong('allowed_methods', allowed_methods, isHttpToken, 'a method such as "GET"'),
    ...wrong('allowed_headers', allowed_headers, isHttpToken, 'the name of a header'),
    ...wrong('exposed_headers', exposed_headers, isHttpToken, 'the name of a header'),
    ...(cors.allow_credentials ? open : []),
  ]
}

const isHttpToken = (text: string): boolean => /^[\w!#$%&'*+.^`|~-]+$/.test(text)

function certificatesOf(config: Config): readonly CertificateKeys[] {
  const { tcp, websocket, webtransport, quic, 'http.tls': http } = config
  const hasOwn = webtransport.tls_cert_file !== '' || webtransport.tls_key_file !== ''
  return [
    {
      isWanted: tcp.enabled && tcp.tls_enabled && !isOwnCertificate(tcp),
      certificate: { key: 'tcp.tls_cert_file', path: tcp.tls_cert_file },
      privateKey: { key: 'tcp.tls_key_file', path: tcp.tls_key_file },
    },
    {
      isWanted: websocket.enabled && websocket.tls_enabled && !isOwnCertificate(websocket),
      certificate: { key: 'websocket.tls_cert_file', path: websocket.tls_cert_file },
      privateKey: { key: 'websocket.tls_key_file', path: websocket.tls_key_file },
    },
    {
      isWanted: config.http.enabled && http.enabled,
      certificate: { key: 'http.tls.cert_file', path: http.cert_file },
      privateKey: { key: 'http.tls.key_file', path: http.key_file },
    },
    {
      isWanted: webtransport.enabled && hasOwn,
      certificate: { key: 'webtransport.tls_cert_file', path: webtransport.tls_cert_file },
      privateKey: { key: 'webtransport.tls_key_file', path: webtransport.tls_key_file },
    },
    {
      isWanted: quic.enabled && !isOwnCertificate(quic),
      check: checkPlainQuicKey,
      certificate: { key: 'quic.tls_cert_file', path: quic.tls_cert_file },
      privateKey: { key: 'quic.tls_key_file', path: quic.tls_key_file },
    },
  ]
}

function findCertificateProblems({ isWanted, check, certificate, privateKey }: CertificateKeys): readonly string[] {
  if (!isWanted) return []
  const problems: string[] = []
  const cert = readPem(certificate, problems)
  const key = readPem(privateKey, problems)
  if (cert === null || key === null) return problems
  try {
    new X509Certificate(cert)
  } catch (error) {
    return [`${certificate.key}: "${certificate.path}" holds no certificate in PEM: ${messageOf(error)}`]
  }
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    return [`${privateKey.key}: "${privateKey.path}" is no key of ${certificate.key}: ${messageOf(error)}`]
  }
  try {
    check?.(cert, key)
    return []
  } catch (error) {
    return [`${privateKey.key}: "${privateKey.path}": ${messageOf(error)}`]
  }
}

function readPem({ key, path }: { key: string; path: string }, problems: string[]): string | null {
  if (path === '') {
    problems.push(`${key}: found none, expected a PEM file`)
    return null
  }
  try {
    return readFileBytes(path).toString('utf8')
  } catch (error) {
    problems.push(`${key}: "${path}" cannot be read: ${messageOf(error)}`)
    return null
  }
}
