/**
 * Unsent messages of a producer in one file, so that they survive a restart. Little-endian:
 *
 *   head    "iggyspl1"
 *   entry   [body length:4][crc32 of the body:4][body]
 *   body    [1] id 16, origin time u64 µs, headers length u32, headers, payload
 *           [2] count u32: so many of the oldest messages are done with
 *           [3] count u32: the message behind so many of the oldest was given up
 *
 * A torn or damaged entry ends the reading; the file is cut there. Once everything is done with, it is cut to its head; one
 * that always holds something unsent is written anew, without what is done with, each time it has doubled.
 */
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { EdgeError, messageOf } from '../../errors.ts'
import { decodeUserHeaders, encodeUserHeaders } from '../wire/user-headers.ts'
import type { Spool, SpooledMessage } from './producer.ts'

const MAGIC = new TextEncoder().encode('iggyspl1')
const ENTRY_HEAD_BYTES = 8
const MESSAGE = 1
const DONE = 2
const GIVEN_UP = 3
const MESSAGE_HEAD_BYTES = 1 + 16 + 8 + 4
const MAX_BODY_BYTES = 65 * 1024 * 1024
/** A smaller file is left as it is. */
const REWRITE_ABOVE_BYTES = 16 * 1024 * 1024

/** @throws {EdgeError} EDGE_STORE_NEWER for a file that is no spool of this form, EDGE_IO. */
export async function openSpoolFile(path: string): Promise<Spool> {
  try {
    const file = await open(path, 'a+')
    const bytes = new Uint8Array(await file.readFile())
    if (!startsWithMagic(bytes)) {
      await file.close()
      throw new EdgeError('EDGE_STORE_NEWER', `${path}: expected a spool file that begins with "iggyspl1"`)
    }
    // New, or its very first write was cut short.
    if (bytes.length < MAGIC.length) await file.appendFile(MAGIC.subarray(bytes.length))
    const { pending, endAt } = readEntries(bytes)
    const keptBytes = pending.length === 0 ? MAGIC.length : endAt
    await file.truncate(keptBytes)
    return new SpoolFile(path, file, pending, keptBytes)
  } catch (cause) {
    if (cause instanceof EdgeError) throw cause
    throw new EdgeError('EDGE_IO', `spool file ${path}: ${messageOf(cause)}`, { cause })
  }
}

class SpoolFile implements Spool {
  readonly #pending: SpooledMessage[]
  readonly #path: string
  #file: FileHandle
  #pendingCount: number
  /** What is written as one: it is open until all that was to be done before is done. */
  #group: Uint8Array[] = []
  #groupWritten: Promise<void> = Promise.resolve()
  /** The end of all that is to be done to the file, one after the other. */
  #tail: Promise<void> = Promise.resolve()
  #endAt: number
  /** Whether more than whole entries may lie behind `#endAt`; they would hide what follows. */
  #isTorn = false
  #rewriteAboveBytes = REWRITE_ABOVE_BYTES
  #isClosed = false

  constructor(path: string, file: FileHandle, pending: SpooledMessage[], endAt: number) {
    this.#path = path
    this.#file = file
    this.#pending = pending
    this.#pendingCount = pending.length
    this.#endAt = endAt
  }

  get pending(): readonly SpooledMessage[] {
    return this.#pending
  }

  async append(message: SpooledMessage): Promise<void> {
    const entry = entryOf(messageBody(message))
    this.#pendingCount += 1
    try {
      await this.#write(entry)
    } catch (error) {
      this.#pendingCount -= 1
      throw error
    }
  }

  async acknowledged(count: number): Promise<void> {
    this.#pendingCount -= count
    this.#pending.splice(0, count)
    await this.#note(DONE, count)
  }

  async gaveUp(aheadCount: number): Promise<void> {
    this.#pendingCount -= 1
    this.#pending.splice(aheadCount, 1)
    await this.#note(GIVEN_UP, aheadCount)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#tail
    await this.#file.close()
  }

  async #note(kind: number, count: number): Promise<void> {
    const body = new Uint8Array(5)
    body[0] = kind
    new DataView(body.buffer).setUint32(1, count, true)
    await this.#write(entryOf(body))
    await this.#inTurn(() => this.#shrink())
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#isClosed) throw new EdgeError('EDGE_IO', 'the spool file was closed')
    this.#group.push(bytes)
    if (this.#group.length === 1) this.#groupWritten = this.#inTurn(() => this.#writeGroup())
    await this.#groupWritten
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#tail.then(work)
    this.#tail = done.catch(() => {}) // told to who asked for it
    return done
  }

  async #writeGroup(): Promise<void> {
    const group = this.#group
    this.#group = []
    try {
      if (this.#isTorn) await this.#file.truncate(this.#endAt)
      this.#isTorn = true
      this.#endAt += await writeAll(this.#file, group)
      this.#isTorn = false
    } catch (cause) {
      throw new EdgeError('EDGE_IO', 'the spool file cannot be written', { cause })
    }
  }

  async #shrink(): Promise<void> {
    if (this.#isClosed) return
    if (this.#pendingCount === 0) {
      await this.#file.truncate(MAGIC.length)
      this.#endAt = MAGIC.length
    } else if (this.#endAt > this.#rewriteAboveBytes) {
      // Also when it fails, so that a full disk does not make each acknowledgement try.
      this.#rewriteAboveBytes = this.#endAt * 2
      await this.#rewrite()
      this.#rewriteAboveBytes = Math.max(REWRITE_ABOVE_BYTES, this.#endAt * 2)
    }
  }

  async #rewrite(): Promise<void> {
    const { pending } = readEntries(new Uint8Array(await readFile(this.#path)))
    const newPath = `${this.#path}.new`
    await rm(newPath, { force: true })
    const file = await open(newPath, 'ax+')
    try {
      const sizeBytes = await writeAll(file, [MAGIC, ...pending.map((message) => entryOf(messageBody(message)))])
      await rename(newPath, this.#path)
      this.#endAt = sizeBytes
    } catch (error) {
      await file.close()
      throw error
    }
    await this.#file.close()
    this.#file = file
    await syncFolder(dirname(this.#path))
  }
}

/** @returns how many bytes are on disk now. */
async function writeAll(file: FileHandle, chunks: readonly Uint8Array[]): Promise<number> {
  const sizeBytes = chunks.reduce((sum, { length }) => sum + length, 0)
  const { bytesWritten } = await file.writev(chunks)
  // A disk that fills up meanwhile takes a part, without an error.
  if (bytesWritten !== sizeBytes) throw new Error(`only ${bytesWritten} of ${sizeBytes} bytes were written`)
  await file.datasync()
  return sizeBytes
}

/** Until then the file of before could come back under this name. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path)
  try {
    await folder.sync()
  } finally {
    await folder.close()
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
  return MAGIC.every((byte, at) => at >= bytes.length || bytes[at] === byte)
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
    else if (body[0] === GIVEN_UP) pending.splice(view.getUint32(bodyAt + 1, true), 1)
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
