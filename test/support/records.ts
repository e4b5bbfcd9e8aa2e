/** Records with a number each as payload, in the log's compact layout (`src/sdk/wire/batch.ts`). */
import type { StoredBatch } from '../../src/sdk/wire/batch.ts'

const NUMBER_SIZE = 8

/** @param payloadSize at least 8; what is more is filled up. */
export function recordsOf(numbers: readonly number[], payloadSize = NUMBER_SIZE): Uint8Array {
  const size = Math.max(NUMBER_SIZE, payloadSize)
  const head: number[] = []
  putVarint(head, size * 4)
  head.push(0)
  const bytes = new Uint8Array(numbers.length * (head.length + size))
  const view = new DataView(bytes.buffer)
  for (const [index, number] of numbers.entries()) {
    const at = index * (head.length + size)
    bytes.set(head, at)
    bytes.fill(number % 251, at + head.length, at + head.length + size)
    view.setFloat64(at + head.length, number, true)
  }
  return bytes
}

/** The numbers of a batch's records, from `skip` on, `take` of them. */
export function idsOf(batch: Pick<StoredBatch, 'recordsView' | 'count' | 'skip' | 'take'>): number[] {
  const { recordsView } = batch
  const view = new DataView(recordsView.buffer, recordsView.byteOffset, recordsView.byteLength)
  const numbers: number[] = []
  let at = 0
  for (let record = 0; record < batch.count; record++) {
    const head = getVarint(recordsView, at)
    const time = getVarint(recordsView, head.end)
    numbers.push(view.getFloat64(time.end, true))
    at = time.end + Math.floor(head.value / 4)
  }
  return numbers.slice(batch.skip, batch.skip + batch.take)
}

function putVarint(bytes: number[], value: number): void {
  let rest = value
  while (rest >= 128) {
    bytes.push((rest % 128) | 128)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
}

function getVarint(bytes: Uint8Array, start: number): { value: number; end: number } {
  let value = 0
  let scale = 1
  let at = start
  for (let byte = 128; byte >= 128; at++) {
    byte = bytes[at] ?? 0
    value += (byte & 127) * scale
    scale *= 128
  }
  return { value, end: at }
}
