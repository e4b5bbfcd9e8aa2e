/** How large a request may be that is no send, and which ones have large answers. */
import { EdgeError } from '../../errors.ts'
import { CODE } from '../../sdk/wire/codes.ts'
import type { Broker, Caller } from '../broker/index.ts'
import { MAX_COMMAND_BYTES } from './defaults.ts'
import type { IncomingRequest, Reply } from './protocol.ts'

/** Their answers are read for, and may be large. */
const LARGE_ANSWERS: ReadonlySet<number> = new Set([CODE.pollMessages, CODE.pollMessagesOnPrimary, CODE.getSnapshot])

export function isLargelyAnswered(code: number): boolean {
  return LARGE_ANSWERS.has(code)
}

/** Lists of commands become objects, ten times as large, and before anybody asks whether the caller may do that. */
export function refusalOfSize(request: IncomingRequest, sizeBytes: number): Reply | null {
  const error = errorOfSize(request, sizeBytes)
  return error === null ? null : (writer) => request.writeFailure(writer, error)
}

/** @returns why a large request is not received at all: nobody would carry it out, and it would take its share from others. */
export function refusalOfBegun(
  request: IncomingRequest,
  sizeBytes: number,
  caller: Caller,
  broker: Pick<Broker, 'maySend'>,
): EdgeError | null {
  if (request.code !== CODE.sendMessages) return errorOfSize(request, sizeBytes)
  if (broker.maySend(caller)) return null
  return new EdgeError('EDGE_FORBIDDEN', `user ${caller.userId} may not send to any topic`)
}

function errorOfSize(request: IncomingRequest, sizeBytes: number): EdgeError | null {
  if (sizeBytes <= MAX_COMMAND_BYTES) return null
  const expected = `expected at most ${MAX_COMMAND_BYTES} bytes where no messages are sent, found ${sizeBytes}`
  return new EdgeError('EDGE_FRAME_TOO_LARGE', `command ${request.code}: ${expected}`, { details: { sizeBytes } })
}
