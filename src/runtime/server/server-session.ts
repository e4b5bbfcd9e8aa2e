/**
 * Bytes of one connection on their way to whole requests. Pure.
 *
 * Decides: which generation the peer speaks, from its first bytes and then for good; how large a request may be. Relies on
 * its owner to use every view up before the next call. Never: allocates for a length that was only announced.
 */
import { assert } from '../../assert.ts'
import { concatBytes } from '../../byte-concat.ts'
import { EdgeError } from '../../errors.ts'
import { classicRequestShape, classicStreamShape } from '../../sdk/wire/classic/frame.ts'
import { DECIDING_BYTES, type Detected, detectProtocol } from '../../sdk/wire/detect.ts'
import type { Dialect } from '../../sdk/wire/dialect.ts'
import { FrameAssembler, type FrameShape } from '../../sdk/wire/frame-assembler.ts'
import { vsrFrameShape } from '../../sdk/wire/vsr/frame.ts'

const NOTHING = new Uint8Array(0)

export interface SessionOptions {
  /** A stream of one request: there an impossible length is no request, where a connection goes on behind it. */
  readonly isOneRequest?: boolean
  /** What another stream of the same connection has told. */
  readonly dialect?: Dialect | null
}

export class ServerSession {
  private readonly maxFrameBytes: number
  private readonly isOneRequest: boolean
  private knownDialect: Dialect | null = null
  /** All that has come while the generation is not known: less than a VSR head. */
  private firstBytes: Uint8Array = NOTHING
  private assembler: FrameAssembler | null = null
  private lastFrameBytes = 0

  constructor(maxFrameBytes: number, { isOneRequest = false, dialect = null }: SessionOptions = {}) {
    this.maxFrameBytes = maxFrameBytes
    this.isOneRequest = isOneRequest
    if (dialect !== null) this.speak(dialect)
  }

  /** null until the first bytes have told. */
  get dialect(): Dialect | null {
    return this.knownDialect
  }

  /** Whether bytes have come, but too few to tell what they are: a client's first request comes in one piece. */
  get isUndecided(): boolean {
    const { length } = this.firstBytes
    return length > 0 && length < DECIDING_BYTES
  }

  /** What an undecided connection is refused with when nothing more comes. */
  get undecided(): EdgeError {
    return unknownFraming('unknown', this.firstBytes)
  }

  /** Bytes received that are no whole request yet. */
  get heldBytes(): number {
    return this.assembler?.pendingBytes ?? this.firstBytes.length
  }

  /** Size of the request that has begun and is not whole; 0 when there is none or its head is not whole. */
  get announcedBytes(): number {
    return this.heldBytes > 0 ? this.lastFrameBytes : 0
  }

  /**
   * Takes bytes in: call `next` until there is no request, or `keep`, before the view changes.
   *
   * @throws {EdgeError} EDGE_FRAME_INVALID for what is neither generation; `details` has `detected` and `firstBytes`.
   */
  receive(view: Uint8Array): void {
    if (this.assembler !== null) {
      this.assembler.push(view)
      return
    }
    const bytes = this.firstBytes.length === 0 ? view : concatBytes([this.firstBytes, view])
    const detected = detectProtocol(bytes)
    if (detected === 'more-bytes') {
      // Not `slice`: of a Buffer that is no copy.
      this.firstBytes = new Uint8Array(bytes)
      return
    }
    if (detected !== 'classic' && detected !== 'vsr') throw unknownFraming(detected, bytes)
    this.firstBytes = NOTHING
    this.speak(detected).push(bytes)
  }

  /**
   * @returns the next whole request, valid until the next call; null when more bytes are needed.
   * @throws {EdgeError} EDGE_FRAME_INVALID, EDGE_FRAME_TOO_LARGE: the place in the stream is lost, close.
   */
  next(): Uint8Array | null {
    const frame = this.assembler?.next()
    if (frame === undefined) return null
    this.lastFrameBytes = 0
    return frame
  }

  /** Whether the rest of a request that was given up is still coming. */
  get isDropping(): boolean {
    return this.assembler?.isDropping ?? false
  }

  /** @returns what has come of the request that has begun, its head at least; valid until the next call. */
  begunView(): Uint8Array {
    assert(this.assembler !== null && this.announcedBytes > 0, 'what is looked at has begun')
    return this.assembler.heldView()
  }

  /** Gives up the request that has begun. @returns what has come of it, its head at least; valid until the next call. */
  drop(): Uint8Array {
    const sizeBytes = this.announcedBytes
    assert(this.assembler !== null && sizeBytes > 0, 'what is given up has begun')
    this.lastFrameBytes = 0
    return this.assembler.drop(sizeBytes)
  }

  /** Copies what is left of the last view, so that its owner may use it again. */
  keep(): void {
    this.assembler?.keep()
  }

  private speak(dialect: Dialect): FrameAssembler {
    const classicShape = this.isOneRequest ? classicStreamShape : classicRequestShape
    this.knownDialect = dialect
    this.assembler = new FrameAssembler(this.boundedShape(dialect === 'classic' ? classicShape : vsrFrameShape))
    return this.assembler
  }

  private boundedShape(shape: FrameShape): FrameShape {
    return {
      headBytes: shape.headBytes,
      sizeOf: (bytes, at) => {
        const size = shape.sizeOf(bytes, at)
        if (size > this.maxFrameBytes) {
          const message = `request: expected at most ${this.maxFrameBytes} bytes, found ${size}`
          throw new EdgeError('EDGE_FRAME_TOO_LARGE', message, { details: { sizeBytes: size } })
        }
        this.lastFrameBytes = size
        return size
      },
    }
  }
}

/** Enough of them to recognise what knocked: HTTP, SSH, a database. */
const SHOWN_BYTES = 16

function unknownFraming(detected: Detected, bytes: Uint8Array): EdgeError {
  const firstBytes = bytes.slice(0, SHOWN_BYTES).toHex()
  const message = `first bytes: expected a request of Iggy's protocol, found ${detected} (${firstBytes})`
  return new EdgeError('EDGE_FRAME_INVALID', message, { details: { detected, firstBytes } })
}
