/**
 * Frames of the VSR dialect: a head of 256 bytes, then the body; little-endian, the same size field in both directions.
 *
 *   common    0 checksum u128 | 16 checksum of the body u128 | 32 cluster u128 | 48 size u32 | 52 view u32 | 56 release u32
 *             60 command u8: 5 request, 8 reply, 13 eviction | 61 replica u8 | 62 reserved, zero
 *   request   128 client u128 | 144 request checksum u128 | 160 time u64 | 168 request number u64 | 176 operation u8
 *             184 session u64 | 192 user id u32 | 196 command code u32 (operation 2 alone) | 200 zero
 *   reply     128 request checksum u128 | 144 context u128, zero | 160 client u128 | 176 op u64 | 184 commit u64
 *             192 time u64 | 200 request number u64 | 208 operation u8 | 216 status u32 | 220 zero
 *   eviction  128 client u128 | 144 newest and 148 oldest protocol version u32 | 152 zero | 255 reason u8
 *
 * The first three fields of the common part stay zero from clients: these frames are not sealed.
 */
import { EdgeError } from '../../../errors.ts'
import { codeOfOperation, type EvictionReason, isClientOperation, OPERATION } from '../codes.ts'
import type { FrameShape } from '../frame-assembler.ts'
import { sharedKernel } from '../kernel/shared-kernel.ts'
import type { Writer } from '../writer.ts'

export const VSR_HEAD_BYTES = 256
export const MAX_VSR_FRAME_BYTES = 64 * 1024 * 1024

export const FRAME_COMMAND = { request: 5, reply: 8, eviction: 13 } as const
const LAST_FRAME_COMMAND = 29

const SIZE_AT = 48
const COMMAND_AT = 60
const EVICTION_REASON_AT = 255
const MASK_64 = 0xffff_ffff_ffff_ffffn

export interface VsrRequestHead {
  /** u128, not zero. */
  readonly clientId: bigint
  /** u128; 0 = not stamped, else XXH3-64 of the body. */
  readonly requestChecksum: bigint
  readonly requestNumber: bigint
  readonly operation: number
  /** 0 while unbound. */
  readonly session: bigint
  /** Of the command: at its own place for operation 2, else that of the operation; 0 when there is none. */
  readonly code: number
  /** Not checked by Iggy's server, which echoes it on reads. */
  readonly release: number
}

export interface VsrReplyHead {
  /** u128; of the node on committed replies, else 0. */
  readonly cluster: bigint
  readonly view: number
  readonly release: number
  readonly requestChecksum: bigint
  readonly clientId: bigint
  readonly op: bigint
  /** Clients keep the largest: never let it go back. */
  readonly commit: bigint
  /** µs. */
  readonly timestampUs: bigint
  readonly requestNumber: bigint
  readonly operation: number
  /** 0 = ok, else an Iggy error number and no body. */
  readonly status: number
}

export interface VsrEviction {
  /** u128 of the node; SDKs ignore it. */
  readonly cluster: bigint
  readonly clientId: bigint
  /** See `EVICTION`. */
  readonly reason: EvictionReason
  /** Packed versions, for `incompatibleProtocol` alone; else 0. */
  readonly newestVersion: number
  readonly oldestVersion: number
}

export const vsrFrameShape: FrameShape = {
  headBytes: VSR_HEAD_BYTES,
  sizeOf(bytes, at) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, VSR_HEAD_BYTES)
    const size = view.getUint32(SIZE_AT, true)
    const command = view.getUint8(COMMAND_AT)
    if (size < VSR_HEAD_BYTES || command > LAST_FRAME_COMMAND) {
      const found = `size ${size}, command ${command}`
      throw new EdgeError('EDGE_FRAME_INVALID', `vsr frame: expected size >= 256 and command <= 29, found ${found}`)
    }
    if (size > MAX_VSR_FRAME_BYTES) {
      const message = `vsr frame: expected at most ${MAX_VSR_FRAME_BYTES} bytes, found ${size}`
      throw new EdgeError('EDGE_FRAME_TOO_LARGE', message, { details: { sizeBytes: size } })
    }
    return size
  },
}

