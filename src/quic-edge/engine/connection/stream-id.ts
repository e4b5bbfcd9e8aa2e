/** What a stream's number says (RFC 9000 section 2.1): who opened it, whether it goes both ways, and the how many-th. Pure. */
import type { Role } from './api.ts'

const SERVER_BIT = 0x1
const UNIDIRECTIONAL_BIT = 0x2
const KINDS = 4

export type Direction = 'bidirectional' | 'unidirectional'

export const openerOf = (id: number): Role => ((id & SERVER_BIT) === 0 ? 'client' : 'server')
export const isUnidirectional = (id: number): boolean => ((id % KINDS) & UNIDIRECTIONAL_BIT) !== 0
export const directionOf = (id: number): Direction => (isUnidirectional(id) ? 'unidirectional' : 'bidirectional')
/** Streams of the same kind that come before. */
export const indexOf = (id: number): number => Math.floor(id / KINDS)

export function streamId(opener: Role, direction: Direction, index: number): number {
  const kind = (opener === 'server' ? SERVER_BIT : 0) + (direction === 'unidirectional' ? UNIDIRECTIONAL_BIT : 0)
  return index * KINDS + kind
}
