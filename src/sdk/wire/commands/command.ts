/** The shape of one command: its code, its request and its response, each with a codec that knows both dialects. */
import type { Codec } from '../codec.ts'
import type { CommandCode } from '../codes.ts'

export interface Command<Code extends CommandCode, Request, Response> {
  readonly code: Code
  readonly request: Codec<Request>
  readonly response: Codec<Response>
}

export function command<const Code extends CommandCode, Request, Response>(
  code: Code,
  request: Codec<Request>,
  response: Codec<Response>,
): Command<Code, Request, Response> {
  return { code, request, response }
}
