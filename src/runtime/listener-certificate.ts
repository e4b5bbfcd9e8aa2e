/**
 * The certificate of a listener: the operator's files, or one of our own. Looked at again every half minute, so that a renewed
 * one works without a restart and without dropping a connection; one that cannot be used leaves the old one in place.
 */
import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import { EdgeError, toEdgeError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { type Certificate, type CertificateSource, loadCertificate } from '../quic-edge/index.ts'

const CHECK_MS = 30_000

export interface TlsSettings {
  readonly tls_self_signed: boolean
  readonly tls_cert_file: string
  readonly tls_key_file: string
}

export interface CertificateOptions {
  /** The listener that serves it, for messages. */
  readonly listener: string
  /** Where it is configured, for messages. */
  readonly key: string
  readonly source: CertificateSource
  readonly clock: Clock
  readonly logger: Logger
  readonly checkMs?: number
}

export interface ListenerCertificate {
  readonly current: Certificate
  /** From now on, tells of each new one. */
  watch(replace: (certificate: Certificate) => void): void
  /** Idempotent. */
  close(): void
}

/** One for WebTransport and all others, so that a client pins one. */
export const ownCertificateFolder = (dataPath: string): string => join(dataPath, 'certificate')

/** Whether a certificate of our own is meant: files win over it, as in Iggy. */
export const isOwnCertificate = (settings: TlsSettings): boolean =>
  settings.tls_self_signed && settings.tls_cert_file === '' && settings.tls_key_file === ''

export function certificateSourceOf(settings: TlsSettings, dataPath: string): CertificateSource {
  return isOwnCertificate(settings)
    ? { type: 'self-signed', directory: ownCertificateFolder(dataPath) }
    : { type: 'files', certificateFile: settings.tls_cert_file, privateKeyFile: settings.tls_key_file }
}

/** @throws {EdgeError} EDGE_CONFIG_INVALID when the files cannot be used, EDGE_IO when our own cannot be kept. */
export async function openListenerCertificate(options: CertificateOptions): Promise<ListenerCertificate> {
  const { listener, logger, checkMs = CHECK_MS } = options
  let current = await load(options)
  let timer: NodeJS.Timeout | null = null
  let isTold = false

  async function check(replace: (certificate: Certificate) => void): Promise<void> {
    try {
      const found = await load(options)
      isTold = false
      // The whole chain: one that was completed has the same first certificate.
      if (timer === null || found.certificatePem === current.certificatePem) return
      replace(found)
      current = found
      logger.info('server.certificate.replaced', { listener, certificate_sha256: found.sha256 })
    } catch (error) {
      // Once, not every half minute: it stays so until somebody acts.
      if (!isTold) logger.warn('server.certificate.unusable', { listener, error: toEdgeError(error).message })
      isTold = true
    }
  }

  return {
    get current() {
      return current
    },
    watch(replace) {
      timer ??= setInterval(() => void check(replace), checkMs)
      timer.unref()
    },
    close() {
      if (timer !== null) clearInterval(timer)
      timer = null
    },
  }
}

async function load({ key, source, clock, logger }: CertificateOptions): Promise<Certificate> {
  try {
    return await loadCertificate(source, clock, logger)
  } catch (error) {
    const { code, message, details } = toEdgeError(error)
    throw new EdgeError(code, `${key}: ${message}`, { cause: error, details })
  }
}
