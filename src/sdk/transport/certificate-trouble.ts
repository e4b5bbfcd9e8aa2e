/**
 * Why no session over HTTP/2 came about: the package says no more than that there was no handshake. A TLS connection of our
 * own asks again, once a failed attempt.
 */
import { TLSSocket } from 'node:tls'
import { EdgeError } from '../../errors.ts'
import { openSocket } from './tcp.ts'
import type { DialFailureReason } from './transport.ts'

export interface Pinned {
  readonly host: string
  readonly port: number
  /** Hex; '' = the system's authorities decide. */
  readonly certificateHash: string
  readonly connectTimeoutMs: number
}

/** A certificate that is known by its hash alone must not be valid for longer (W3C WebTransport). */
const MAX_PINNED_DAYS = 14
const DAY_MS = 86_400_000

/** @returns null when TLS is not what fails. */
export async function certificateTrouble(where: Pinned, signal: AbortSignal): Promise<EdgeError | null> {
  const { certificateHash: hash, ...place } = where
  const tls = { tls: true, tlsDomain: '', tlsCaFile: '', tlsValidateCertificate: hash === '', nodelay: true }
  try {
    const { raw, socket } = await openSocket({ ...place, ...tls }, signal)
    raw.destroy()
    if (hash === '' || !(socket instanceof TLSSocket)) return null
    const { fingerprint256, valid_from, valid_to } = socket.getPeerCertificate()
    return pinTrouble(where, fingerprint256 ?? '', Date.parse(valid_from), Date.parse(valid_to))
  } catch (error) {
    return error instanceof EdgeError ? error : null
  }
}

function pinTrouble({ host, port, certificateHash }: Pinned, fingerprint: string, fromMs: number, toMs: number) {
  const told = (reason: DialFailureReason, text: string): EdgeError =>
    new EdgeError('EDGE_UPSTREAM_UNREACHABLE', `${host}:${port}: ${text}`, { details: { reason } })
  const found = fingerprint.replaceAll(':', '').toLowerCase()
  if (found !== certificateHash.toLowerCase()) {
    return told('certificate', `the certificate has SHA-256 ${found}, expected certificate_hash ${certificateHash}`)
  }
  const nowMs = Date.now()
  if (nowMs < fromMs || nowMs > toMs) {
    const dates = `${new Date(fromMs).toISOString()} to ${new Date(toMs).toISOString()}`
    return told('clock', `the certificate is valid from ${dates}, and here it is ${new Date(nowMs).toISOString()}`)
  }
  if (toMs - fromMs <= MAX_PINNED_DAYS * DAY_MS) return null
  return told(
    'certificate',
    `the certificate is valid for more than ${MAX_PINNED_DAYS} days: too long for certificate_hash`,
  )
}
