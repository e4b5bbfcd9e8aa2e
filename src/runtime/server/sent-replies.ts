/** Replies of one connection on their way out: what its peer has not taken yet, and the buffer it is read from meanwhile. */
import type { ByteTransport } from './byte-session.ts'
import type { ReplyOutput } from './reply-output.ts'

export class SentReplies {
  private readonly output: ReplyOutput
  private readonly transport: ByteTransport
  private readonly onLeft: (changeBytes: number) => void
  private isLeft = false
  private lentBuffer: Uint8Array | null = null
  private leftBytes = 0

  /** @param onLeft told that so many bytes more, or fewer, wait for the peer. */
  constructor(output: ReplyOutput, transport: ByteTransport, onLeft: (changeBytes: number) => void) {
    this.output = output
    this.transport = transport
    this.onLeft = onLeft
  }

  /** The peer has not taken the last replies yet: nothing more should be looked at. */
  get isFull(): boolean {
    return this.isLeft
  }

  /** Writes what is in the output, and leaves it empty. */
  flush(): void {
    const { output } = this
    if (output.length === 0) return
    if (this.isLeft) {
      // An answer that was on its way when the peer became slow: it waits behind the others, as a copy.
      this.transport.write(output.toBytes())
      this.leftBytes += output.length
      this.onLeft(output.length)
      output.reset()
    } else if (this.transport.write(output.writtenView)) {
      output.reset()
    } else {
      this.isLeft = true
      this.leftBytes = output.length
      this.lentBuffer = output.lend()
      this.onLeft(this.leftBytes)
    }
  }

  /** The peer has taken all, or never will. Idempotent. */
  settle(): void {
    if (!this.isLeft) return
    this.isLeft = false
    if (this.lentBuffer !== null) this.output.giveBack(this.lentBuffer)
    this.lentBuffer = null
    this.onLeft(-this.leftBytes)
  }
}
