/** How large a request may be that is no send, and which ones have large answers. */
import { EdgeError } from '../../errors.ts'
import { CODE } from '../../sdk/wire/codes.ts'
import { MAX_COMMAND_BYTES } from './defaults.ts'
import type { IncomingRequest, Reply } from './protocol.ts'

/** Their answers are read for, and may be large. */
const LARGE_ANSWERS: ReadonlySet<number> = new Set([CODE.pollMessages, CODE.pollMessagesOnPrimary, CODE.getSnapshot])

export function isLargelyAnswered(code: number): boolean {
  return LARGE_ANSWERS.has(code)
}

/** Lists of commands become objects, ten times as large, and before anybody asks whether the caller may do that. */
export function refusalOfSize(request: IncomingRequest, sizeBytes: number): Reply | null {
  if (sizeBytes <= MAX_COMMAND_BYTES) return null
  const expected = `expected at most ${MAX_COMMAND_BYTES} bytes where no messages are sent, found ${sizeBytes}`
  const error = new EdgeError('EDGE_FRAME_TOO_LARGE', `command ${request.code}: ${expected}`, {
    details: { sizeBytes },
  })
  return (writer) => request.writeFailure(writer, error)
}
