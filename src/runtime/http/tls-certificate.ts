/**
 * A certificate from files, taken up anew when the files change: a renewed one works within a minute, without a restart
 * and without dropping a connection. A file that is half written or does not fit its key leaves the old one in use.
 */
import { readFile, stat } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { EdgeError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'

export interface CertificateFiles {
  readonly certPath: string
  readonly keyPath: string
}

export interface CertificatePems {
  readonly cert: string
  readonly key: string
}

export interface WatchedCertificate {
  readonly current: CertificatePems
  onChanged(callback: (pems: CertificatePems) => void): void
  close(): void
}

export const CERTIFICATE_CHECK_MS = 30_000

/** @throws {EdgeError} EDGE_CONFIG_INVALID when the files cannot be read or do not belong together. */
export async function watchCertificate(
  files: CertificateFiles,
  logger: Logger,
  checkMs = CERTIFICATE_CHECK_MS,
): Promise<WatchedCertificate> {
  let current = await load(files)
  let seen = await stampOf(files)
  const callbacks: ((pems: CertificatePems) => void)[] = []
  let isChecking = false

  const check = async (): Promise<void> => {
    if (isChecking) return
    isChecking = true
    try {
      const stamp = await stampOf(files)
      if (stamp === seen) return
      current = await load(files)
      seen = stamp
      for (const callback of callbacks) callback(current)
      logger.info('http.certificate.replaced', { path: files.certPath })
    } catch (error) {
      logger.warn('http.certificate.unusable', { path: files.certPath, reason: String(error) })
    } finally {
      isChecking = false
    }
  }

  const timer = setInterval(() => void check(), checkMs)
  timer.unref()
  return {
    get current() {
      return current
    },
    onChanged: (callback) => void callbacks.push(callback),
    close: () => clearInterval(timer),
  }
}

async function load({ certPath, keyPath }: CertificateFiles): Promise<CertificatePems> {
  if (certPath === '' || keyPath === '')
    throw new EdgeError('EDGE_CONFIG_INVALID', 'http.tls: expected cert_file and key_file, found none')
  try {
    const [cert, key] = await Promise.all([readFile(certPath, 'utf8'), readFile(keyPath, 'utf8')])
    createSecureContext({ cert, key })
    return { cert, key }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const message = `http.tls: certificate ${certPath} with key ${keyPath}: ${reason}`
    throw new EdgeError('EDGE_CONFIG_INVALID', message, { cause })
  }
}

/** Changes when either file was written or replaced. */
async function stampOf({ certPath, keyPath }: CertificateFiles): Promise<string> {
  const stats = await Promise.all([stat(certPath), stat(keyPath)])
  return stats.map(({ ino, mtimeMs, size }) => `${ino}:${mtimeMs}:${size}`).join(' ')
}
