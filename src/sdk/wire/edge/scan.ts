/**
 * Looks over the heads of a frame before it is decoded: the decoder would run code for tags, read big integers in quadratic
 * time, recurse without a bound and let bad text and doubled keys pass. One loop, no recursion, three small arrays.
 *
 * Lets through exactly: one array, at most four levels and 4,096 items deep, definite lengths within the frame, no tags, no
 * simple values but false, true, null and floats, integers up to 2^53 - 1, map keys that are integers in ascending order,
 * valid UTF-8, and nothing after the item.
 */
import { frameFault } from './error-codes.ts'
import { MAX_DEPTH, MAX_ITEMS } from './limits.ts'

const MAJOR = { unsigned: 0, negative: 1, bytes: 2, text: 3, array: 4, map: 5, tag: 6, simple: 7 } as const
const MAX_INTEGER = Number.MAX_SAFE_INTEGER
/** Puts negative keys behind all others, as their encoded bytes do. */
const NEGATIVE_KEYS_FROM = MAX_INTEGER + 1

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** @throws `frame-invalid`, or `frame-unknown` for a key that must be understood (negative ones). */
export function scan(frameView: Uint8Array): void {
  new Scan(frameView).run()
}

class Scan {
  readonly #bytes: Uint8Array
  #at = 0
  #items = 0
  /** Per open array or map: items still to come, whether it is a map, its last key. */
  readonly #left: number[] = []
  readonly #isMap: boolean[] = []
  readonly #lastKey: number[] = []

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  run(): void {
    if ((this.#bytes[0] ?? 0) >> 5 !== MAJOR.array) throw invalid('not an array')
    do {
      this.#item()
      this.#closeFull()
    } while (this.#left.length > 0)
    if (this.#at !== this.#bytes.length) throw invalid('bytes after the item')
  }

  #item(): void {
    const first = this.#bytes[this.#at++]
    if (first === undefined) throw invalid('cut short')
    if (++this.#items > MAX_ITEMS) throw invalid(`more than ${MAX_ITEMS} items`)
    const major = first >> 5
    const value = this.#argument(first & 31)
    this.#check(major, first & 31, value)
    const top = this.#left.length - 1
    if (top >= 0) {
      if (this.#isMap[top] && (this.#left[top] ?? 0) % 2 === 0) this.#key(major, value, top)
      this.#left[top] = (this.#left[top] ?? 0) - 1
    }
    if (major === MAJOR.bytes || major === MAJOR.text) this.#string(major, value)
    else if (major === MAJOR.array || major === MAJOR.map) this.#open(major, value)
  }

  /** The head's number: in its five low bits, or in the 1, 2, 4 or 8 bytes after it. */
  #argument(info: number): number {
    if (info < 24) return info
    if (info > 27) throw invalid('indefinite length')
    const size = 1 << (info - 24)
    if (this.#at + size > this.#bytes.length) throw invalid('cut short')
    let value = 0
    for (let left = size; left > 0; left--) value = value * 256 + (this.#bytes[this.#at++] ?? 0)
    return value
  }

  #check(major: number, info: number, value: number): void {
    if (major === MAJOR.tag) throw invalid('tag')
    if (major === MAJOR.simple) {
      if (info < 20 || info === 23 || info === 24) throw invalid('simple value')
    } else if (value > MAX_INTEGER) throw invalid('integer above 2^53 - 1')
  }

  #key(major: number, value: number, top: number): void {
    if (major > MAJOR.negative) throw invalid('map key is not an integer')
    const key = major === MAJOR.unsigned ? value : NEGATIVE_KEYS_FROM + value
    if (key <= (this.#lastKey[top] ?? 0)) throw invalid('map keys not ascending')
    this.#lastKey[top] = key
    if (major === MAJOR.negative) throw frameFault('frame-unknown', `key ${-1 - value} must be understood`)
  }

  #string(major: number, sizeBytes: number): void {
    if (sizeBytes > this.#bytes.length - this.#at) throw invalid('cut short')
    if (major === MAJOR.text) {
      try {
        utf8.decode(this.#bytes.subarray(this.#at, this.#at + sizeBytes))
      } catch {
        throw invalid('text is not UTF-8')
      }
    }
    this.#at += sizeBytes
  }

  #open(major: number, count: number): void {
    const items = major === MAJOR.map ? count * 2 : count
    // Every item takes a byte: a huge announced count is refused here, before anything is allocated for it.
    if (items > this.#bytes.length - this.#at) throw invalid('cut short')
    if (this.#left.length === MAX_DEPTH) throw invalid(`nested deeper than ${MAX_DEPTH}`)
    this.#left.push(items)
    this.#isMap.push(major === MAJOR.map)
    this.#lastKey.push(-1)
  }

  #closeFull(): void {
    while (this.#left.length > 0 && this.#left.at(-1) === 0) {
      this.#left.pop()
      this.#isMap.pop()
      this.#lastKey.pop()
    }
  }
}

function invalid(why: string) {
  return frameFault('frame-invalid', why)
}
