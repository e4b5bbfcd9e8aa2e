/**
 * Reads request bodies within bounds: one body, and all bodies that are held at the same time. A body is refused by its
 * announced length before a byte of it is kept.
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

const TOO_LARGE = 'Failed to buffer the request body: length limit exceeded'
/** `application/json` and `application/*+json`, with parameters. */
const JSON_TYPE = /^application\/(?:json|[\w.+-]+\+json)\s*(?:;|$)/i

export class BodyReader {
  private readonly limits: BodyLimits
  private heldBytes = 0

  constructor(limits: BodyLimits) {
    this.limits = limits
  }

  /** @throws {EdgeError} rejections 400, 413, 415, 422, and 503 when too much is held. */
  async readJson<T>(request: IncomingMessage, shape: Shape<T>): Promise<T> {
    if (!JSON_TYPE.test(request.headers['content-type'] ?? ''))
      throw rejection(415, 'Expected request with `Content-Type: application/json`')
    const text = await this.readText(request)
    let found: unknown
    try {
      found = parseJson(text)
    } catch (cause) {
      const sentence = cause instanceof Error ? cause.message : 'no JSON'
      throw rejection(400, `Failed to parse the request body as JSON: ${sentence.slice(0, 200)}`)
    }
    return shape(found, '')
  }

  private async readText(request: IncomingMessage): Promise<string> {
    if (Number(request.headers['content-length'] ?? 0) > this.limits.maxBodyBytes) throw rejection(413, TOO_LARGE)
    const chunks: Buffer[] = []
    let sizeBytes = 0
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        sizeBytes += chunk.length
        this.heldBytes += chunk.length
        if (sizeBytes > this.limits.maxBodyBytes) throw rejection(413, TOO_LARGE)
        if (this.heldBytes > this.limits.maxHeldBytes)
          throw rejection(503, 'Too many request bodies are held; try again')
        chunks.push(chunk)
      }
      return decodeUtf8(Buffer.concat(chunks, sizeBytes))
    } catch (cause) {
      // The peer went away in the middle: nobody reads the answer, and it is no failure of ours.
      throw cause instanceof EdgeError ? cause : rejection(400, 'The request body ended early')
    } finally {
      this.heldBytes -= sizeBytes
    }
  }
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw rejection(400, 'Failed to parse the request body as JSON: invalid unicode code point')
  }
}
