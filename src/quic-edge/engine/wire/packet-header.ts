/**
 * Headers of packets (RFC 9000 section 17): what can be read before protection is removed, and how ours are written. Pure.
 *
 * ```
 * long:  [1 form][1 fixed][type:2][masked:4] [version:4] [id size:1][destination id] [id size:1][source id] ...
 *        Initial: [token size:varint][token] [length:varint] [packet number:1-4] ...    0-RTT, Handshake: without the token
 *        Retry:   [token] [integrity tag:16]              version negotiation (version 0): [versions:4 each]
 * short: [0 form][1 fixed][spin:1][masked:5] [destination id, of a size we chose] [packet number:1-4] ...
 * ```
 *
 * A datagram is no one's yet while its headers are read: what is malformed is dropped, so nothing here throws.
 */
import { QuicError } from './quic-error.ts'
import { Reader } from './reader.ts'
import type { Writer } from './writer.ts'

export const VERSION_1 = 1
/** Of version 1. Other versions may have longer ones, up to what a byte counts; answering them must still work. */
export const CONNECTION_ID_SIZE_MAX = 20
export const RETRY_TAG_SIZE = 16
/**
 * What every path carries (RFC 9000 section 14). Datagrams with Initial packets are at least that large, so that whoever answers
 * one does not send more than was received.
 */
export const INITIAL_DATAGRAM_SIZE_MIN = 1200

export const PACKET_TYPE = { initial: 0, zeroRtt: 1, handshake: 2, retry: 3 } as const
export type PacketType = (typeof PACKET_TYPE)[keyof typeof PACKET_TYPE]

const LONG_FORM = 0x80
const FIXED_BIT = 0x40
const KEY_PHASE_BIT = 0x04
/** Must be zero under the protection (RFC 9000 section 17.2 and 17.3.1). */
const RESERVED_BITS_LONG = 0x0c
const RESERVED_BITS_SHORT = 0x18
const NO_TOKEN = new Uint8Array()

/** What every version has (RFC 8999). Views. */
export interface InvariantHeader {
  readonly version: number
  readonly destinationIdView: Uint8Array
  readonly sourceIdView: Uint8Array
}

export interface LongHeader extends InvariantHeader {
  readonly type: PacketType
  /** Of an Initial or a Retry, else empty. A view. */
  readonly tokenView: Uint8Array
  /** Where the masked packet number begins; of a Retry the integrity tag. */
  readonly packetNumberAt: number
  /** Where the packet ends in its datagram, and the next one may begin. */
  readonly end: number
}

export interface LongHeaderFields {
  readonly type: typeof PACKET_TYPE.initial | typeof PACKET_TYPE.handshake
  readonly destinationId: Uint8Array
  readonly sourceId: Uint8Array
  /** Of an Initial. */
  readonly token?: Uint8Array
  readonly packetNumberSize: number
}

export const isLongHeader = (first: number): boolean => (first & LONG_FORM) !== 0
/** Version 1 sets it in every packet; other versions may not (RFC 9000 section 17). */
export const hasFixedBit = (first: number): boolean => (first & FIXED_BIT) !== 0
/** @param first unprotected. */
export const keyPhaseOf = (first: number): 0 | 1 => ((first & KEY_PHASE_BIT) === 0 ? 0 : 1)
/** @param first unprotected. @returns whether reserved bits are set, which is a PROTOCOL_VIOLATION once it is authenticated. */
export const hasReservedBits = (first: number): boolean =>
  (first & (isLongHeader(first) ? RESERVED_BITS_LONG : RESERVED_BITS_SHORT)) !== 0

/** @returns what a long header of any version says, or undefined when it is cut short. */
export function readInvariantHeader(datagram: Uint8Array, start = 0): InvariantHeader | undefined {
  return unlessMalformed(() => invariantOf(new Reader(datagram, start)))
}

/** @returns the long header of a version 1 packet at `start`, or undefined when it is none or says more than there is. */
export function readLongHeader(datagram: Uint8Array, start = 0): LongHeader | undefined {
  return unlessMalformed(() => longOf(new Reader(datagram, start), datagram[start] ?? 0))
}

/**
 * Writes the header of an Initial or Handshake packet with its packet number left zero and a length of two bytes.
 *
 * @returns where the packet number begins. `patchLength` and `patchPacketNumber` fill in the rest.
 */
export function writeLongHeader(writer: Writer, fields: LongHeaderFields): number {
  writer.u8(LONG_FORM | FIXED_BIT | (fields.type << 4) | (fields.packetNumberSize - 1))
  writer.u32(VERSION_1)
  writeIds(writer, fields.destinationId, fields.sourceId)
  if (fields.type === PACKET_TYPE.initial) {
    const token = fields.token ?? NO_TOKEN
    writer.varint(token.length)
    writer.bytes(token)
  }
  writer.varint2(0)
  const packetNumberAt = writer.position
  writer.zeros(fields.packetNumberSize)
  return packetNumberAt
}

/** Fills in the length of a packet that ends at `end`, below 2^14 bytes after its packet number begins. */
export function patchLength(datagram: Uint8Array, packetNumberAt: number, end: number): void {
  const size = end - packetNumberAt
  datagram[packetNumberAt - 2] = 0x40 | (size >> 8)
  datagram[packetNumberAt - 1] = size
}

