/**
 * Requests that never reach the broker: the body is no JSON, a field has another type, a path segment is no number. The
 * answer is a status with one plain sentence, worded like those of Iggy's server, not the JSON of an Iggy error.
 */
import { EdgeError } from '../../errors.ts'

export type RejectionStatus = 400 | 408 | 413 | 415 | 422 | 431 | 503

export function rejection(httpStatus: RejectionStatus, sentence: string): EdgeError {
  return new EdgeError('EDGE_COMMAND_MALFORMED', sentence, { details: { httpStatus } })
}

/** The body is JSON, but not of the shape the route takes. `path` is a dotted field name, empty for the body itself. */
export function wrongShape(path: string, sentence: string): EdgeError {
  const where = path === '' ? '' : `${path}: `
  return rejection(422, `Failed to deserialize the JSON body into the target type: ${where}${sentence}`)
}

export function wrongQuery(sentence: string): EdgeError {
  return rejection(400, `Failed to deserialize query string: ${sentence}`)
}

export function wrongPath(sentence: string): EdgeError {
  return rejection(400, `Invalid URL: ${sentence}`)
}

/** @returns the status of a rejection, or undefined when `error` is any other error. */
export function rejectionStatus(error: EdgeError): number | undefined {
  const status = error.details.httpStatus
  return error.code === 'EDGE_COMMAND_MALFORMED' && typeof status === 'number' ? status : undefined
}
