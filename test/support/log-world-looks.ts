/** What `log-world.ts` compares when it looks: what a poll gives, with what was given and seen. */
import type { ReadResult } from '../../src/log/api.ts'
import type { LogPartition } from '../../src/log/partition.ts'
import { check, type Given, isDamaged, type Known, max } from './log-world-parts.ts'
import { PATIENCE } from './log-world-time.ts'
import { idsOf } from './records.ts'

export interface Look {
  readonly partition: LogPartition
  readonly known: Known
  readonly end: bigint
  readonly read: (fromOffset: bigint) => Promise<ReadResult>
  /** For what is said of it. */
  readonly how: string
}

/** An offset names one message for ever. */
export function see(key: number, known: Known, { baseOffset, ids }: Given, how: string): void {
  for (const [index, id] of ids.entries()) {
    const offset = baseOffset + BigInt(index)
    const seen = known.seen.get(offset)
    check(seen === undefined || seen === id, 'J5', `key ${key} offset ${offset} was ${seen}, now ${id} (${how})`)
    known.seen.set(offset, id)
  }
}

/**
 * A poll from the start: all given below `end` and above the floor, in order, nothing else.
 *
 * @returns how many messages it gave.
 */
export async function compare({ partition, known, end, read, how }: Look): Promise<number> {
  const { key } = partition
  const given = new Map(known.given.map((each) => [each.baseOffset, each]))
  const have = new Set<bigint>()
  let next = partition.logStartOffset
  let last = -1n
  let lastTimeUs = 0n
  let messageCount = 0
  for (let round = 0; next < end && round < PATIENCE; round++) {
    const result = await read(next)
    messageCount += result.messageCount
    for (const batch of result.batches) {
      const { baseOffset } = batch
      check(baseOffset > last, 'J4', `key ${key} offset ${baseOffset} after ${last} (${how})`)
      const { appendTimeUs } = batch
      check(appendTimeUs >= lastTimeUs, 'J4', `key ${key} offset ${baseOffset}: ${appendTimeUs} after ${lastTimeUs}`)
      last = baseOffset
      lastTimeUs = appendTimeUs
      const ids = idsOf(batch)
      const same = given.get(baseOffset)
      const isSame = same !== undefined && same.ids.join() === ids.join()
      check(isSame, 'J3', `key ${key} offset ${baseOffset} ids ${ids}, given ${same?.ids} (${how})`)
      have.add(baseOffset)
      if (baseOffset + BigInt(ids.length) <= partition.visibleEnd) see(key, known, { baseOffset, ids }, how)
    }
    check(result.nextOffset > next, 'J2', `key ${key}: no progress at ${next} of ${end} (${how})`)
    next = result.nextOffset
  }
  const start = max(partition.logStartOffset, known.droppableTo)
  for (const { baseOffset, ids } of known.given) {
    const batchEnd = baseOffset + BigInt(ids.length)
    if (batchEnd > end || baseOffset < start || isDamaged(known, baseOffset)) continue
    check(have.has(baseOffset), 'J2', `key ${key} offset ${baseOffset} of ${end} is missing (${how})`)
  }
  return messageCount
}

export interface Opened {
  readonly partition: LogPartition
  /** The same in the life before. */
  readonly before: LogPartition | undefined
  readonly known: Known
  /** What was only written may be gone. */
  readonly isUnsafe: boolean
  /** The open said that messages are missing. */
  readonly isLossTold: boolean
}

/** What was promised is there after an open, and purged stays purged. @returns the end of the partition. */
export function checkEnd({ partition, before, known, isUnsafe, isLossTold }: Opened): bigint {
  const { key, watermark, logStartOffset } = partition
  const { floorOffset: floor } = partition.spec
  const end = max(watermark.writtenEnd, floor)
  const promised = max(known.durableAck, max(before?.durableEnd ?? 0n, isUnsafe ? 0n : known.writtenAck))
  const isExcused = known.damaged.some((range) => range.end >= end)
  check(end >= promised || isExcused, 'J1', `key ${key}: end ${end}, floor ${floor}, promised ${promised}`)
  check(end >= promised || isLossTold, 'J2', `key ${key}: end ${end}, promised ${promised}, not a word of it`)
  check(logStartOffset >= known.purgedTo, 'J9', `key ${key}: purged to ${known.purgedTo}`)
  check(floor <= known.droppableTo, 'J9', `key ${key}: floor ${floor} above ${known.droppableTo}`)
  return end
}

/** The next offset is above every one seen; what was lost behind the end is forgotten. */
export function goOnFrom({ key, nextOffset }: LogPartition, known: Known, end: bigint): void {
  for (const offset of known.seen.keys())
    check(nextOffset > offset, 'J5', `key ${key}: next ${nextOffset}, seen ${offset}`)
  known.given = known.given.filter((each) => each.baseOffset < end)
  if (known.writtenAck > end) known.writtenAck = end
  if (known.durableAck > end) known.durableAck = end
  known.settledCount = known.appendCount
}
