/** Reads identifiers out of path segments, queries and bodies. Pure. */
import { EdgeError } from '../../errors.ts'
import type { Identifier } from '../../sdk/wire/primitives.ts'
import type { HttpRequest } from './http-types.ts'
import { wrongPath } from './rejection.ts'
import { type Shape, text } from './shape.ts'

const U32_MAX = 0xffff_ffff
const MAX_NAME_BYTES = 255

/**
 * Text that is a u32 is an id (`+0` and `00` too), all else a name: a thing whose name is all digits cannot be reached by
 * its name, as in Iggy.
 *
 * @throws {EdgeError} EDGE_IDENTIFIER_INVALID for a name that is empty or longer than 255 bytes.
 */
export function parseIdentifier(text: string): Identifier {
  if (/^\+?\d+$/.test(text) && Number(text) <= U32_MAX) return Number(text)
  const sizeBytes = Buffer.byteLength(text)
  if (sizeBytes > 0 && sizeBytes <= MAX_NAME_BYTES) return text
  throw new EdgeError('EDGE_IDENTIFIER_INVALID', `Invalid identifier: expected 1..255 bytes, found ${sizeBytes}`)
}

export function pathIdentifier(request: HttpRequest, name: string): Identifier {
  return parseIdentifier(pathText(request, name))
}

export function pathText(request: HttpRequest, name: string): string {
  return request.params.get(name) ?? ''
}

export function pathU32(request: HttpRequest, name: string): number {
  const text = pathText(request, name)
  if (/^\+?\d+$/.test(text) && Number(text) <= U32_MAX) return Number(text)
  throw wrongPath(`Cannot parse \`${text}\` to a \`u32\``)
}

/** Whose name it is: Iggy has a number for each. */
export type NameOwner = 'stream' | 'topic' | 'group'

/** A name of 1..255 bytes. @throws {EdgeError} EDGE_NAME_INVALID with `details.owner`. */
export function nameOf(owner: NameOwner): Shape<string> {
  return (found, path) => {
    const name = text(found, path)
    const sizeBytes = Buffer.byteLength(name)
    if (sizeBytes > 0 && sizeBytes <= MAX_NAME_BYTES && name.isWellFormed()) return name
    const sentence = `Invalid ${owner} name: expected 1..255 bytes of text, found ${sizeBytes}`
    throw new EdgeError('EDGE_NAME_INVALID', sentence, { details: { owner } })
  }
}
