/**
 * Transport parameters (RFC 9000 section 18): what each side allows the other, exchanged inside the TLS handshake. Pure.
 *
 * ```
 * [id:varint] [size:varint] [value]   any number of times, in any order, no id twice
 * ```
 *
 * Left out on purpose: `preferred_address` (a client ignores it, a server never sends it) and version information. Ids that
 * are not known are skipped, as reserved ones must be.
 */
import { CONNECTION_ID_SIZE_MAX, INITIAL_DATAGRAM_SIZE_MIN } from './packet-header.ts'
import { QuicError, TRANSPORT_ERROR } from './quic-error.ts'
import { Reader } from './reader.ts'
import { VARINT_MAX, varintSize } from './varint.ts'
import { Writer } from './writer.ts'

const ID = {
  originalDestinationId: 0x00,
  idleTimeoutMs: 0x01,
  statelessResetToken: 0x02,
  maxDatagramSize: 0x03,
  maxData: 0x04,
  maxStreamDataBidiLocal: 0x05,
  maxStreamDataBidiRemote: 0x06,
  maxStreamDataUni: 0x07,
  maxStreamsBidi: 0x08,
  maxStreamsUni: 0x09,
  ackDelayExponent: 0x0a,
  maxAckDelayMs: 0x0b,
  disableMigration: 0x0c,
  preferredAddress: 0x0d,
  connectionIdLimit: 0x0e,
  initialSourceId: 0x0f,
  retrySourceId: 0x10,
} as const

export const STATELESS_RESET_TOKEN_SIZE = 16
/** A reset looks like a short packet of that size at least (RFC 9000 section 10.3). */
export const STATELESS_RESET_SIZE_MIN = 5 + STATELESS_RESET_TOKEN_SIZE
/** Streams of one direction that a limit may name: their numbers are varints (RFC 9000 section 4.6). */
export const STREAM_COUNT_MAX = 2 ** 60
const ACK_DELAY_EXPONENT_MAX = 20
const ACK_DELAY_MS_MAX = 2 ** 14 - 1
const CONNECTION_ID_LIMIT_MIN = 2
/** Far more than all parameters take; a peer may add reserved ones. */
const ENCODED_SIZE_MAX = 512

/** Sizes and counts are the sender's limits for the receiver. Numbers past 2^53 - 1 are near what was sent. */
export interface TransportParameters {
  /** Server only: the destination id of the client's first Initial. */
  readonly originalDestinationId?: Uint8Array | undefined
  /** 0: none. */
  readonly idleTimeoutMs: number
  /** Server only, 16 bytes. */
  readonly statelessResetToken?: Uint8Array | undefined
  /** Largest UDP payload that the sender takes. */
  readonly maxDatagramSize: number
  readonly maxData: number
  /** For bidirectional streams that the sender of the parameters opens. */
  readonly maxStreamDataBidiLocal: number
  /** For bidirectional streams that their receiver opens. */
  readonly maxStreamDataBidiRemote: number
  readonly maxStreamDataUni: number
  readonly maxStreamsBidi: number
  readonly maxStreamsUni: number
  readonly ackDelayExponent: number
  readonly maxAckDelayMs: number
  readonly disableMigration: boolean
  readonly connectionIdLimit: number
  readonly initialSourceId?: Uint8Array | undefined
  /** Server only, after a Retry. */
  readonly retrySourceId?: Uint8Array | undefined
}

/** What holds for a parameter that is not sent. */
export const TRANSPORT_PARAMETER_DEFAULTS: TransportParameters = {
  idleTimeoutMs: 0,
  maxDatagramSize: 65527,
  maxData: 0,
  maxStreamDataBidiLocal: 0,
  maxStreamDataBidiRemote: 0,
  maxStreamDataUni: 0,
  maxStreamsBidi: 0,
  maxStreamsUni: 0,
  ackDelayExponent: 3,
  maxAckDelayMs: 25,
  disableMigration: false,
  connectionIdLimit: 2,
}

type Mutable = { -readonly [Key in keyof TransportParameters]: TransportParameters[Key] }
type NumberKey =
  | 'idleTimeoutMs'
  | 'maxDatagramSize'
  | 'maxData'
  | 'maxStreamDataBidiLocal'
  | 'maxStreamDataBidiRemote'
  | 'maxStreamDataUni'
  | 'maxStreamsBidi'
  | 'maxStreamsUni'
  | 'ackDelayExponent'
  | 'maxAckDelayMs'
  | 'connectionIdLimit'
type BytesKey = 'originalDestinationId' | 'statelessResetToken' | 'initialSourceId' | 'retrySourceId'

interface NumberRule {
  readonly key: NumberKey
  readonly min: number
  readonly max: number
}

interface BytesRule {
  readonly key: BytesKey
  readonly sizeMin: number
  readonly sizeMax: number
  readonly isServerOnly: boolean
}

const anyNumber = (key: NumberKey): NumberRule => ({ key, min: 0, max: VARINT_MAX })
const connectionId = (key: BytesKey, isServerOnly: boolean): BytesRule => ({
  key,
  sizeMin: 0,
  sizeMax: CONNECTION_ID_SIZE_MAX,
  isServerOnly,
})

