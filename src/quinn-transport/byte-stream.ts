/**
 * A bidirectional stream of the WebTransport package as callbacks: bytes in against credit, bytes out with a signal when
 * the peer is slow. Both sides use it: the server's driver and the client.
 *
 * The stream is one thing: when either direction fails, both are given up and `closed` tells why, once.
 */
import { EdgeError, toEdgeError } from '../errors.ts'
import type { PackageStream } from './package-api.ts'

/** Above this many queued bytes `write` says that the peer is slow. */
const WRITE_HIGH_WATER_BYTES = 256 * 1024
/**
 * Small writes are joined up to this size: each one costs a crossing into native code. Large ones are cut into such pieces: how
 * the peer takes them shows piece by piece.
 */
const WRITE_CHUNK_BYTES = 64 * 1024
/** The package's streams carry no larger code. */
const MAX_ERROR_CODE = 255

export interface ByteStreamEvents {
  /** Bytes in order; the view must not outlive the call. */
  data(bytesView: Uint8Array): void
  ended(): void
  drained(): void
  /** No more events follow; null after both directions ended in peace. */
  closed(error: EdgeError | null): void
}

/** Decides whether reading goes on. */
export interface ReadCredit {
  /** @returns false to stop reading until `resume` is called. */
  received(sizeBytes: number): boolean
}

export class ByteStream {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #credit: ReadCredit
  readonly #events: ByteStreamEvents
  readonly #queue: Uint8Array[] = []
  #queuedBytes = 0
  #isPumping = false
  #isPaused = false
  #wasFull = false
  #isEnding = false
  #isReadOver = false
  #isWriteOver = false
  #isClosed = false

  constructor(stream: PackageStream, credit: ReadCredit, events: ByteStreamEvents) {
    this.#reader = stream.readable.getReader() as ReadableStreamDefaultReader<Uint8Array>
    this.#writer = stream.writable.getWriter() as WritableStreamDefaultWriter<Uint8Array>
    this.#credit = credit
    this.#events = events
    this.#reader.closed.catch(() => {}) // told by read()
    // The peer may stop us while nothing is being written.
    this.#writer.closed.then(
      () => this.#writeOver(),
      (error) => this.#fail(error),
    )
    this.#writer.ready.catch(() => {})
  }

  /** Begins to read; events may come from the next turn on. */
  start(): void {
    void this.#read()
  }

  /** Queues owned bytes. @returns false when the peer is slow: wait for `drained`. */
  write(bytes: Uint8Array): boolean {
    if (this.#isClosed || this.#isEnding) return true // a reset stream takes everything: `closed` was told
    if (bytes.byteLength > 0) {
      this.#queue.push(bytes)
      this.#queuedBytes += bytes.byteLength
    }
    if (!this.#isPumping) void this.#pump()
    if (this.#queuedBytes > WRITE_HIGH_WATER_BYTES) this.#wasFull = true
    return !this.#wasFull
  }

  /** Bytes queued and not yet taken by the transport. */
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  end(): void {
    if (this.#isClosed || this.#isEnding) return
    this.#isEnding = true
    if (!this.#isPumping) void this.#pump()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    void this.#read()
  }

  /**
   * Gives up both directions.
   *
   * @returns when the transport has let go. While a write waits for a peer that does not read, it cannot: the promise
   * then stays open until the session is closed, so the caller sets a bound.
   */
  async reset(code: number, error: EdgeError | null = null): Promise<void> {
    const reason = { code: Math.min(code, MAX_ERROR_CODE) }
    this.#close(error)
    await Promise.allSettled([this.#reader.cancel(reason), this.#writer.abort(reason)])
  }

  async #read(): Promise<void> {
    try {
      while (!this.#isClosed && !this.#isPaused) {
        const { done, value } = await this.#reader.read()
        if (this.#isClosed) return
        if (done) {
          this.#isReadOver = true
          this.#events.ended()
          this.#closeWhenOver()
          return
        }
        // Counted first: the handler may grant the bytes back while it is called.
        if (!this.#credit.received(value.byteLength)) this.#isPaused = true
        this.#events.data(value)
      }
    } catch (error) {
      this.#fail(error)
    }
  }

  async #pump(): Promise<void> {
    this.#isPumping = true
    try {
      while (this.#queue.length > 0 && !this.#isClosed) {
        const chunk = this.#takeChunk()
        await this.#writer.write(chunk)
        this.#queuedBytes -= chunk.byteLength
      }
      if (this.#isClosed) return
      if (this.#wasFull && !this.#isEnding) {
        this.#wasFull = false
        // Whoever waited for it may write on, or end the stream.
        this.#events.drained()
      }
      if (this.#isEnding && this.#queue.length === 0) await this.#writer.close()
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isPumping = false
      if (this.#queue.length > 0 && !this.#isClosed) void this.#pump()
    }
  }

  #takeChunk(): Uint8Array {
    const first = this.#queue.shift() ?? new Uint8Array()
    if (first.byteLength > WRITE_CHUNK_BYTES) {
      this.#queue.unshift(first.subarray(WRITE_CHUNK_BYTES))
      return first.subarray(0, WRITE_CHUNK_BYTES)
    }
    const second = this.#queue[0]
    if (second === undefined || first.byteLength + second.byteLength > WRITE_CHUNK_BYTES) return first
    const parts = [first]
    let size = first.byteLength
    for (let next = second; size + next.byteLength <= WRITE_CHUNK_BYTES; ) {
      parts.push(next)
      size += next.byteLength
      this.#queue.shift()
      const following = this.#queue[0]
      if (following === undefined) break
      next = following
    }
    return joined(parts, size)
  }

  #writeOver(): void {
    this.#isWriteOver = true
    this.#closeWhenOver()
  }

  #closeWhenOver(): void {
    if (this.#isReadOver && this.#isWriteOver) this.#close(null)
  }

  #fail(cause: unknown): void {
    const text = toEdgeError(cause).message
    if (this.#isClosed) return
    const error = new EdgeError('EDGE_CONNECTION_LOST', `the stream was given up: ${text}`, { cause })
    void this.reset(0, error)
  }

  #close(error: EdgeError | null): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#queue.length = 0
    this.#queuedBytes = 0
    this.#events.closed(error)
  }
}

function joined(parts: readonly Uint8Array[], sizeBytes: number): Uint8Array {
  const whole = new Uint8Array(sizeBytes)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.byteLength
  }
  return whole
}
