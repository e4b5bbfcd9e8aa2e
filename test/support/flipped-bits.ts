/** Single bits of a header, as rot flips them. */
import { areaOf, type ByteArea } from '../../src/log/core/byte-area.ts'

export const bitsOf = ({ bytes }: ByteArea): readonly number[] =>
  Array.from({ length: 8 * bytes.length }, (_, bit) => bit)

/** @returns a copy with that bit flipped. */
export function flipped({ bytes }: ByteArea, bit: number): ByteArea {
  const area = areaOf(bytes.slice())
  area.view.setUint8(bit >> 3, area.view.getUint8(bit >> 3) ^ (1 << (bit & 7)))
  return area
}
