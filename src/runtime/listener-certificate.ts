/** The certificate of a listener: the operator's files, or one of our own. */
import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import { EdgeError, toEdgeError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { type CertificateSource, CertificateWatch, loadCertificate } from '../quic-edge/index.ts'

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
  readonly isClockTrusted?: () => boolean
  readonly logger: Logger
  readonly checkMs?: number
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

/** @throws {EdgeError} EDGE_CONFIG_INVALID when the files cannot be used. */
export async function openListenerCertificate(options: CertificateOptions): Promise<CertificateWatch> {
  const { listener, key, source, clock, logger, checkMs } = options
  const load = () => loadCertificate(source, clock, options)
  try {
    return new CertificateWatch({ listener, logger, checkMs, load }, await load())
  } catch (error) {
    const { code, message, details } = toEdgeError(error)
    throw new EdgeError(code, `${key}: ${message}`, { cause: error, details })
  }
}