const NUMBER_RULES = new Map<number, NumberRule>([
  [ID.idleTimeoutMs, anyNumber('idleTimeoutMs')],
  [ID.maxDatagramSize, { ...anyNumber('maxDatagramSize'), min: INITIAL_DATAGRAM_SIZE_MIN }],
  [ID.maxData, anyNumber('maxData')],
  [ID.maxStreamDataBidiLocal, anyNumber('maxStreamDataBidiLocal')],
  [ID.maxStreamDataBidiRemote, anyNumber('maxStreamDataBidiRemote')],
  [ID.maxStreamDataUni, anyNumber('maxStreamDataUni')],
  [ID.maxStreamsBidi, { ...anyNumber('maxStreamsBidi'), max: STREAM_COUNT_MAX }],
  [ID.maxStreamsUni, { ...anyNumber('maxStreamsUni'), max: STREAM_COUNT_MAX }],
  [ID.ackDelayExponent, { ...anyNumber('ackDelayExponent'), max: ACK_DELAY_EXPONENT_MAX }],
  [ID.maxAckDelayMs, { ...anyNumber('maxAckDelayMs'), max: ACK_DELAY_MS_MAX }],
  [ID.connectionIdLimit, { ...anyNumber('connectionIdLimit'), min: CONNECTION_ID_LIMIT_MIN }],
])

const BYTES_RULES = new Map<number, BytesRule>([
  [ID.originalDestinationId, connectionId('originalDestinationId', true)],
  [
    ID.statelessResetToken,
    {
      key: 'statelessResetToken',
      sizeMin: STATELESS_RESET_TOKEN_SIZE,
      sizeMax: STATELESS_RESET_TOKEN_SIZE,
      isServerOnly: true,
    },
  ],
  [ID.initialSourceId, connectionId('initialSourceId', false)],
  [ID.retrySourceId, connectionId('retrySourceId', true)],
])

/** Numbers at their default are left out. */
export function encodeTransportParameters(parameters: TransportParameters): Uint8Array {
  const writer = new Writer(new Uint8Array(ENCODED_SIZE_MAX))
  for (const [id, { key }] of BYTES_RULES) {
    const value = parameters[key]
    if (value !== undefined) writeParameter(writer, id, value.length, () => writer.bytes(value))
  }
  for (const [id, { key }] of NUMBER_RULES) {
    const value = parameters[key]
    if (value === TRANSPORT_PARAMETER_DEFAULTS[key]) continue
    writeParameter(writer, id, varintSize(value), () => writer.varint(value))
  }
  if (parameters.disableMigration) writeParameter(writer, ID.disableMigration, 0, () => {})
  return writer.writtenView.slice()
}

/**
 * @param sender whose they are: some only a server may send.
 * @returns owned values; defaults for what was not sent.
 * @throws QuicError TRANSPORT_PARAMETER_ERROR
 */
export function decodeTransportParameters(bytesView: Uint8Array, sender: 'client' | 'server'): TransportParameters {
  const parameters: Mutable = { ...TRANSPORT_PARAMETER_DEFAULTS }
  const seen = new Set<number>()
  try {
    const reader = new Reader(bytesView)
    while (reader.left > 0) {
      const id = reader.varint()
      const value = reader.part(reader.varint())
      // Ids past 2^53 are not read exactly: two that look alike may be two.
      if (seen.has(id) && Number.isSafeInteger(id)) throw refused(`transport parameter ${id} twice`)
      seen.add(id)
      readParameter(parameters, id, value, sender)
    }
  } catch (error) {
    const isTruncated = error instanceof QuicError && error.code === TRANSPORT_ERROR.frameEncodingError
    throw isTruncated ? refused('transport parameters cut short') : error
  }
  return parameters
}

function readParameter(parameters: Mutable, id: number, value: Reader, sender: 'client' | 'server'): void {
  const number = NUMBER_RULES.get(id)
  if (number !== undefined) {
    parameters[number.key] = readNumber(number, value)
    return
  }
  const bytes = BYTES_RULES.get(id)
  if (bytes !== undefined) {
    if (bytes.isServerOnly && sender === 'client') throw refused(`${bytes.key} from a client`)
    if (value.left < bytes.sizeMin || value.left > bytes.sizeMax) throw refused(`${bytes.key} of ${value.left} bytes`)
    parameters[bytes.key] = new Uint8Array(value.rest())
    return
  }
  if (id === ID.preferredAddress && sender === 'client') throw refused('preferredAddress from a client')
  if (id === ID.disableMigration) {
    if (value.left > 0) throw refused('disableMigration with a value')
    parameters.disableMigration = true
  }
}

function readNumber({ key, min, max }: NumberRule, value: Reader): number {
  const number = value.varint()
  if (value.left > 0) throw refused(`${key} with bytes after its value`)
  if (number < min || number > max) throw refused(`${key} of ${number}`)
  return number
}

function writeParameter(writer: Writer, id: number, size: number, writeValue: () => void): void {
  writer.varint(id)
  writer.varint(size)
  writeValue()
}

function refused(reason: string): QuicError {
  return new QuicError(TRANSPORT_ERROR.transportParameterError, reason)
}
