/**
 * The log's engine on a sealed store: all invariants of `log-engine.test.ts` under the same crashes and faults, and
 *
 *   J13 a nonce is never used twice under one key
 *
 * Longer runs by environment: LOG_SIM_SEEDS, LOG_SIM_STEPS, LOG_SIM_FROM.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoreKeys } from '../../src/log/io/store-keys.ts'
import { LogWorld } from '../support/log-world.ts'
import { WORN } from '../support/log-world-damage.ts'
import type { WorldOptions } from '../support/log-world-options.ts'
import { NonceRecord, recordingKeys } from '../support/recording-keys.ts'
import { assertReached } from '../support/simulation-reach.ts'

/** Enough to reach what a run is for. */
const [ENOUGH_SEEDS, ENOUGH_STEPS] = [15, 400]
const seeds = Number(process.env.LOG_SIM_SEEDS ?? ENOUGH_SEEDS)
const steps = Number(process.env.LOG_SIM_STEPS ?? ENOUGH_STEPS)
const from = Number(process.env.LOG_SIM_FROM ?? 1)

const FIRST = new Uint8Array(32).fill(1)
const SECOND = new Uint8Array(32).fill(2)

/** @returns how many bodies were sealed. */
async function check(
  seed: number,
  keys: (record: NonceRecord) => StoreKeys,
  length = steps,
  options: WorldOptions = {},
): Promise<number> {
  const record = new NonceRecord()
  const world = new LogWorld(seed, { keys: () => keys(record), ...options })
  try {
    await world.run(length)
  } catch (error) {
    assert.fail(`seed ${seed}, step ${world.counts.steps}: ${String(error)}\n  ${world.trace.slice(-20).join('\n  ')}`)
  }
  assert.deepEqual(record.repeated, [], `J13: seed ${seed}`)
  return record.count
}

test(`sealed, no seed of ${seeds} from ${from} breaks an invariant`, async (context) => {
  let sealedCount = 0
  for (let seed = from; seed < from + seeds; seed++) {
    sealedCount += await check(seed, (record) => recordingKeys([FIRST], true, record))
  }
  const wasAskedShort = seeds < ENOUGH_SEEDS || steps < ENOUGH_STEPS
  assertReached(context, wasAskedShort, { 'bodies sealed': sealedCount }, 50 * seeds)
})

test(`sealed, on a disk that wears out, no seed of ${seeds} from ${from} breaks an invariant`, async () => {
  for (let seed = from; seed < from + seeds; seed++) {
    await check(seed, (record) => recordingKeys([FIRST], true, record), steps, WORN)
  }
})

test(`sealed, with folders of partitions that take no files for a while, no seed of ${seeds} from ${from} breaks an invariant`, async () => {
  for (let seed = from; seed < from + seeds; seed++) {
    await check(seed, (record) => recordingKeys([FIRST], true, record), steps, { refusalRate: 0.02 })
  }
})

test(`sealed, with a device that gives nothing for a while, and large batches beside purges, no seed of ${seeds} from ${from} breaks an invariant`, async () => {
  const options = { outageRate: 0.02, isRotting: false, largeRate: 0.1, purgeRate: 0.02 }
  for (let seed = from; seed < from + seeds; seed++) {
    await check(seed, (record) => recordingKeys([FIRST], true, record), steps, options)
  }
})

test('seed 940176 stays clean: what a partition had to go on above was forgotten with the damaged file that told of it', async () => {
  await check(940176, (record) => recordingKeys([FIRST], true, record), 600)
})

/** Keys that are turned on, off and over: others at each start. */
function turnedKeys(): (record: NonceRecord) => StoreKeys {
  let starts = 0
  return (record) => {
    const phase = starts++ % 4
    const current = phase < 2 ? [FIRST, SECOND] : [SECOND, FIRST]
    return recordingKeys(current, phase !== 0, record)
  }
}

test(`with keys that are turned on, off and over at each start, no seed of ${seeds} breaks an invariant`, async () => {
  for (let seed = from; seed < from + seeds; seed++) await check(seed, turnedKeys())
})

test(`the same where folders of partitions take no files for a while, no seed of ${seeds} breaks an invariant`, async () => {
  for (let seed = from; seed < from + seeds; seed++) await check(seed, turnedKeys(), steps, { refusalRate: 0.02 })
})

test('seed 218 stays clean: a jump that a purge had made needless was shown before it was synced', async () => {
  await check(218, (record) => recordingKeys([FIRST], true, record), 600)
})

test('seed 9800747 stays clean: a folder that a killed process had made went with a power cut, and all segments in it', async () => {
  await check(9800747, turnedKeys(), 600)
})

test('seed 40154 stays clean: what stood behind a jump of the same machine start was shown before it was synced', async () => {
  await check(40154, turnedKeys(), 700)
})

test('seed 9800634 stays clean: a partition made after a start that could not be recorded showed what was not synced', async () => {
  await check(9800634, turnedKeys(), 600)
})

test('seed 9500932 stays clean: the end of a segment was unreadable, and nobody said so', async () => {
  await check(9500932, turnedKeys(), 600)
})

test('seed 9100466 stays clean: a clean stop came back where a start behind it was written over by a group that tore', async () => {
  await check(9100466, (record) => recordingKeys([FIRST], true, record), 600)
})

test('seed 7100475 stays clean: the only group of the oldest file was unreadable, and nothing missed it', async () => {
  await check(7100475, turnedKeys(), 600)
})
