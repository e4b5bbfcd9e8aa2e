/** Entries of a spool file (`spool-file.ts` has the layout), there and back. */
import { crc32 } from 'node:zlib'
import { decodeUserHeaders, encodeUserHeaders } from '../wire/user-headers.ts'
import type { SpooledMessage } from './producer.ts'
import type { Note } from './spool-notes.ts'

export const MAGIC = new TextEncoder().encode('iggyspl1')
const ENTRY_HEAD_BYTES = 8
const MESSAGE = 1
const NOTE_KINDS = { done: 2, 'given-up': 3 } as const
const NOTE_BYTES = 5
const HEADERS_LENGTH_AT = 25
const MESSAGE_HEAD_BYTES = HEADERS_LENGTH_AT + 4
const MAX_BODY_BYTES = 65 * 1024 * 1024
/**
 * What looks like an entry and is none is summed in vain: no more of that than so many times the file. A payload may look like the
 * beginning of large entries all over.
 */
const MAX_VAIN_SUMS_OF_FILE = 16

export interface SpoolContents {
  readonly pending: SpooledMessage[]
  /** Behind the last whole entry. */
  readonly endAt: number
  /** That no entry could be read from: before it, and behind it where an entry is all there and wrong. */
  readonly damagedBytes: number
}

export function startsWithMagic(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, at) => at >= bytes.length || bytes[at] === byte)
}

export function entryOfMessage(message: SpooledMessage): Uint8Array {
  const headers = encodeUserHeaders(message.headers ?? [])
  const body = new Uint8Array(MESSAGE_HEAD_BYTES + headers.length + message.payload.length)
  const view = new DataView(body.buffer)
  view.setUint8(0, MESSAGE)
  view.setBigUint64(1, BigInt.asUintN(64, message.id), true)
  view.setBigUint64(9, BigInt.asUintN(64, message.id >> 64n), true)
  view.setBigUint64(17, message.originUs, true)
  view.setUint32(HEADERS_LENGTH_AT, headers.length, true)
  body.set(headers, MESSAGE_HEAD_BYTES)
  body.set(message.payload, MESSAGE_HEAD_BYTES + headers.length)
  return entryOf(body)
}

export function entryOfNote({ kind, count }: Note): Uint8Array {
  const body = new Uint8Array(NOTE_BYTES)
  body[0] = NOTE_KINDS[kind]
  new DataView(body.buffer).setUint32(1, count, true)
  return entryOf(body)
}

function entryOf(body: Uint8Array): Uint8Array {
  const entry = new Uint8Array(ENTRY_HEAD_BYTES + body.length)
  const view = new DataView(entry.buffer)
  view.setUint32(0, body.length, true)
  view.setUint32(4, crc32(body), true)
  entry.set(body, ENTRY_HEAD_BYTES)
  return entry
}

/** In the place of a message: one that cannot be read, or who knows how many. */
type Hole = 'one' | 'unknown'

/**
 * Damage in the middle costs what lies there. Notes count messages, so what cannot be read keeps its place until all notes are
 * read. Where more is missing they take nothing that they may not mean: what was done with or given up is sent instead.
 */
export function readEntries(bytes: Uint8Array): SpoolContents {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const places: (SpooledMessage | Hole)[] = []
  /** Of the first hole of unknown length: what lies before it can be counted. */
  let countableCount = Number.POSITIVE_INFINITY
  /** A note is missing: places are not what they were when the next one was written. */
  let isPlaceKnown = true
  let endAt = Math.min(MAGIC.length, bytes.length)
  let damagedBytes = 0
  const budget = { vainBytes: MAX_VAIN_SUMS_OF_FILE * bytes.length }
  for (let at = endAt; at < bytes.length; ) {
    const bodyAt = at + ENTRY_HEAD_BYTES
    const bodyEnd = wholeEntryEnd(bytes, view, at, budget)
    if (bodyEnd === undefined) {
      at++
      continue
    }
    if (at > endAt) {
      damagedBytes += at - endAt
      const hole = holeOf(view, endAt, at)
      if (hole === 'unknown') countableCount = Math.min(countableCount, places.length)
      if (hole !== 'one') isPlaceKnown = false
      if (hole !== undefined) places.push(hole)
    }
    const count = view.getUint32(bodyAt + 1, true)
    if (bytes[bodyAt] === MESSAGE) places.push(readMessage(bytes.subarray(bodyAt, bodyEnd)))
    else if (bytes[bodyAt] === NOTE_KINDS.done)
      countableCount -= places.splice(0, Math.min(count, countableCount)).length
    else if (isPlaceKnown && count < countableCount) countableCount -= places.splice(count, 1).length
    at = bodyEnd
    endAt = bodyEnd
  }
  if (isWholeByLength(view, endAt)) damagedBytes += bytes.length - endAt
  return { pending: places.filter((place) => typeof place !== 'string'), endAt, damagedBytes }
}

/** A torn tail is shorter than it says, or nothing but a hole of zeros; one that is all there was damaged. */
function isWholeByLength(view: DataView, at: number): boolean {
  if (at + ENTRY_HEAD_BYTES > view.byteLength) return false
  const length = view.getUint32(at, true)
  return length >= NOTE_BYTES && at + ENTRY_HEAD_BYTES + length <= view.byteLength
}

/** @returns undefined for a note: it held no message. */
function holeOf(view: DataView, from: number, end: number): Hole | undefined {
  const isOneEntry = end - from > ENTRY_HEAD_BYTES && view.getUint32(from, true) === end - from - ENTRY_HEAD_BYTES
  if (!isOneEntry) return 'unknown'
  return end - from === ENTRY_HEAD_BYTES + NOTE_BYTES ? undefined : 'one'
}

/**
 * @param budget of bytes that may still be summed in vain; what is larger is taken for none.
 * @returns undefined when no entry that is whole begins there. What cannot be one is told before it is summed.
 */
function wholeEntryEnd(
  bytes: Uint8Array,
  view: DataView,
  at: number,
  budget: { vainBytes: number },
): number | undefined {
  const bodyAt = at + ENTRY_HEAD_BYTES
  if (bodyAt + NOTE_BYTES > bytes.length) return undefined
  const length = view.getUint32(at, true)
  const end = bodyAt + length
  if (length > MAX_BODY_BYTES || end > bytes.length) return undefined
  const kind = bytes[bodyAt]
  const isMessage =
    kind === MESSAGE &&
    length >= MESSAGE_HEAD_BYTES &&
    view.getUint32(bodyAt + HEADERS_LENGTH_AT, true) <= length - MESSAGE_HEAD_BYTES
  const isNote = length === NOTE_BYTES && (kind === NOTE_KINDS.done || kind === NOTE_KINDS['given-up'])
  if (!isMessage && !isNote) return undefined
  if (length > budget.vainBytes) return undefined
  if (crc32(bytes.subarray(bodyAt, end)) === view.getUint32(at + 4, true)) return end
  budget.vainBytes -= length
  return undefined
}

function readMessage(body: Uint8Array): SpooledMessage {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const payloadAt = MESSAGE_HEAD_BYTES + view.getUint32(HEADERS_LENGTH_AT, true)
  return {
    id: (view.getBigUint64(9, true) << 64n) | view.getBigUint64(1, true),
    originUs: view.getBigUint64(17, true),
    headers: decodeUserHeaders(body.slice(MESSAGE_HEAD_BYTES, payloadAt)),
    payload: body.slice(payloadAt),
  }
}
