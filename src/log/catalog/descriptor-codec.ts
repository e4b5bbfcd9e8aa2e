/**
 * The frame of a descriptor file. Pure. Text, so that an operator can read it and a rescue tool needs no code of ours:
 *
 *   {"format":"iggy-edge topic","version":1, ... }\n       JSON on one line
 *   crc32 1a2b3c4d\n                                       over everything before this line
 *
 * Every truncation and every flipped bit is noticed: the last line feed must be there, and the sum is written in one way only.
 */
import { crc32 } from '../core/checksum.ts'

const LINE_FEED = 0x0a
const SUM_LINE = /^crc32 ([0-9a-f]{8})\n$/
const SUM_LINE_BYTES = 'crc32 00000000\n'.length

/** Larger files are not ours: 100,000 partitions of one topic would fit. */
export const DESCRIPTOR_MAX_BYTES = 16 * 1024 * 1024

/** @param body JSON without line feeds. */
export function encodeDescriptor(body: string): Uint8Array {
  const bodyBytes = new TextEncoder().encode(`${body}\n`)
  const sum = crc32(bodyBytes, 0, bodyBytes.length, 0).toString(16).padStart(8, '0')
  const bytes = new Uint8Array(bodyBytes.length + SUM_LINE_BYTES)
  bytes.set(bodyBytes)
  bytes.set(new TextEncoder().encode(`crc32 ${sum}\n`), bodyBytes.length)
  return bytes
}

/** @returns the JSON text, or null when a single bit is not as it was written. */
export function decodeDescriptor(bytesView: Uint8Array): string | null {
  const bodyEnd = bytesView.length - SUM_LINE_BYTES
  if (bodyEnd < 1 || bytesView.length > DESCRIPTOR_MAX_BYTES || bytesView[bodyEnd - 1] !== LINE_FEED) return null
  const sumLine = String.fromCharCode(...bytesView.subarray(bodyEnd))
  const sumText = SUM_LINE.exec(sumLine)?.[1]
  if (sumText === undefined || Number.parseInt(sumText, 16) !== crc32(bytesView, 0, bodyEnd, 0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytesView.subarray(0, bodyEnd - 1))
  } catch {
    return null
  }
}
