/** What clients put into the records of a batch, in bytes: payloads and user headers, without what we write around them. */

const FLAG_ID = 1
const FLAG_HEADERS = 2
const ID_BYTES = 16

/**
 * On the path of every message: nothing is decoded but lengths.
 *
 * @param recordsView compact records (layout: `batch.ts`), as they came from an encoder of ours.
 * @returns bytes of payloads and user headers; what lies behind a record that does not fit is not counted.
 */
export function contentBytesOf(recordsView: Uint8Array): number {
  const end = recordsView.length
  let at = 0
  let overheadBytes = 0
  while (at < end) {
    const start = at
    let head = 0
    let scale = 1
    let byte = 0x80
    while (byte >= 0x80 && at < end) {
      byte = recordsView[at++] ?? 0
      head += (byte & 0x7f) * scale
      scale *= 128
    }
    const flags = head & 3
    const payloadBytes = (head - flags) / 4
    while (at < end && (recordsView[at] ?? 0) >= 0x80) at++
    at++
    if ((flags & FLAG_ID) !== 0) at += ID_BYTES
    let headersBytes = 0
    if ((flags & FLAG_HEADERS) !== 0) {
      scale = 1
      byte = 0x80
      while (byte >= 0x80 && at < end) {
        byte = recordsView[at++] ?? 0
        headersBytes += (byte & 0x7f) * scale
        scale *= 128
      }
    }
    overheadBytes += at - start
    at += payloadBytes + headersBytes
  }
  return Math.max(0, end - overheadBytes)
}
