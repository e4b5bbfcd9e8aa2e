/**
 * What the offset trail holds and which of it counts. Pure.
 *
 * A row has one place, which is written again as often as it changes, until the database has it:
 *
 *     crc32 u32 | generation u32 | partition key u64 | column u64 | offset i64, -1: deleted        all little-endian
 *
 * The generation counts the writes to the database. Rows of another one than the database's are older than it and count for
 * nothing, unless the database lost the number itself.
 */
import { crc32 } from '../core/checksum.ts'
import { isKnownColumn } from './consumer-column.ts'

export const TRAIL_ROW_BYTES = 32
const DELETED = -1n

export interface TrailRow {
  readonly partitionKey: number
  readonly column: number
  /** undefined: the row was deleted. */
  readonly offset: bigint | undefined
}

export interface FoundRow extends TrailRow {
  readonly generation: number
  /** Number of its place in the file. */
  readonly place: number
}

/** A trail as it was found. */
export interface FoundTrail {
  readonly rows: readonly FoundRow[]
  /** Places whose bytes are no row: torn, overwritten, or cut off at the file's end. */
  readonly damagedCount: number
}

export const NO_TRAIL: FoundTrail = { rows: [], damagedCount: 0 }

export function encodeTrailRow(target: Buffer, { partitionKey, column, offset }: TrailRow, generation: number): void {
  target.writeUInt32LE(generation, 4)
  target.writeBigUInt64LE(BigInt(partitionKey), 8)
  target.writeBigUInt64LE(BigInt(column), 16)
  target.writeBigInt64LE(offset ?? DELETED, 24)
  target.writeUInt32LE(crc32(target, 4, TRAIL_ROW_BYTES, 0), 0)
}

/** @param bytes the whole file. Rows of kinds that only a newer release knows are left out; they are no damage. */
export function decodeTrail(bytes: Buffer): FoundTrail {
  const rows: FoundRow[] = []
  let damagedCount = bytes.length % TRAIL_ROW_BYTES === 0 ? 0 : 1
  for (let at = 0; at + TRAIL_ROW_BYTES <= bytes.length; at += TRAIL_ROW_BYTES) {
    if (isUnused(bytes, at)) continue
    if (bytes.readUInt32LE(at) !== crc32(bytes, at + 4, at + TRAIL_ROW_BYTES, 0)) {
      damagedCount++
      continue
    }
    const column = Number(bytes.readBigUInt64LE(at + 16))
    if (!isKnownColumn(column)) continue
    const offset = bytes.readBigInt64LE(at + 24)
    rows.push({
      place: at / TRAIL_ROW_BYTES,
      generation: bytes.readUInt32LE(at + 4),
      partitionKey: Number(bytes.readBigUInt64LE(at + 8)),
      column,
      offset: offset === DELETED ? undefined : offset,
    })
  }
  return { rows, damagedCount }
}

/** Zeros, which are no row: not even their sum would fit. */
function isUnused(bytes: Buffer, at: number): boolean {
  for (let word = 0; word < TRAIL_ROW_BYTES; word += 4) if (bytes.readUInt32LE(at + word) !== 0) return false
  return true
}

export interface TakenTrail {
  /** What the offsets become, in no particular order. */
  readonly changes: readonly TrailRow[]
  /** Of the rows, and of the database once it has them. */
  readonly generation: number
  /** Highest of any row: a power cut may have set the database back, and no write to it may have the number of those. */
  readonly newest: number
}

/**
 * What an earlier process had acknowledged and not yet written to the database.
 *
 * A database that was rebuilt may not know its generation. Partition keys are the descriptors' and stay what they were, so
 * the newest rows of the trail still count. They may be older than rows that were saved, though: of two offsets the lower
 * one counts then, since a message may be delivered again and must not be skipped.
 *
 * @param generation of the database; undefined when it names none: it is new, or was rebuilt.
 * @param offsetOf what the database says.
 */
export function takeTrail(
  { rows }: FoundTrail,
  generation: number | undefined,
  offsetOf: (partitionKey: number, column: number) => bigint | undefined,
): TakenTrail {
  const newest = rows.reduce((highest, row) => Math.max(highest, row.generation), 0)
  const taken = rows.filter((row) => row.generation === (generation ?? newest))
  // Generation 0 is that of a database before its first write: nothing in it can be newer.
  const isOrderKnown = generation !== undefined || newest === 0
  const changes = taken.map(({ partitionKey, column, offset }) => {
    const saved = offsetOf(partitionKey, column)
    const isSavedLower = !isOrderKnown && saved !== undefined && offset !== undefined && saved < offset
    return { partitionKey, column, offset: isSavedLower ? saved : offset }
  })
  return { changes, generation: generation ?? newest, newest }
}
