/**
 * Unsent messages of a producer in one file, so that they survive a restart. Little-endian:
 *
 *   head    "iggyspl1"
 *   entry   [body length:4][crc32 of the body:4][body]
 *   body    [1] id 16, origin time u64 µs, headers length u32, headers, payload
 *           [2] count u32: so many of the oldest messages are done with
 *
 * A torn or damaged entry ends the reading; the file is cut there. Once everything is done with, it is cut to its head.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { EdgeError } from '../../errors.ts'
import { decodeUserHeaders, encodeUserHeaders } from '../wire/user-headers.ts'
import type { Spool, SpooledMessage } from './producer.ts'

const MAGIC = new TextEncoder().encode('iggyspl1')
const ENTRY_HEAD_BYTES = 8
const MESSAGE = 1
const DONE = 2
const MESSAGE_HEAD_BYTES = 1 + 16 + 8 + 4
const MAX_BODY_BYTES = 65 * 1024 * 1024

/** @throws {EdgeError} EDGE_STORE_NEWER for a file that is no spool of this form, EDGE_IO. */
export async function openSpoolFile(path: string): Promise<Spool> {
  try {
    const file = await open(path, 'a+')
    const bytes = new Uint8Array(await file.readFile())
    if (bytes.length === 0) await file.appendFile(MAGIC)
    else if (!startsWithMagic(bytes)) {
      await file.close()
      throw new EdgeError('EDGE_STORE_NEWER', `${path}: expected a spool file that begins with "iggyspl1"`)
    }
    const { pending, endAt } = readEntries(bytes)
    await file.truncate(pending.length === 0 ? MAGIC.length : endAt)
    return new SpoolFile(file, pending)
  } catch (cause) {
    if (cause instanceof EdgeError) throw cause
    throw new EdgeError('EDGE_IO', `spool file ${path}: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

class SpoolFile implements Spool {
  readonly pending: readonly SpooledMessage[]
  readonly #file: FileHandle
  #pendingCount: number
  #unsynced: Uint8Array[] = []
  #syncing: Promise<void> | null = null
  #isClosed = false

  constructor(file: FileHandle, pending: readonly SpooledMessage[]) {
    this.#file = file
    this.pending = pending
    this.#pendingCount = pending.length
  }

  append(message: SpooledMessage): Promise<void> {
    this.#pendingCount += 1
    return this.#write(entryOf(messageBody(message)))
  }

  async acknowledged(count: number): Promise<void> {
    this.#pendingCount -= count
    const body = new Uint8Array(5)
    body[0] = DONE
    new DataView(body.buffer).setUint32(1, count, true)
    await this.#write(entryOf(body))
    if (this.#pendingCount === 0 && this.#unsynced.length === 0 && !this.#isClosed)
      await this.#file.truncate(MAGIC.length)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#syncing
    await this.#file.close()
  }

  /** Everything that waits while one sync runs goes with the next one. */
  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#isClosed) throw new EdgeError('EDGE_IO', 'the spool file was closed')
    this.#unsynced.push(bytes)
    while (this.#unsynced.includes(bytes)) {
      this.#syncing ??= this.#sync().finally(() => {
        this.#syncing = null
      })
      await this.#syncing
    }
  }

  async #sync(): Promise<void> {
    const group = this.#unsynced
    this.#unsynced = []
    try {
      await this.#file.writev(group)
      await this.#file.datasync()
    } catch (cause) {
      throw new EdgeError('EDGE_IO', 'the spool file cannot be written', { cause })
    }
  }
}

function entryOf(body: Uint8Array): Uint8Array {
  const entry = new Uint8Array(ENTRY_HEAD_BYTES + body.length)
  const view = new DataView(entry.buffer)
  view.setUint32(0, body.length, true)
  view.setUint32(4, crc32(body), true)
  entry.set(body, ENTRY_HEAD_BYTES)
  return entry
}

function messageBody(message: SpooledMessage): Uint8Array {
  const headers = encodeUserHeaders(message.headers ?? [])
  const body = new Uint8Array(MESSAGE_HEAD_BYTES + headers.length + message.payload.length)
  const view = new DataView(body.buffer)
  view.setUint8(0, MESSAGE)
  view.setBigUint64(1, BigInt.asUintN(64, message.id), true)
  view.setBigUint64(9, BigInt.asUintN(64, message.id >> 64n), true)
  view.setBigUint64(17, message.originUs, true)
  view.setUint32(25, headers.length, true)
  body.set(headers, MESSAGE_HEAD_BYTES)
  body.set(message.payload, MESSAGE_HEAD_BYTES + headers.length)
  return body
}

function startsWithMagic(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, at) => bytes[at] === byte)
}

function readEntries(bytes: Uint8Array): { pending: SpooledMessage[]; endAt: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const pending: SpooledMessage[] = []
  let at = MAGIC.length
  while (at + ENTRY_HEAD_BYTES <= bytes.length) {
    const length = view.getUint32(at, true)
    const bodyAt = at + ENTRY_HEAD_BYTES
    if (length === 0 || length > MAX_BODY_BYTES || bodyAt + length > bytes.length) break
    const body = bytes.subarray(bodyAt, bodyAt + length)
    if (crc32(body) !== view.getUint32(at + 4, true)) break
    if (body[0] === DONE) pending.splice(0, view.getUint32(bodyAt + 1, true))
    else if (body[0] === MESSAGE && length >= MESSAGE_HEAD_BYTES) pending.push(readMessage(body))
    at = bodyAt + length
  }
  return { pending, endAt: Math.min(at, bytes.length) }
}

function readMessage(body: Uint8Array): SpooledMessage {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const payloadAt = MESSAGE_HEAD_BYTES + view.getUint32(25, true)
  return {
    id: (view.getBigUint64(9, true) << 64n) | view.getBigUint64(1, true),
    originUs: view.getBigUint64(17, true),
    headers: decodeUserHeaders(body.slice(MESSAGE_HEAD_BYTES, payloadAt)),
    payload: body.slice(payloadAt),
  }
}
