/** Which number and which channel an error takes in a VSR reply. Pure. */
import type { EdgeError, ErrorCode } from '../../errors.ts'
import { CODE } from '../../sdk/wire/codes.ts'
import { iggyCodeFor } from './error-map.ts'

const RESOURCE_NOT_FOUND = 20

/** Writes to partitions say "not found" of whatever cannot be resolved. */
const UNRESOLVED: ReadonlySet<ErrorCode> = new Set([
  'EDGE_STREAM_NOT_FOUND',
  'EDGE_TOPIC_NOT_FOUND',
  'EDGE_PARTITION_NOT_FOUND',
  'EDGE_GROUP_NOT_FOUND',
  'EDGE_MEMBER_NOT_FOUND',
  'EDGE_PARTITION_NOT_OWNED',
])
/** A body without the ack byte, or with another than 0 and 1. */
const UNREADABLE: ReadonlySet<ErrorCode> = new Set(['EDGE_COMMAND_MALFORMED', 'EDGE_FORMAT_INVALID'])

/** Found before an operation is carried out: these come in the status of a metadata reply, the others in its result. */
const DENIED_EARLY: ReadonlySet<number> = new Set([3, 4, 40, 52, 58, 1019, 2015, 4041, 4042, 4043])

export function vsrCodeOf(error: EdgeError, commandCode: number): number {
  const isOffset = commandCode === CODE.storeConsumerOffset || commandCode === CODE.deleteConsumerOffset
  const isSend = commandCode === CODE.sendMessages
  if ((isOffset || isSend) && UNRESOLVED.has(error.code)) return RESOURCE_NOT_FOUND
  if (isOffset && UNREADABLE.has(error.code)) return RESOURCE_NOT_FOUND
  return iggyCodeFor(error, 'vsr')
}

export function isDeniedEarly(iggyCode: number): boolean {
  return DENIED_EARLY.has(iggyCode)
}
