/**
 * Bodies of journal groups in files that are sealed: sealed once per group on the way to the disk, opened whole on the way
 * back, since a part of a group cannot be authenticated.
 */
import { type EdgeError, toEdgeError } from '../../errors.ts'
import { type ByteArea, createArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import { encodeGroupHeader, GROUP_HEADER_SIZE, type GroupHeader, seedOf } from '../core/journal-format.ts'
import { authenticatedOfGroup, groupNonce, TAG_SIZE } from '../core/sealed-body.ts'
import type { GroupBuilder } from './group-buffer.ts'
import type { FileCipher } from './store-keys.ts'

/** A group ready to be written, with the CRC that the next one names. */
export interface EncodedGroup {
  /** Valid until the next group is encoded. */
  readonly bytesView: Uint8Array
  readonly crc: number
}

/** What encodes groups; the buffer that they are sealed into is kept, as the plain bytes may be needed again. */
export class GroupEncoder {
  readonly #checksum: Checksum
  #sealed: ByteArea = createArea(0)

  constructor(checksum: Checksum) {
    this.#checksum = checksum
  }

  /** @param group all fields but the body's CRC and the length, which follow from the cipher. */
  encode(
    builder: GroupBuilder,
    group: Omit<GroupHeader, 'crc' | 'bodyCrc' | 'length'>,
    file: { readonly salt: bigint; readonly cipher: FileCipher | undefined },
  ): EncodedGroup {
    const { area, start, end, length } = builder
    const seed = seedOf(file.salt)
    if (file.cipher !== undefined) return this.#seal(builder, group, file.cipher, seed)
    const bodyCrc = builder.bodyCrc(this.#checksum)
    const crc = encodeGroupHeader(area, start, { ...group, bodyCrc, length }, seed)
    return { bytesView: area.bytes.subarray(start, end), crc }
  }

  #seal(
    { area, start, end, length: plainLength }: GroupBuilder,
    group: Omit<GroupHeader, 'crc' | 'bodyCrc' | 'length'>,
    cipher: FileCipher,
    seed: number,
  ): EncodedGroup {
    const length = plainLength + TAG_SIZE
    if (this.#sealed.bytes.length < length) this.#sealed = createArea(Math.max(length, 2 * this.#sealed.bytes.length))
    const sealed = this.#sealed
    const bodyView = area.bytes.subarray(start + GROUP_HEADER_SIZE, end)
    // First what is authenticated, then what follows from the sealed body.
    encodeGroupHeader(sealed, 0, { ...group, bodyCrc: 0, length }, seed)
    cipher.seal(
      groupNonce(group),
      authenticatedOfGroup(sealed, 0),
      bodyView,
      sealed.bytes.subarray(GROUP_HEADER_SIZE, length),
    )
    const bodyCrc = this.#checksum(sealed.bytes, GROUP_HEADER_SIZE, length, 0)
    const crc = encodeGroupHeader(sealed, 0, { ...group, bodyCrc, length }, seed)
    return { bytesView: sealed.bytes.subarray(0, length), crc }
  }
}

/** @param at where the whole group lies in `area`. @returns its batches. @throws EDGE_DECRYPT_FAILED. */
export function openGroup(cipher: FileCipher, area: ByteArea, at: number, header: GroupHeader): Uint8Array {
  const sealedView = area.bytes.subarray(at + GROUP_HEADER_SIZE, at + header.length)
  return cipher.open(groupNonce(header), authenticatedOfGroup(headerArea(header), 0), sealedView)
}

/** Not as it lies there: a bit of it may have flipped that is put right where it was decoded. */
function headerArea(header: GroupHeader): ByteArea {
  const area = createArea(GROUP_HEADER_SIZE)
  encodeGroupHeader(area, 0, header, 0)
  return area
}

/**
 * Opens a group where it lies, so that its batches stand where they would in a plain file. One that cannot be opened
 * becomes zeros, in which no batch is found.
 *
 * @returns why it could not be opened.
 */
export function openGroupInPlace(
  cipher: FileCipher,
  area: ByteArea,
  at: number,
  header: GroupHeader,
): EdgeError | undefined {
  const bodyAt = at + GROUP_HEADER_SIZE
  try {
    area.bytes.set(openGroup(cipher, area, at, header), bodyAt)
    return undefined
  } catch (error) {
    area.bytes.fill(0, bodyAt, at + header.length)
    return toEdgeError(error)
  }
}
