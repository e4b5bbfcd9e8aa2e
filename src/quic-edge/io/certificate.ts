/**
 * Where the certificate comes from: files of the operator, or one of our own making.
 *
 * A certificate of our own lives in one PEM file together with its key, so that a power cut during renewal leaves the old
 * pair or the new one, never half of each. Renewal keeps the key: whoever pins the key rather than the certificate need
 * not learn anything new.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, open, readFile, rename, writeFile } from 'node:fs/promises'
import { hostname, networkInterfaces } from 'node:os'
import path from 'node:path'
import type { Clock } from '../../clock.ts'
import { EdgeError, messageOf, systemCodeOf, toEdgeError } from '../../errors.ts'
import { refuseOtherThanFile } from '../../file-kind.ts'
import { type Logger, silentLogger } from '../../logger.ts'
import { encodeSelfSigned } from '../core/self-signed.ts'
import { QUIC_EDGE_DEFAULTS } from '../defaults.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const FILE_NAME = 'self-signed.pem'

export type CertificateSource =
  | { readonly type: 'files'; readonly certificateFile: string; readonly privateKeyFile: string }
  | { readonly type: 'self-signed'; readonly directory: string }

export interface Certificate {
  readonly certificatePem: string
  readonly privateKeyPem: string
  /** Of the first certificate, DER: what `serverCertificateHashes` and `?pin=` take. Lower-case hex. */
  readonly sha256: string
  /** Of its public key (SPKI): stays the same when our own certificate is renewed. */
  readonly keySha256: string
  /** Since the Unix epoch, as `notAfterMs`. */
  readonly notBeforeMs: number
  readonly notAfterMs: number
  readonly isSelfSigned: boolean
  /** Why what its files hold now cannot be used, while this one is served on; empty or missing when all is well. */
  readonly trouble?: string
}

export interface LoadOptions {
  /** Whether the clock is set; while it is not, what is kept is used whatever its dates: its peers know the time. */
  readonly isClockTrusted?: () => boolean
  readonly logger?: Logger
}

/** A certificate of our own making. */
interface OwnCertificate {
  readonly certificate: Certificate
  /** Why its file does not hold it, or cannot be read; empty when all is well. */
  readonly trouble: string
}

/** By their file, what this process serves: all listeners the same, also while the disk neither gives nor takes it. */
const served = new Map<string, OwnCertificate>()

/**
 * @returns the certificate to use now; makes or renews our own when it is time. One that the disk does not take is used as
 *   well, and told of: the next look tries to keep it.
 * @throws EDGE_CONFIG_INVALID when files cannot be read, or do not hold a certificate and its key.
 */
export async function loadCertificate(
  source: CertificateSource,
  clock: Clock,
  { isClockTrusted = () => true, logger = silentLogger }: LoadOptions = {},
): Promise<Certificate> {
  if (source.type === 'files') {
    const certificatePem = await readPem(source.certificateFile)
    const privateKeyPem = await readPem(source.privateKeyFile)
    try {
      return describe(certificatePem, privateKeyPem, false)
    } catch (error) {
      const { code, message } = toEdgeError(error)
      const files = `${source.certificateFile} with ${source.privateKeyFile}`
      throw new EdgeError(code, `${files}: ${message}`, { cause: error })
    }
  }
  const file = path.join(source.directory, FILE_NAME)
  const before = served.get(file)
  const own = await ownCertificate(file, before, { nowMs: Number(clock.wallUs() / 1000n), isClockTrusted, logger })
  // Whoever pins it is shut out by a restart: an operator must know, once.
  if (own.trouble !== '' && own.trouble !== before?.trouble) {
    logger.error('certificate.unkept', { path: file, reason: own.trouble })
  }
  served.set(file, own)
  return own.certificate
}

async function ownCertificate(
  file: string,
  before: OwnCertificate | undefined,
  { nowMs, isClockTrusted, logger }: Required<LoadOptions> & { readonly nowMs: number },
): Promise<OwnCertificate> {
  const waiting = before === undefined || before.trouble === '' ? undefined : before.certificate
  let kept: Certificate | undefined
  try {
    kept = await keptCertificate(file, waiting === undefined ? logger : silentLogger)
  } catch (error) {
    // Never written over: what cannot be read now may be read again.
    const isUsable = before !== undefined && isValid(before.certificate, nowMs)
    const certificate = isUsable ? before.certificate : makeSelfSigned(newKey(), nowMs)
    return { certificate, trouble: toEdgeError(error).message }
  }
  if (kept !== undefined && (isFresh(kept, nowMs) || !isClockTrusted())) return { certificate: kept, trouble: '' }
  const made =
    waiting !== undefined && isFresh(waiting, nowMs)
      ? waiting
      : makeSelfSigned(kept === undefined ? newKey() : createPrivateKey(kept.privateKeyPem), nowMs)
  try {
    await keep(file, made)
    return { certificate: made, trouble: '' }
  } catch (error) {
    // A full disk must not end what still works, nor keep the log from its start.
    if (kept !== undefined && isValid(kept, nowMs)) return { certificate: kept, trouble: '' }
    return { certificate: made, trouble: toEdgeError(error).message }
  }
}