/** @returns what follows the head; aliases the frame. */
export function bodyOf(frameView: Uint8Array): Uint8Array {
  return frameView.subarray(VSR_HEAD_BYTES)
}

/** @throws EDGE_FRAME_INVALID when it is no request: no reply could be matched to it, so close. */
export function decodeRequestHead(frameView: Uint8Array): VsrRequestHead {
  const view = headViewOf(frameView)
  const command = view.getUint8(COMMAND_AT)
  const clientId = getU128(view, 128)
  if (command !== FRAME_COMMAND.request || clientId === 0n) {
    const found = clientId === 0n ? 'client 0' : `command ${command}`
    throw new EdgeError('EDGE_FRAME_INVALID', `vsr request: expected command 5 and a client id, found ${found}`)
  }
  const operation = view.getUint8(176)
  return {
    clientId,
    requestChecksum: getU128(view, 144),
    requestNumber: view.getBigUint64(168, true),
    operation,
    session: view.getBigUint64(184, true),
    code: operation === OPERATION.nonReplicated ? view.getUint32(196, true) : (codeOfOperation(operation) ?? 0),
    release: view.getUint32(56, true),
  }
}

/**
 * Checks what any request must keep. Iggy's server drops one that does not; a status is kinder.
 *
 * @throws EDGE_COMMAND_UNKNOWN for an operation that is no client's, EDGE_COMMAND_MALFORMED for session or number out of
 *   turn, EDGE_FORMAT_INVALID when a stamped checksum is not that of the body.
 */
export function checkRequest(head: VsrRequestHead, bodyView: Uint8Array): void {
  const { operation, session, requestNumber, requestChecksum } = head
  if (!isClientOperation(operation)) {
    throw new EdgeError('EDGE_COMMAND_UNKNOWN', `vsr request: expected an operation of clients, found ${operation}`)
  }
  const isRegister = operation === OPERATION.register
  if (isRegister ? session !== 0n || requestNumber !== 0n : session === 0n || requestNumber === 0n) {
    if (operation !== OPERATION.nonReplicated) {
      const expected = isRegister ? 'session and number 0' : 'session and number above 0'
      const message = `vsr request: expected ${expected} for operation ${operation}, found ${session} and ${requestNumber}`
      throw new EdgeError('EDGE_COMMAND_MALFORMED', message)
    }
  }
  if (requestChecksum !== 0n && requestChecksum !== sharedKernel().xxh3(bodyView)) {
    throw new EdgeError('EDGE_FORMAT_INVALID', 'vsr request: expected the checksum of the body, found another')
  }
}

/** Appends the head of a request and then what `writeBody` writes; on a throw the writer is as before. */
export function writeRequest(writer: Writer, head: VsrRequestHead, writeBody: (writer: Writer) => void): void {
  writeFrame(writer, FRAME_COMMAND.request, writeBody, (view) => {
    view.setUint32(56, head.release, true)
    setU128(view, 128, head.clientId)
    setU128(view, 144, head.requestChecksum)
    view.setBigUint64(168, head.requestNumber, true)
    view.setUint8(176, head.operation)
    view.setBigUint64(184, head.session, true)
    if (head.operation === OPERATION.nonReplicated) view.setUint32(196, head.code, true)
  })
}

/** @throws EDGE_FRAME_INVALID when it is no reply. */
export function decodeReplyHead(frameView: Uint8Array): VsrReplyHead {
  const view = headViewOf(frameView)
  const command = view.getUint8(COMMAND_AT)
  if (command !== FRAME_COMMAND.reply) {
    throw new EdgeError('EDGE_FRAME_INVALID', `vsr reply: expected command 8, found ${command}`)
  }
  return {
    cluster: getU128(view, 32),
    view: view.getUint32(52, true),
    release: view.getUint32(56, true),
    requestChecksum: getU128(view, 128),
    clientId: getU128(view, 160),
    op: view.getBigUint64(176, true),
    commit: view.getBigUint64(184, true),
    timestampUs: view.getBigUint64(192, true),
    requestNumber: view.getBigUint64(200, true),
    operation: view.getUint8(208),
    status: view.getUint32(216, true),
  }
}

