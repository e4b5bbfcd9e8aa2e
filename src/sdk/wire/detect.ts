/**
 * Tells from the first bytes of a connection what the peer speaks. Sticky: asked once per connection, never further in.
 *
 * The dialects cannot be confused: a classic frame begins with a length of at least 4, a VSR frame with 48 zero bytes. The
 * checks beyond that only keep garbage out.
 */

import { MAX_CLASSIC_FRAME_BYTES, MAX_CLASSIC_PAYLOAD_BYTES } from './classic/frame.ts'
import { CODE, isClientOperation, isCommandCode } from './codes.ts'
import type { Dialect } from './dialect.ts'
import { FRAME_COMMAND, MAX_VSR_FRAME_BYTES, VSR_HEAD_BYTES } from './vsr/frame.ts'

/** `tls`: a ClientHello on a plain port; `http`: a request line that begins with GET; `unknown`: close. */
export type Detected = Dialect | 'tls' | 'http' | 'unknown' | 'more-bytes'

/** With fewer nobody can say what the peer speaks; with as many at the latest, unless they are all zero. */
export const DECIDING_BYTES = 8
const TLS_HANDSHAKE = 0x16
const TLS_MAJOR = 0x03
const CLIENT_HELLO = 1
const GET = 0x2054_4547 // "GET ", little-endian
const UNSEALED_BYTES = 48
/** Offset writes of V1 to V3: let in, so that their login is refused with a reason. */
const OLD_OPERATIONS: ReadonlySet<number> = new Set([164, 165])

/** @param bytesView all that has come so far; 256 bytes suffice for every answer. */
export function detectProtocol(bytesView: Uint8Array): Detected {
  if (bytesView.length < DECIDING_BYTES) return 'more-bytes'
  const view = new DataView(bytesView.buffer, bytesView.byteOffset, bytesView.length)
  const first = view.getUint32(0, true)
  const second = view.getUint32(4, true)
  if (isClientHello(bytesView)) return 'tls'
  if (first === GET) return 'http'
  if (first === 0 && second === 0) {
    if (bytesView.length < VSR_HEAD_BYTES) return 'more-bytes'
    return isUnsealed(bytesView) && isVsrRequest(view) ? 'vsr' : 'unknown'
  }
  if (isClassicRequest(first, second)) return 'classic'
  // A future SDK may seal its frames: then they begin with a hash, and the rest of the head tells.
  return bytesView.length >= VSR_HEAD_BYTES && isVsrRequest(view) ? 'vsr' : 'unknown'
}

/** Whether more bytes are needed to tell a ClientHello, of which a slow link may bring the first ones alone. */
export function mayBecomeTls(bytesView: Uint8Array): boolean {
  return bytesView.length < DECIDING_BYTES && bytesView[0] === TLS_HANDSHAKE
}

function isClientHello(bytes: Uint8Array): boolean {
  const minor = bytes[2] ?? 0
  return bytes[0] === TLS_HANDSHAKE && bytes[1] === TLS_MAJOR && minor >= 1 && minor <= 4 && bytes[5] === CLIENT_HELLO
}

function isClassicRequest(length: number, code: number): boolean {
  if (length < 4 || !isCommandCode('classic', code)) return false
  return length - 4 <= (code === CODE.sendMessages ? MAX_CLASSIC_FRAME_BYTES - 4 : MAX_CLASSIC_PAYLOAD_BYTES)
}

function isUnsealed(bytes: Uint8Array): boolean {
  for (let i = 0; i < UNSEALED_BYTES; i++) if (bytes[i] !== 0) return false
  return true
}

function isVsrRequest(view: DataView): boolean {
  const size = view.getUint32(48, true)
  const operation = view.getUint8(176)
  const hasClient = view.getBigUint64(128, true) !== 0n || view.getBigUint64(136, true) !== 0n
  return (
    view.getUint8(60) === FRAME_COMMAND.request &&
    size >= VSR_HEAD_BYTES &&
    size <= MAX_VSR_FRAME_BYTES &&
    hasClient &&
    (isClientOperation(operation) || OLD_OPERATIONS.has(operation))
  )
}
