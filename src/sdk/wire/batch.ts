/**
 * The one batch layout of the log: compact records. Each protocol dialect is translated into it and out of it at the
 * connection; nothing behind the connection knows another layout.
 *
 * Record:
 *   varint (payload length << 2 | has user headers << 1 | has id)
 *   varint zigzag (origin time - origin time of the record before; the first one's - base origin), µs
 *   [id 16 bytes, little-endian] [varint length of user headers] payload, user headers
 *
 * Offset, append time, checksum, a missing id and the upper bytes of lengths are not stored: 64 bytes a message become
 * 4 to 5. An id that nobody gave is derived when read (`offset`, and the partition's id seed above it), so it never changes.
 */

/** Records on their way in. `recordsView` may alias a shared buffer: it is copied before the append returns. */
export interface RecordBatch {
  /** 1..2^31-1 records. */
  readonly count: number
  /** Origin time of the first record, µs since the Unix epoch. */
  readonly baseOriginUs: bigint
  readonly recordsView: Uint8Array
}

/** A stored batch on its way out; `recordsView` must not outlive the call or turn that handed it over. */
export interface StoredBatch extends RecordBatch {
  /** Offset of record 0 of the batch (also when `skip` > 0). */
  readonly baseOffset: bigint
  /** One append time for all records of the batch, µs since the Unix epoch; never falls within a partition. */
  readonly appendTimeUs: bigint
  /** Upper half of derived ids: one random u64 per partition incarnation. */
  readonly idSeed: bigint
  /** Records before `skip` were not asked for; `take` records from there on were. */
  readonly skip: number
  readonly take: number
  /** False when the edge's clock was not to be trusted at append time. */
  readonly isClockTrusted: boolean
}

/** Limits of Iggy's protocol that every way in keeps (`../../../docs/protocol/iggy.md`). */
export const MAX_PAYLOAD_BYTES = 64_000_000
export const MAX_USER_HEADERS_BYTES = 100_000
