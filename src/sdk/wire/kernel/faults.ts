/**
 * What the kernels find wrong, as numbers, and the errors they become. The numbers are those of `kernel.as`: a kernel
 * returns one of them instead of a size, and the index of the message it is about beside it.
 */
import { EdgeError, type ErrorCode } from '../../../errors.ts'
import { MAX_PAYLOAD_BYTES, MAX_USER_HEADERS_BYTES } from '../batch.ts'

export const FAULT = {
  /** A message ends after the bytes do. */
  short: -1,
  /** Bytes are left after the last message. */
  trailing: -2,
  payloadTooLarge: -3,
  headersTooLarge: -4,
  checksum: -5,
  reserved: -6,
  /** An offset delta out of turn, or an origin time out of reach of the batch's. */
  delta: -7,
  batchChecksum: -8,
  /** A stored record that does not lie within its batch. */
  record: -9,
  noRoom: -10,
} as const

/** What the kernels are asked to do, as bits. */
export const FLAG = {
  /** Verify the checksum of each classic message that has one. */
  verify: 1,
  /** Store zero ids too, instead of deriving an id when read. */
  keepIds: 2,
  /** Compute checksums of classic messages. */
  withChecksum: 4,
  /** Write offset and append time into classic messages. */
  stamp: 8,
  /** Give messages without an id the one derived from their offset. */
  deriveIds: 16,
} as const

const FAULTS: ReadonlyMap<number, readonly [ErrorCode, string]> = new Map<number, readonly [ErrorCode, string]>([
  [FAULT.short, ['EDGE_BATCH_INDEX_MISSING', 'expected all its bytes within the batch, found an end before that']],
  [FAULT.trailing, ['EDGE_BATCH_SIZE_INVALID', 'expected no bytes after the last message, found some']],
  [
    FAULT.payloadTooLarge,
    ['EDGE_MESSAGE_TOO_LARGE', `expected at most ${MAX_PAYLOAD_BYTES} payload bytes, found more`],
  ],
  [
    FAULT.headersTooLarge,
    ['EDGE_HEADERS_TOO_LARGE', `expected at most ${MAX_USER_HEADERS_BYTES} header bytes, found more`],
  ],
  [FAULT.checksum, ['EDGE_CHECKSUM_INVALID', 'expected the checksum of its bytes, found another']],
  [FAULT.reserved, ['EDGE_COMMAND_MALFORMED', 'expected zero reserved bytes, found others']],
  [FAULT.delta, ['EDGE_COMMAND_MALFORMED', 'expected the next offset delta, found another']],
  [FAULT.batchChecksum, ['EDGE_BATCH_CHECKSUM_INVALID', 'expected the checksum of all messages, found another']],
  [FAULT.record, ['EDGE_BATCH_CORRUPT', 'expected a record within its batch, found bytes that are none']],
  [FAULT.noRoom, ['EDGE_INTERNAL', 'expected room for the message, found too little']],
])

/** @returns the error a fault stands for; the caller throws it. */
export function faultError(fault: number, messageIndex: number, messageCount: number): EdgeError {
  const [code, text] = FAULTS.get(fault) ?? ['EDGE_INTERNAL', `kernel fault ${fault}`]
  const message = `message ${messageIndex} of ${messageCount}: ${text}`
  return new EdgeError(code, message, { details: { messageIndex, messageCount } })
}
