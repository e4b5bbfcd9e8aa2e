/**
 * Option blocks of the VSR dialect: the encoding of user headers, with string keys that are unique and keep their order.
 * In requests a block runs to the end of the payload, in replies its length goes before it. Classic has fields instead;
 * `commands/topics.ts` turns those into the same options.
 */
import { EdgeError } from '../../errors.ts'
import { type Codec, sized } from './codec.ts'
import { headerKindCode, headerScalarOf, readHeaderValue } from './header-values.ts'
import type { Reader } from './reader.ts'

export interface Option {
  readonly key: string
  /** Kind code as in user headers: 2 string, 3 bool, 11 u32, 12 u64 .. */
  readonly kind: number
  /** Aliases the payload it was decoded from. */
  readonly valueBytes: Uint8Array
}

export type Options = readonly Option[]
export const NO_OPTIONS: Options = []

export const MAX_OPTIONS_BYTES = 100_000
export const MAX_OPTIONS_COUNT = 1024

/** A block that fills all that is left. */
export const optionsToEnd: Codec<Options> = {
  read(reader) {
    if (reader.remaining === 0) return NO_OPTIONS
    if (reader.remaining > MAX_OPTIONS_BYTES) throw tooLarge(`${MAX_OPTIONS_BYTES} bytes`, reader.remaining)
    const options: Option[] = []
    const keys = new Set<string>()
    while (reader.remaining > 0) {
      const option = readOption(reader)
      if (keys.has(option.key)) throw reader.fail('EDGE_COMMAND_MALFORMED', 'each option once', `"${option.key}" again`)
      if (keys.size === MAX_OPTIONS_COUNT) throw tooLarge(`${MAX_OPTIONS_COUNT} options`, keys.size + 1)
      keys.add(option.key)
      options.push(option)
    }
    return options
  },
  write(writer, options) {
    for (const { key, kind, valueBytes } of options) {
      writer.u8(STRING)
      writer.text(key)
      writer.u8(kind)
      writer.longBytes(valueBytes)
    }
  },
}

/** `[len:4]` and a block. */
export const sizedOptions: Codec<Options> = sized(optionsToEnd)

const STRING = headerKindCode('string')

function readOption(reader: Reader): Option {
  const key = readHeaderValue(reader)
  if (key.kind !== 'string') throw reader.fail('EDGE_COMMAND_MALFORMED', 'a string as option key', key.kind)
  const value = readHeaderValue(reader)
  return { key: String(headerScalarOf(key)), kind: headerKindCode(value.kind), valueBytes: value.bytes }
}

function tooLarge(expected: string, found: number): EdgeError {
  return new EdgeError('EDGE_OPTIONS_TOO_LARGE', `options: expected at most ${expected}, found ${found}`)
}
