/**
 * The connection ids by which we reach the peer (RFC 9000 section 5.1), with the tokens that would prove it has forgotten
 * the connection. Pure.
 *
 * Bounds: as many ids as we allow the peer, and as many retirements under way; a peer that provokes more is in breach.
 */
import { FRAME } from '../wire/frame-type.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { RangeSet } from '../wire/range-set.ts'
import type { Reader } from '../wire/reader.ts'
import { STATELESS_RESET_TOKEN_SIZE } from '../wire/transport-parameters.ts'
import type { Writer } from '../wire/writer.ts'
import { areEqualBytes } from './bytes.ts'
import type { Carried } from './sent-packets.ts'

/** What we tell the peer as `active_connection_id_limit`. */
export const PEER_IDS_MAX = 4
/** Ids given back and not acknowledged as such. RFC 9000 section 5.1.2 asks for twice the above at least. */
export const RETIREMENTS_MAX = 32
/** Gaps between sequence numbers that are remembered. Honest peers leave none. */
const SEEN_RANGES_MAX = 32
const ID_SIZE_MAX = 20
const RETIRE_FRAME_SIZE_MAX = 9

interface PeerId {
  readonly sequence: number
  readonly idBytes: Uint8Array
  readonly resetToken: Uint8Array | undefined
}

export class PeerIds {
  #current: PeerId
  /** Known and not in use, by sequence number. */
  readonly #spare = new Map<number, PeerId>()
  /** Sequence numbers that came, so that a repetition of an id that was used up is not taken for a new one. */
  readonly #seen = new RangeSet()
  /** All below are retired. */
  #retiredBelow = 0
  /** Sequence numbers given back, until the peer acknowledges; those still to be told are in `#untold` too. */
  readonly #retiring = new Set<number>()
  readonly #untold = new Set<number>()

  constructor(idBytes: Uint8Array) {
    this.#current = { sequence: 0, idBytes, resetToken: undefined }
    this.#seen.add(0, 0)
  }

  get currentBytes(): Uint8Array {
    return this.#current.idBytes
  }

  get hasFrames(): boolean {
    return this.#untold.size > 0
  }

  get retiringCount(): number {
    return this.#retiring.size
  }

  /** The server chose its id, or told the token of that in its transport parameters. */
  replaceFirst(idBytes: Uint8Array, resetToken: Uint8Array | undefined): void {
    if (this.#current.sequence === 0) this.#current = { sequence: 0, idBytes, resetToken }
  }

  /** Takes another id, so that nobody on the way links our old address to the new. Keeps the old when there is none. */
  change(): void {
    const next = this.#spare.values().next().value
    if (next === undefined) return
    this.#retire(this.#current.sequence)
    this.#spare.delete(next.sequence)
    this.#current = next
  }

  /** @throws QuicError FRAME_ENCODING_ERROR, PROTOCOL_VIOLATION, CONNECTION_ID_LIMIT_ERROR */
  readNewConnectionId(reader: Reader): void {
    const sequence = reader.varint()
    const retireBelow = reader.varint()
    const idView = reader.take(reader.u8())
    const tokenView = reader.take(STATELESS_RESET_TOKEN_SIZE)
    if (idView.length < 1 || idView.length > ID_SIZE_MAX || retireBelow > sequence) {
      throw fault(TRANSPORT_ERROR.frameEncodingError, 'connection id out of its bounds')
    }
    if (this.#current.idBytes.length === 0) throw fault(TRANSPORT_ERROR.protocolViolation, 'ids beside an empty one')
    this.#add({ sequence, idBytes: new Uint8Array(idView), resetToken: new Uint8Array(tokenView) })
    this.#retireBelow(retireBelow)
    if (this.#spare.size + 1 > PEER_IDS_MAX) {
      throw fault(TRANSPORT_ERROR.connectionIdLimitError, `more than ${PEER_IDS_MAX} connection ids`)
    }
  }

  /** @returns whether a datagram ends with the token of an id that we use: the peer knows nothing of us any more. */
  isStatelessReset(datagram: Uint8Array): boolean {
    const token = this.#current.resetToken
    return token !== undefined && areEqualBytes(token, datagram.subarray(-STATELESS_RESET_TOKEN_SIZE))
  }

  writeFrames(writer: Writer, carried: Carried[]): void {
    for (const sequence of this.#untold) {
      if (writer.left < RETIRE_FRAME_SIZE_MAX) return
      this.#untold.delete(sequence)
      writer.u8(FRAME.retireConnectionId)
      writer.varint(sequence)
      carried.push({
        acknowledged: () => {
          this.#retiring.delete(sequence)
          this.#untold.delete(sequence)
        },
        lost: () => {
          if (this.#retiring.has(sequence)) this.#untold.add(sequence)
        },
      })
    }
  }

  #add(id: PeerId): void {
    const known = id.sequence === this.#current.sequence ? this.#current : this.#spare.get(id.sequence)
    if (known !== undefined) {
      if (areEqualBytes(known.idBytes, id.idBytes)) return
      throw fault(TRANSPORT_ERROR.protocolViolation, `connection id ${id.sequence} changed`)
    }
    if (this.#seen.has(id.sequence)) return
    this.#seen.add(id.sequence, id.sequence)
    this.#seen.keepHighest(SEEN_RANGES_MAX)
    if (id.sequence < this.#retiredBelow) this.#retire(id.sequence)
    else this.#spare.set(id.sequence, id)
  }

  #retireBelow(sequence: number): void {
    if (sequence <= this.#retiredBelow) return
    this.#retiredBelow = sequence
    for (const id of this.#spare.values()) {
      if (id.sequence >= sequence) continue
      this.#spare.delete(id.sequence)
      this.#retire(id.sequence)
    }
    if (this.#current.sequence >= sequence) return
    if (this.#spare.size === 0) throw fault(TRANSPORT_ERROR.protocolViolation, 'every connection id was retired')
    this.change()
  }

  #retire(sequence: number): void {
    this.#retiring.add(sequence)
    this.#untold.add(sequence)
    if (this.#retiring.size > RETIREMENTS_MAX) {
      throw fault(TRANSPORT_ERROR.connectionIdLimitError, `more than ${RETIREMENTS_MAX} retirements under way`)
    }
  }
}

function fault(code: number, reason: string): QuicError {
  return new QuicError(code, reason, FRAME.newConnectionId)
}
