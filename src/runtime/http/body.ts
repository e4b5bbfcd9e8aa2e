/**
 * Reads request bodies within bounds: one body, and all bodies that are held at the same time. A body is refused by its
 * announced length before a byte of it is kept, and by the number of its values before it is parsed: three bytes of text
 * make an object of sixty.
 */
import type { IncomingMessage } from 'node:http'
import { EdgeError } from '../../errors.ts'
import { parseJson } from '../../exact-json.ts'
import { rejection } from './rejection.ts'
import type { Shape } from './shape.ts'

export interface BodyLimits {
  readonly maxBodyBytes: number
  /** Over all requests. */
  readonly maxHeldBytes: number
}

/** Of a body that anybody may send, without a token: a login. */
const MAX_STRANGERS_BYTES = 16 * 1024
/** Values of one body: a third of them are messages at most, with a few hundred bytes each until they are packed. */
const MAX_VALUES = 100_000

const TOO_LARGE = 'Failed to buffer the request body: length limit exceeded'
/** `application/json` and `application/*+json`, with parameters. */
const JSON_TYPE = /^application\/(?:json|[\w.+-]+\+json)\s*(?:;|$)/i

export class BodyReader {
  private readonly limits: BodyLimits
  private heldBytes = 0

  constructor(limits: BodyLimits) {
    this.limits = limits
  }

  /**
   * @param isKnown whether the caller has shown who it is.
   * @throws {EdgeError} rejections 400, 413, 415, 422, and 503 when too much is held.
   */
  async readJson<T>(request: IncomingMessage, shape: Shape<T>, isKnown: boolean): Promise<T> {
    if (!JSON_TYPE.test(request.headers['content-type'] ?? ''))
      throw rejection(415, 'Expected request with `Content-Type: application/json`')
    const text = await this.readText(request, isKnown)
    let found: unknown
    try {
      found = parseJson(text)
    } catch (cause) {
      const sentence = cause instanceof Error ? cause.message : 'no JSON'
      throw rejection(400, `Failed to parse the request body as JSON: ${sentence.slice(0, 200)}`)
    }
    return shape(found, '')
  }

  private async readText(request: IncomingMessage, isKnown: boolean): Promise<string> {
    const { maxBodyBytes } = this.limits
    const maxBytes = isKnown ? maxBodyBytes : Math.min(maxBodyBytes, MAX_STRANGERS_BYTES)
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw rejection(413, TOO_LARGE)
    const chunks: Buffer[] = []
    let sizeBytes = 0
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        sizeBytes += chunk.length
        this.heldBytes += chunk.length
        if (sizeBytes > maxBytes) throw rejection(413, TOO_LARGE)
        if (this.heldBytes > this.limits.maxHeldBytes)
          throw rejection(503, 'Too many request bodies are held; try again')
        chunks.push(chunk)
      }
      const bytes = Buffer.concat(chunks, sizeBytes)
      if (bytes.length > MAX_VALUES && countValues(bytes) > MAX_VALUES)
        throw rejection(413, `The request body has more than ${MAX_VALUES} values; send it in parts`)
      return decodeUtf8(bytes)
    } catch (cause) {
      // The peer went away in the middle: nobody reads the answer, and it is no failure of ours.
      throw cause instanceof EdgeError ? cause : rejection(400, 'The request body ended early')
    } finally {
      this.heldBytes -= sizeBytes
    }
  }
}

/** @returns values of a JSON text, or a few more: each but the first follows a comma or an opening bracket. */
function countValues(bytes: Buffer): number {
  let count = 1
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = endOfText(bytes, at)
    else if (byte === COMMA || byte === OPEN_LIST || byte === OPEN_OBJECT) count++
  }
  return count
}

/** Payloads are long: to look at each of their bytes would take twice as long as to parse them. @returns the closing quote. */
function endOfText(bytes: Buffer, openingQuote: number): number {
  let end = openingQuote
  let before = end
  do {
    end = bytes.indexOf(QUOTE, end + 1)
    if (end < 0) return bytes.length
    before = end - 1
    while (bytes[before] === BACKSLASH) before--
    // An odd number of backslashes: the quote belongs to the text.
  } while ((end - before) % 2 === 0)
  return end
}

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw rejection(400, 'Failed to parse the request body as JSON: invalid unicode code point')
  }
}
