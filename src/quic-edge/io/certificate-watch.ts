/**
 * Looks at where a certificate comes from every half minute, so that a renewed one works without a restart and without
 * dropping a connection; one that cannot be used leaves the old one in place. All listeners with TLS have one, so that an
 * operator reads the same words for the same trouble.
 */
import { toEdgeError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import { QUIC_EDGE_DEFAULTS } from '../defaults.ts'
import type { Certificate } from './certificate.ts'

export interface CertificateWatchOptions {
  /** The listener that serves it, for messages. */
  readonly listener: string
  /** @returns what to use now. @throws {EdgeError} it cannot be used. */
  load(): Promise<Certificate>
  readonly logger: Logger
  /** For tests. */
  readonly checkMs?: number | undefined
}

/** What it returns is waited for. */
type Replace = (certificate: Certificate) => unknown

export class CertificateWatch {
  readonly #options: CertificateWatchOptions
  #current: Certificate
  #replace: Replace = () => {}
  #timer: NodeJS.Timeout | undefined
  #reloading: Promise<boolean> | undefined
  #isClosed = false

  constructor(options: CertificateWatchOptions, current: Certificate) {
    this.#options = options
    this.#current = current
  }

  get current(): Certificate {
    return this.#current
  }

  /** From now on, hands each new one to `replace`; what it could not take is tried again at the next look. */
  watch(replace: Replace): void {
    this.#replace = replace
    this.#timer ??= setInterval(() => void this.#look(), this.#options.checkMs ?? QUIC_EDGE_DEFAULTS.certificateCheckMs)
    this.#timer.unref()
  }

  /** Looks now. @returns whether there was a new one. @throws {EdgeError} it cannot be used, or was not taken. */
  reload(): Promise<boolean> {
    this.#reloading ??= this.#reload().finally(() => {
      this.#reloading = undefined
    })
    return this.#reloading
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    const { listener, logger } = this.#options
    try {
      await this.reload()
      this.#current = { ...this.#current, trouble: '' }
    } catch (error) {
      const { code, message } = toEdgeError(error)
      // Once, not at every look: it stays so until somebody acts.
      if (this.#current.trouble !== message)
        logger.warn('certificate.unusable', { listener, error_code: code, reason: message })
      this.#current = { ...this.#current, trouble: message }
    }
  }

  async #reload(): Promise<boolean> {
    const { listener, load, logger } = this.#options
    const found = await load()
    // The whole chain: one that was completed has the same first certificate.
    if (this.#isClosed || found.certificatePem === this.#current.certificatePem) return false
    await this.#replace(found)
    this.#current = found
    const not_after = new Date(found.notAfterMs).toISOString()
    logger.info('certificate.replaced', { listener, certificate_sha256: found.sha256, not_after })
    return true
  }
}
