/**
 * Received bytes in order that nobody has read yet. Pure.
 *
 * A piece is a view of the packet it came in. Two things must not happen: that many frames of one byte keep as many packets
 * alive, and that a window of them becomes a million small objects. So while a piece waits, small ones behind it are packed
 * together. Who reads at once is never made to copy.
 */

/** Pieces below this size are packed while others wait; larger ones fill most of their packet. */
const SMALL_PIECE_SIZE = 1024
/** Size of a packed piece: at worst one small piece and a large one alternate, and three times the bytes are held. */
const PACK_SIZE = 2048

export class ReadyQueue {
  #pieces: Uint8Array[] = []
  /** The pack at the queue's end, while it has room. */
  #pack: Uint8Array | undefined
  #packedSize = 0
  #size = 0

  /** Bytes that wait. */
  get size(): number {
    return this.#size
  }

  /** @param bytesView of a packet that nobody else changes. */
  append(bytesView: Uint8Array): void {
    if (bytesView.length === 0) return
    this.#size += bytesView.length
    if (this.#pieces.length > 0 && bytesView.length < SMALL_PIECE_SIZE) {
      this.#appendPacked(bytesView)
      return
    }
    this.#pack = undefined
    this.#pieces.push(bytesView)
  }

  take(): Uint8Array | null {
    const piece = this.#pieces.shift()
    if (piece === undefined) return null
    if (this.#pieces.length === 0) this.#pack = undefined
    this.#size -= piece.length
    return piece
  }

  clear(): void {
    this.#pieces = []
    this.#pack = undefined
    this.#size = 0
  }

  #appendPacked(bytesView: Uint8Array): void {
    if (this.#pack === undefined || this.#packedSize + bytesView.length > PACK_SIZE) {
      this.#pack = new Uint8Array(PACK_SIZE)
      this.#packedSize = 0
      this.#pieces.push(this.#pack.subarray(0, 0))
    }
    this.#pack.set(bytesView, this.#packedSize)
    this.#packedSize += bytesView.length
    this.#pieces[this.#pieces.length - 1] = this.#pack.subarray(0, this.#packedSize)
  }
}
