/**
 * Cuts a stream into frames. At most three bytes are kept to learn a length, and never more than one frame: a length above
 * the limit is refused before a buffer is taken for it.
 */
import { frameFault } from './error-codes.ts'
import { MAX_HEAD_BYTES, readHead } from './head.ts'

export class EdgeFrameAssembler {
  #maxFrameBytes: number
  /** The head while it is not complete, else the frame's body as far as it has come. */
  #partial = new Uint8Array(MAX_HEAD_BYTES)
  #partialBytes = 0
  /** undefined while the head is being read. */
  #bodyBytes: number | undefined

  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes
  }

  /** Holds for frames whose head has not been read yet. */
  set maxFrameBytes(sizeBytes: number) {
    this.#maxFrameBytes = sizeBytes
  }

  /** True between two frames: an end of the stream is clean only there. */
  get isAtBoundary(): boolean {
    return this.#bodyBytes === undefined && this.#partialBytes === 0
  }

  /**
   * @param take called for each whole frame, without its head; the view must not outlive the call. Returns false to stop.
   * @returns how many bytes of the chunk were used: all of them unless `take` stopped.
   * @throws `framing`, `frame-too-large`: the stream cannot be read on.
   */
  push(chunkView: Uint8Array, take: (frameView: Uint8Array) => boolean): number {
    let at = 0
    while (at < chunkView.byteLength) {
      at += this.#bodyBytes === undefined ? this.#readHead(chunkView, at) : 0
      if (this.#bodyBytes === undefined) break // the head goes on in the next chunk
      const frame = this.#readBody(chunkView, at)
      at += frame.usedBytes
      if (frame.view === undefined) break
      this.#bodyBytes = undefined
      if (!take(frame.view)) break
    }
    return at
  }

  /** The stream has ended. @throws `framing` inside a frame. */
  finish(): void {
    if (!this.isAtBoundary) throw frameFault('framing', 'the stream ended inside a frame')
  }

  /** @returns bytes used; sets the body's length once the head is complete. */
  #readHead(chunkView: Uint8Array, at: number): number {
    const known = this.#partialBytes
    const headView = new Uint8Array(MAX_HEAD_BYTES)
    headView.set(this.#partial.subarray(0, known))
    const available = Math.min(MAX_HEAD_BYTES - known, chunkView.byteLength - at)
    headView.set(chunkView.subarray(at, at + available), known)
    const head = readHead(headView.subarray(0, known + available), 0, this.#maxFrameBytes)
    if (head === undefined) {
      this.#partial.set(headView)
      this.#partialBytes = known + available
      return available
    }
    this.#bodyBytes = head.bodyBytes
    this.#partialBytes = 0
    return head.headBytes - known
  }

  /** A frame that lies whole in the chunk is not copied. */
  #readBody(chunkView: Uint8Array, at: number): { usedBytes: number; view: Uint8Array | undefined } {
    const bodyBytes = this.#bodyBytes ?? 0
    const available = Math.min(bodyBytes - this.#partialBytes, chunkView.byteLength - at)
    if (this.#partialBytes === 0 && available === bodyBytes) {
      return { usedBytes: available, view: chunkView.subarray(at, at + available) }
    }
    if (this.#partial.byteLength < bodyBytes) this.#partial = grown(this.#partial, this.#partialBytes, bodyBytes)
    this.#partial.set(chunkView.subarray(at, at + available), this.#partialBytes)
    this.#partialBytes += available
    if (this.#partialBytes < bodyBytes) return { usedBytes: available, view: undefined }
    this.#partialBytes = 0
    return { usedBytes: available, view: this.#partial.subarray(0, bodyBytes) }
  }
}

function grown(bytes: Uint8Array, usedBytes: number, sizeBytes: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(sizeBytes)
  larger.set(bytes.subarray(0, usedBytes))
  return larger
}