/** Fills in the lowest `size` bytes of a packet number. */
export function patchPacketNumber(datagram: Uint8Array, at: number, packetNumber: number, size: number): void {
  let rest = packetNumber
  for (let i = size - 1; i >= 0; i--) {
    datagram[at + i] = rest % 0x100
    rest = Math.floor(rest / 0x100)
  }
}

/** Writes a short header, its packet number left zero. @returns where that begins. */
export function writeShortHeader(
  writer: Writer,
  destinationId: Uint8Array,
  keyPhase: 0 | 1,
  packetNumberSize: number,
): number {
  writer.u8(FIXED_BIT | (keyPhase === 1 ? KEY_PHASE_BIT : 0) | (packetNumberSize - 1))
  writer.bytes(destinationId)
  const packetNumberAt = writer.position
  writer.zeros(packetNumberSize)
  return packetNumberAt
}

/** A Retry without its integrity tag. @param randomBits unused by anyone, 4 of them (RFC 9000 section 17.2.5). */
export function writeRetry(
  writer: Writer,
  ids: { readonly destinationId: Uint8Array; readonly sourceId: Uint8Array },
  token: Uint8Array,
  randomBits: number,
): void {
  writer.u8(LONG_FORM | FIXED_BIT | (PACKET_TYPE.retry << 4) | (randomBits & 0x0f))
  writer.u32(VERSION_1)
  writeIds(writer, ids.destinationId, ids.sourceId)
  writer.bytes(token)
}

/** Version negotiation. @param first random; its highest bit is set, and the fixed bit as it may be looked at on the way. */
export function writeVersionNegotiation(
  writer: Writer,
  ids: { readonly destinationId: Uint8Array; readonly sourceId: Uint8Array },
  versions: readonly number[],
  first: number,
): void {
  writer.u8(LONG_FORM | FIXED_BIT | (first & 0x3f))
  writer.u32(0)
  writeIds(writer, ids.destinationId, ids.sourceId)
  for (const version of versions) writer.u32(version)
}

/** The bytes of a packet number, read as they stand after unmasking. */
export function truncatedPacketNumber(datagram: Uint8Array, at: number, size: number): number {
  let value = 0
  for (let i = 0; i < size; i++) value = value * 0x100 + (datagram[at + i] ?? 0)
  return value
}

/**
 * The number that a sender meant (RFC 9000 appendix A.3): the one closest to what is expected next.
 *
 * @param largest number that was authenticated so far in this space, -1 before the first.
 */
export function expandPacketNumber(truncated: number, size: number, largest: number): number {
  const window = 2 ** (8 * size)
  const expected = largest + 1
  const candidate = expected - (expected % window) + truncated
  if (candidate <= expected - window / 2) return candidate + window
  if (candidate > expected + window / 2 && candidate >= window) return candidate - window
  return candidate
}

/**
 * Bytes that say a packet number without doubt (RFC 9000 section 17.1): twice what is not acknowledged yet.
 *
 * @param largestAcked -1 before the first.
 */
export function packetNumberSizeFor(packetNumber: number, largestAcked: number): 1 | 2 | 3 | 4 {
  const unacked = packetNumber - largestAcked
  if (unacked < 0x80) return 1
  if (unacked < 0x8000) return 2
  return unacked < 0x80_0000 ? 3 : 4
}

function invariantOf(reader: Reader): InvariantHeader {
  reader.u8()
  const version = reader.u32()
  const destinationIdView = reader.vector8().rest()
  return { version, destinationIdView, sourceIdView: reader.vector8().rest() }
}

function longOf(reader: Reader, first: number): LongHeader | undefined {
  const { version, destinationIdView, sourceIdView } = invariantOf(reader)
  if (!isLongHeader(first) || !hasFixedBit(first) || version !== VERSION_1) return undefined
  if (destinationIdView.length > CONNECTION_ID_SIZE_MAX || sourceIdView.length > CONNECTION_ID_SIZE_MAX)
    return undefined
  const type = ((first >> 4) & 0x03) as PacketType
  const ids = { version, destinationIdView, sourceIdView, type }
  if (type === PACKET_TYPE.retry) {
    if (reader.left < RETRY_TAG_SIZE) return undefined
    const tokenView = reader.take(reader.left - RETRY_TAG_SIZE)
    return { ...ids, tokenView, packetNumberAt: reader.position, end: reader.position + RETRY_TAG_SIZE }
  }
  const tokenView = type === PACKET_TYPE.initial ? reader.take(reader.varint()) : NO_TOKEN
  const size = reader.varint()
  if (size > reader.left) return undefined
  return { ...ids, tokenView, packetNumberAt: reader.position, end: reader.position + size }
}

function writeIds(writer: Writer, destinationId: Uint8Array, sourceId: Uint8Array): void {
  writer.u8(destinationId.length)
  writer.bytes(destinationId)
  writer.u8(sourceId.length)
  writer.bytes(sourceId)
}

function unlessMalformed<Value>(read: () => Value | undefined): Value | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof QuicError) return undefined
    throw error
  }
}
