/**
 * One subscription of one session: where it reads on, what the device has not acknowledged yet, how far the cursor is. Pure.
 *
 * `next` is the offset to read from. Open messages were sent and not answered. The cursor is the offset below which nothing
 * is open: it moves with the answers, over messages that were left out as well.
 */
import type { DownMessage } from '../ports.ts'

export interface SubscriptionOptions {
  readonly id: number
  readonly stream: number
  readonly windowBytes: number
  readonly windowMessages: number
  /** Messages meant for this device only: those with its name as key, with `*`, or without a key. */
  readonly deviceName: string | undefined
  /** A poll: ends after so many messages or when nothing is left. */
  readonly maxMessages: number | undefined
}

export interface Taken {
  readonly taken: readonly { readonly message: DownMessage; readonly skippedCount: number }[]
  readonly tooLarge: readonly bigint[]
}

/** One read asks for at most so many messages: the window is in messages of the device, most may be for others. */
const READ_COUNT = 256
const READ_BYTES = 64 * 1024

export class Subscription {
  readonly options: SubscriptionOptions
  #next = 0n
  #end = 0n
  #isReady = false
  #isReading = false
  #sentCount = 0
  #skippedCount = 0
  #cursor = -1n
  /** Of the next message, where it was read and had no room: nothing is read again until it has. */
  #nextBytes = 1
  /** Sent and not answered, ascending. */
  #open: { readonly offset: bigint; readonly sizeBytes: number }[] = []

  constructor(options: SubscriptionOptions) {
    this.options = options
  }

  start(next: bigint, endOffset: bigint): void {
    this.#next = next
    this.#end = endOffset
    this.#cursor = next - 1n
    this.#isReady = true
  }

  grew(endOffset: bigint): void {
    if (endOffset > this.#end) this.#end = endOffset
  }

  /** Whether a poll has had all it asked for; what it sent may still be open. */
  get isFinished(): boolean {
    const { maxMessages } = this.options
    if (maxMessages === undefined || !this.#isReady || this.#isReading) return false
    return this.#sentCount >= maxMessages || this.#next >= this.#end
  }

  get openCount(): number {
    return this.#open.length
  }

  /** @returns what to read now, or undefined when nothing is there or the device has enough. */
  wants(): { fromOffset: bigint; maxCount: number; maxBytes: number } | undefined {
    const room = this.#room(this.#nextBytes)
    if (!this.#isReady || this.#isReading || room <= 0 || this.#next >= this.#end) return undefined
    this.#isReading = true
    const isForAll = this.options.deviceName === undefined
    return {
      fromOffset: this.#next,
      maxCount: isForAll ? Math.min(room, READ_COUNT) : READ_COUNT,
      maxBytes: READ_BYTES,
    }
  }

  readFailed(): void {
    this.#isReading = false
  }

  /**
   * @param nextOffset where to read on, after everything that was read.
   * @returns messages to send, with what lay between, and the offsets of those meant for the device that it cannot take.
   */
  take(messages: readonly DownMessage[], nextOffset: bigint, maxMessageBytes: number): Taken {
    this.#isReading = false
    const taken: { message: DownMessage; skippedCount: number }[] = []
    const tooLarge: bigint[] = []
    for (const message of messages) {
      const isMeant = this.#isMeant(message)
      if (!isMeant || message.body.byteLength > maxMessageBytes) {
        if (isMeant) tooLarge.push(message.offset)
        this.#skippedCount++
        this.#next = message.offset + 1n
        continue
      }
      const sizeBytes = message.body.byteLength
      if (this.#room(sizeBytes) <= 0) {
        this.#nextBytes = sizeBytes
        return { taken, tooLarge } // the rest is read again when the device has answered
      }
      this.#nextBytes = 1
      taken.push({ message, skippedCount: this.#skippedCount })
      this.#skippedCount = 0
      this.#sentCount++
      this.#open.push({ offset: message.offset, sizeBytes })
      this.#next = message.offset + 1n
    }
    this.#next = nextOffset
    return { taken, tooLarge }
  }

  /** The device has taken everything up to `offset`. @returns the cursor to store, when it moved. */
  answered(offset: bigint): bigint | undefined {
    // Of an earlier session, perhaps of a topic that was deleted since: it says nothing of what was sent in this one.
    if (offset >= this.#next) return undefined
    this.#open = this.#open.filter((one) => one.offset > offset)
    return this.advanced()
  }

  /** @returns the cursor to store, when it moved: over messages that were left out it moves by itself. */
  advanced(): bigint | undefined {
    const cursor = (this.#open[0]?.offset ?? this.#next) - 1n
    if (cursor <= this.#cursor) return undefined
    this.#cursor = cursor
    return cursor
  }

  /** @returns how many messages may still be sent, the next being of that size; one that is larger than the window comes alone. */
  #room(nextBytes: number): number {
    const { windowBytes, windowMessages, maxMessages } = this.options
    const openBytes = this.#open.reduce((sum, one) => sum + one.sizeBytes, 0)
    const isWithin = this.#open.length === 0 ? windowBytes > 0 : openBytes + nextBytes <= windowBytes
    if (!isWithin) return 0
    const left = maxMessages === undefined ? Number.POSITIVE_INFINITY : maxMessages - this.#sentCount
    return Math.min(windowMessages - this.#open.length, left)
  }

  #isMeant({ key }: DownMessage): boolean {
    const { deviceName } = this.options
    return deviceName === undefined || key === undefined || key === '*' || key === deviceName
  }
}
