/** Arguments that several nouns take, and what is said when the thing they name is not there. */
import { EdgeError, type ErrorCode } from '../../../errors.ts'
import type { Argument, Values } from '../grammar.ts'
import { identifierOf } from '../words.ts'

const required = { isPositional: true, isRequired: true } as const

export const STREAM: Argument = {
  name: 'stream',
  ...required,
  aliases: ['stream-id'],
  summary: 'Id or name of the stream.',
}
export const TOPIC: Argument = {
  name: 'topic',
  ...required,
  aliases: ['topic-id'],
  summary: 'Id or name of the topic.',
}
export const PARTITION: Argument = {
  name: 'partition',
  ...required,
  aliases: ['partition-id'],
  summary: 'Number of the partition, from 0.',
}
export const MAX_PARTITION = 2 ** 32 - 1

/** What has a number of its own on real servers too, but never by the client's choice there. */
export const IGNORED_ID: Pick<Argument, 'summary'> = {
  summary: 'Taken for compatibility: ids are given by the server.',
}

export const streamOf = (values: Values): number | string => identifierOf(values.required('stream'))
export const topicOf = (values: Values): number | string => identifierOf(values.required('topic'))

export function partitionOf(values: Values): number {
  values.required('partition')
  return values.integer('partition', 0, { min: 0, max: MAX_PARTITION })
}

/** @throws {EdgeError} `code` when there is no such thing. */
export function present<T>(found: T | null | undefined, code: ErrorCode, what: string): T {
  if (found === null || found === undefined) throw new EdgeError(code, `${what} was not found`)
  return found
}
