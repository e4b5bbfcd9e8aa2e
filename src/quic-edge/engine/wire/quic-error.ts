/**
 * What ends a QUIC connection, with the codes of RFC 9000 section 20 and the TLS alerts of RFC 8446 section 6. Pure.
 *
 * Thrown inside the engine wherever a peer breaks a rule; the connection turns it into a CONNECTION_CLOSE. It never leaves
 * the engine: at the driver's border it becomes an `EdgeError`.
 */

/** Transport error codes (RFC 9000 section 20.1) that this stack sends. */
export const TRANSPORT_ERROR = {
  noError: 0x00,
  internalError: 0x01,
  connectionRefused: 0x02,
  flowControlError: 0x03,
  streamLimitError: 0x04,
  streamStateError: 0x05,
  finalSizeError: 0x06,
  frameEncodingError: 0x07,
  transportParameterError: 0x08,
  connectionIdLimitError: 0x09,
  protocolViolation: 0x0a,
  invalidToken: 0x0b,
  applicationError: 0x0c,
  cryptoBufferExceeded: 0x0d,
  aeadLimitReached: 0x0f,
  noViablePath: 0x10,
} as const

/** TLS alerts that this stack sends. */
export const ALERT = {
  unexpectedMessage: 10,
  handshakeFailure: 40,
  illegalParameter: 47,
  decodeError: 50,
  decryptError: 51,
  protocolVersion: 70,
  missingExtension: 109,
  unsupportedExtension: 110,
  noApplicationProtocol: 120,
} as const
export type Alert = (typeof ALERT)[keyof typeof ALERT]

/** Alerts travel as 0x0100 to 0x01ff (RFC 9001 section 4.8). */
const CRYPTO_ERROR_BASE = 0x100
const CRYPTO_FRAME = 0x06

export class QuicError extends Error {
  override readonly name = 'QuicError'
  /** Of `TRANSPORT_ERROR`, or 0x0100 to 0x01ff for an alert. */
  readonly code: number
  /** Type of the frame that caused it; 0 when none or unknown. */
  readonly frameType: number

  /** @param reason becomes the reason phrase that the peer reads: nothing secret, ASCII. */
  constructor(code: number, reason: string, frameType = 0) {
    super(reason)
    this.code = code
    this.frameType = frameType
  }
}

/** @returns the error that closes with a TLS alert; the caller throws it. */
export function alertError(alert: Alert, reason: string): QuicError {
  return new QuicError(CRYPTO_ERROR_BASE + alert, reason, CRYPTO_FRAME)
}