/** Appends the head of a reply and then what `writeBody` writes; on a throw the writer is as before. */
export function writeReply(writer: Writer, head: VsrReplyHead, writeBody: (writer: Writer) => void): void {
  writeFrame(writer, FRAME_COMMAND.reply, writeBody, (view) => {
    setU128(view, 32, head.cluster)
    view.setUint32(52, head.view, true)
    view.setUint32(56, head.release, true)
    setU128(view, 128, head.requestChecksum)
    setU128(view, 160, head.clientId)
    view.setBigUint64(176, head.op, true)
    view.setBigUint64(184, head.commit, true)
    view.setBigUint64(192, head.timestampUs, true)
    view.setBigUint64(200, head.requestNumber, true)
    view.setUint8(208, head.operation)
    view.setUint32(216, head.status, true)
  })
}

/** @returns whether the server's frame ends the session instead of answering. */
export function isEviction(frameView: Uint8Array): boolean {
  return frameView[COMMAND_AT] === FRAME_COMMAND.eviction
}

export function decodeEviction(frameView: Uint8Array): VsrEviction {
  const view = headViewOf(frameView)
  const reason = view.getUint8(EVICTION_REASON_AT)
  if (!isEviction(frameView) || reason === 0 || reason > 15) {
    const found = `command ${view.getUint8(COMMAND_AT)}, reason ${reason}`
    throw new EdgeError('EDGE_FRAME_INVALID', `vsr eviction: expected command 13 and reason 1..15, found ${found}`)
  }
  return {
    cluster: getU128(view, 32),
    clientId: getU128(view, 128),
    reason: reason as EvictionReason,
    newestVersion: view.getUint32(144, true),
    oldestVersion: view.getUint32(148, true),
  }
}

/** Versions are 0 but for `incompatibleProtocol`. */
export function writeEviction(writer: Writer, eviction: VsrEviction): void {
  const writeNothing = (): void => undefined
  writeFrame(writer, FRAME_COMMAND.eviction, writeNothing, (view) => {
    setU128(view, 32, eviction.cluster)
    setU128(view, 128, eviction.clientId)
    view.setUint32(144, eviction.newestVersion, true)
    view.setUint32(148, eviction.oldestVersion, true)
    view.setUint8(EVICTION_REASON_AT, eviction.reason)
  })
}

function writeFrame(
  writer: Writer,
  command: number,
  writeBody: (writer: Writer) => void,
  writeHead: (view: DataView) => void,
): void {
  const at = writer.length
  try {
    writer.zeros(VSR_HEAD_BYTES)
    writeBody(writer)
    const size = writer.length - at
    if (size > MAX_VSR_FRAME_BYTES) {
      const message = `vsr frame to send: expected at most ${MAX_VSR_FRAME_BYTES} bytes, found ${size}`
      throw new EdgeError('EDGE_FRAME_TOO_LARGE', message, { details: { sizeBytes: size } })
    }
    const { bufferView } = writer
    const view = new DataView(bufferView.buffer, bufferView.byteOffset + at, VSR_HEAD_BYTES)
    view.setUint32(SIZE_AT, size, true)
    view.setUint8(COMMAND_AT, command)
    writeHead(view)
  } catch (error) {
    writer.truncate(at)
    throw error
  }
}

function headViewOf(frameView: Uint8Array): DataView {
  if (frameView.length < VSR_HEAD_BYTES) {
    throw new EdgeError('EDGE_FRAME_INVALID', `vsr frame: expected at least 256 bytes, found ${frameView.length}`)
  }
  return new DataView(frameView.buffer, frameView.byteOffset, VSR_HEAD_BYTES)
}

function getU128(view: DataView, at: number): bigint {
  const high = view.getBigUint64(at + 8, true)
  const low = view.getBigUint64(at, true)
  return high === 0n ? low : (high << 64n) | low
}

function setU128(view: DataView, at: number, value: bigint): void {
  view.setBigUint64(at, value & MASK_64, true)
  view.setBigUint64(at + 8, value >> 64n, true)
}