/** One that does not end soon. */
function isFresh(certificate: Certificate, nowMs: number): boolean {
  return (
    isValid(certificate, nowMs + QUIC_EDGE_DEFAULTS.selfSignedRenewBeforeDays * DAY_MS) && isValid(certificate, nowMs)
  )
}

/** It begins in the future when the clock was wrong as it was made. */
function isValid({ notBeforeMs, notAfterMs }: Certificate, nowMs: number): boolean {
  return nowMs >= notBeforeMs && nowMs < notAfterMs
}

function makeSelfSigned(privateKey: KeyObject, nowMs: number): Certificate {
  const notBeforeMs = nowMs - QUIC_EDGE_DEFAULTS.selfSignedBackdateHours * HOUR_MS
  const der = encodeSelfSigned({
    commonName: 'iggy-edge',
    dnsNames: [...new Set(['localhost', hostname()])],
    ipAddresses: ownAddresses(),
    publicKeyDer: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    // A first byte between 1 and 127 keeps it positive and of fixed length.
    serialBytes: Uint8Array.of(0x40 | ((randomBytes(1)[0] ?? 0) & 0x3f), ...randomBytes(15)),
    notBeforeMs,
    notAfterMs: notBeforeMs + QUIC_EDGE_DEFAULTS.selfSignedValidityDays * DAY_MS,
    sign: (bytes) => sign('sha256', bytes, privateKey),
  })
  const certificatePem = new X509Certificate(der).toString()
  return describe(certificatePem, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), true)
}

function newKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
}

/** So that `https://<address>` of this machine matches, for clients that check names. */
function ownAddresses(): Uint8Array[] {
  const addresses = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter((one) => one.family === 'IPv4')
    .map((one) => one.address)
  const ipv4 = [...new Set(['127.0.0.1', ...addresses])].map((text) => Uint8Array.from(text.split('.').map(Number)))
  const loopbackIpv6 = new Uint8Array(16)
  loopbackIpv6[15] = 1
  return [...ipv4, loopbackIpv6]
}

function describe(certificatePem: string, privateKeyPem: string, isSelfSigned: boolean): Certificate {
  try {
    const certificate = new X509Certificate(certificatePem)
    if (!certificate.checkPrivateKey(createPrivateKey(privateKeyPem))) {
      throw new EdgeError('EDGE_CONFIG_INVALID', 'the private key does not belong to the certificate')
    }
    return {
      certificatePem,
      privateKeyPem,
      sha256: sha256(certificate.raw),
      keySha256: sha256(certificate.publicKey.export({ type: 'spki', format: 'der' })),
      notBeforeMs: Date.parse(certificate.validFrom),
      notAfterMs: Date.parse(certificate.validTo),
      isSelfSigned,
    }
  } catch (error) {
    if (error instanceof EdgeError) throw error
    const text = messageOf(error)
    throw new EdgeError('EDGE_CONFIG_INVALID', `certificate or private key cannot be used: ${text}`, { cause: error })
  }
}

/** @returns undefined when there is none, or only a damaged one: then a new one is made. @throws when it cannot be read. */
async function keptCertificate(file: string, logger: Logger): Promise<Certificate | undefined> {
  let pem: string
  try {
    refuseOtherThanFile(file)
    pem = await readFile(file, 'utf8')
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error
    // The folder is made with the first one.
    if (existsSync(path.dirname(file))) tellLost(file, 'it was deleted', logger)
    return undefined
  }
  try {
    // Without the key beside it: the same text as when it was made.
    return describe(new X509Certificate(pem).toString(), pem, true)
  } catch (error) {
    tellLost(file, toEdgeError(error).message, logger)
    return undefined
  }
}

/** With the key whoever pins it is shut out: an operator must know. */
function tellLost(file: string, reason: string, logger: Logger): void {
  const text =
    'a certificate with another key is made: devices that pin the old one need the new hash, which status shows'
  logger.error('certificate.lost', { path: file, reason, text })
}

async function keep(file: string, certificate: Certificate): Promise<void> {
  const partial = `${file}.partial`
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    await writeFile(partial, certificate.privateKeyPem + certificate.certificatePem, { mode: 0o600, flush: true })
    await rename(partial, file)
    // Whoever is told the hash may pin it: it must be the same after a power cut.
    const folder = await open(path.dirname(file), 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  } catch (error) {
    const text = messageOf(error)
    const details = { code: systemCodeOf(error) }
    throw new EdgeError('EDGE_IO', `the certificate cannot be kept: ${text}`, { cause: error, details })
  }
}

async function readPem(file: string): Promise<string> {
  try {
    refuseOtherThanFile(file)
    return await readFile(file, 'utf8')
  } catch (error) {
    const text = messageOf(error)
    throw new EdgeError('EDGE_CONFIG_INVALID', `certificate file: ${text}`, { cause: error })
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
