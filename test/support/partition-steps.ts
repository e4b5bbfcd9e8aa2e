/** Steps of tests that fill a partition of a real log and read it back. */
import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import type { EdgeError } from '../../src/errors.ts'
import type { Log, Partition } from '../../src/log/index.ts'
import { isShortage } from '../../src/log/io/file-system.ts'
import { idsOf, recordsOf } from './records.ts'

/** The only partition of the only topic. */
export function onlyPartition(log: Log): Partition {
  const [partition] = log.catalog.topic(0, 0)?.partitions ?? []
  return partition ?? assert.fail('the topic is missing')
}

/** Resolves when all batches are acked. */
export async function append(log: Log, partition: Partition, batches: readonly Uint8Array[], count = 1): Promise<void> {
  await Promise.all(
    batches.map(async (recordsView) => {
      while (!log.hasRoom(recordsView.length)) await new Promise<void>((resolve) => log.onceRoom(resolve))
      await new Promise<void>((resolve, reject) => {
        const receipt = { settled: (error: EdgeError | null) => (error === null ? resolve() : reject(error)) }
        partition.append({ count, baseOriginUs: 1n, recordsView }, receipt)
      })
    }),
  )
}

/** The numbers of all messages from `from` on, in the order in which they are read. */
export async function readAll(partition: Partition, from = 0n): Promise<number[]> {
  const numbers: number[] = []
  for (let next = from; next < partition.visibleEnd; ) {
    const result = await partition.read({ fromOffset: next, maxCount: 500, maxBytes: 1 << 20 })
    for (const batch of result.batches) numbers.push(...idsOf(batch))
    assert.ok(result.nextOffset > next, 'a read makes progress')
    next = result.nextOffset
  }
  return numbers
}

/** What the disk goes on refusing is left out at last: read as often as it may be given a moment later. */
export async function readTried(partition: Partition): Promise<number[]> {
  for (;;) {
    try {
      return await readAll(partition, partition.logStartOffset)
    } catch (error) {
      if (!isShortage(error)) throw error
      await setImmediate()
    }
  }
}

/** `from .. end - 1`. */
export const range = (from: number, end: number): number[] =>
  Array.from({ length: end - from }, (_, index) => from + index)
/** A batch of one message for each number. */
export const batchesOf = (from: number, end: number, payloadSize = 100): Uint8Array[] =>
  range(from, end).map((number) => recordsOf([number], payloadSize))
