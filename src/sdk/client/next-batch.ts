/** Which of a producer's messages are sent next, in one batch. Pure. */
import { MAX_ORIGIN_SPAN_US } from '../wire/record-slice.ts'
import type { SpooledMessage } from './producer.ts'

export interface BatchCandidate {
  readonly message: SpooledMessage
  readonly sizeBytes: number
  readonly isSendable: boolean
}

export interface BatchBounds {
  readonly maxCount: number
  /** A larger message goes alone. */
  readonly maxBytes: number
}

const MESSAGE_OVERHEAD_BYTES = 64

/** What a message takes of a buffer and of a batch. */
export function sizeOf(message: SpooledMessage): number {
  const headersBytes = (message.headers ?? []).reduce(
    (sum, { key, value }) => sum + key.bytes.length + value.bytes.length + 10,
    0,
  )
  return MESSAGE_OVERHEAD_BYTES + message.payload.length + headersBytes
}

/** @returns how many of the oldest go together: up to the first that may not be sent yet, or does not fit. */
export function countOfNextBatch(queue: readonly BatchCandidate[], { maxCount, maxBytes }: BatchBounds): number {
  let count = 0
  let totalBytes = 0
  const origins = new OriginSpan()
  for (const { message, sizeBytes, isSendable } of queue) {
    if (!isSendable || count === maxCount || (count > 0 && totalBytes + sizeBytes > maxBytes)) break
    if (!origins.takes(message.originUs)) break
    count += 1
    totalBytes += sizeBytes
  }
  return count
}

/** Origin times of one batch lie within 71 minutes: the newer generation holds their distance as u32 of µs. */
class OriginSpan {
  #leastUs: bigint | null = null
  #mostUs = 0n

  takes(originUs: bigint): boolean {
    const leastUs = this.#leastUs === null || originUs < this.#leastUs ? originUs : this.#leastUs
    const mostUs = this.#leastUs === null || originUs > this.#mostUs ? originUs : this.#mostUs
    if (mostUs - leastUs > MAX_ORIGIN_SPAN_US) return false
    this.#leastUs = leastUs
    this.#mostUs = mostUs
    return true
  }
}
