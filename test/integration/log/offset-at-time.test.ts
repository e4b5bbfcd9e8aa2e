/** Looking for a time in segments takes a while: what is dropped or repacked meanwhile must not move the answer. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Clock } from '../../../src/clock.ts'
import { LOG_SETTINGS, type Log, openLog, type Partition } from '../../../src/log/index.ts'
import { plainCodec } from '../../../src/log/io/block-codec.ts'
import type { FileSystem } from '../../../src/log/io/file-system.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { append } from '../../support/partition-steps.ts'
import { recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const KIB = 1024
const SETTINGS = {
  ...defaultsOf(LOG_SETTINGS),
  journal_file_size: 64 * KIB,
  journal_files: 2,
  flash_budget_per_day: 0,
}
const RECORD_SIZE = 7000

/** The message at an offset was appended at this time. */
const timeOf = (offset: bigint): bigint => (offset + 1n) * 1000n

interface World {
  readonly log: Log
  readonly partition: Partition
  /** Appends the next messages, each at its time. */
  readonly fill: (isDone: () => boolean) => Promise<void>
  /** Blocks that are read from now on stay on their way until it is called. */
  readonly holdReading: () => () => void
}

/** What is read of segments off the event loop comes when `gate` has opened. */
function heldBy(inner: FileSystem, gate: () => Promise<void>): FileSystem {
  return {
    ...inner,
    open(path, mode) {
      const file = inner.open(path, mode)
      if (!path.endsWith('.seg')) return file
      return {
        size: () => file.size(),
        read: (target, position) => file.read(target, position),
        readAtHand: () => false,
        readLater: (target, position) => file.readLater(target, position).then((size) => gate().then(() => size)),
        write: (bytes, position) => file.write(bytes, position),
        datasync: (done) => file.datasync(done),
        truncate: (size) => file.truncate(size),
        close: () => file.close(),
      }
    },
  }
}

async function start(context: TestContext, segmentSizeBytes: number): Promise<World> {
  const path = mkdtempSync(join(tmpdir(), 'edge-offset-at-'))
  context.after(() => rmSync(path, { recursive: true, force: true }))
  let wallUs = 0n
  const clock: Clock = { wallUs: () => wallUs, monotonicUs: () => performance.now() * 1000 }
  let gate: Promise<void> = Promise.resolve()
  const fileSystem = heldBy(createNodeFileSystem(path), () => gate)
  const options = { path, clock, logger: silentLogger, settings: SETTINGS, fileSystem, codec: plainCodec }
  const log = await openLog(options)
  context.after(() => log.close())
  const stream = await log.catalog.createStream('plant')
  const topic = await log.catalog.createTopic(stream, {
    name: 'pumps',
    partitionCount: 1,
    options: topicOptions('buffered', { segmentSizeBytes }),
  })
  const [partition] = topic.partitions
  assert.ok(partition)
  const fill = async (isDone: () => boolean): Promise<void> => {
    for (let count = 0; !isDone(); count++) {
      assert.ok(count < 500, 'filled in vain')
      wallUs = timeOf(partition.visibleEnd)
      await append(log, partition, [recordsOf([Number(partition.visibleEnd)], RECORD_SIZE)])
    }
  }
  const holdReading = (): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    return resolve
  }
  return { log, partition, fill, holdReading }
}

/** Asks for the time of each offset while reading stands still, lets `change` happen, and compares. */
async function compare({ partition, holdReading }: World, change: () => Promise<void>): Promise<void> {
  const release = holdReading()
  const asked: { wanted: bigint; answer: bigint | Promise<bigint> }[] = []
  for (let wanted = partition.logStartOffset; wanted < partition.visibleEnd; wanted++) {
    // Just after the one before: where that ends a block, the answer lies beyond the block that is read.
    asked.push({ wanted, answer: partition.offsetAt(timeOf(wanted) - 1n) })
  }
  assert.ok(asked.some(({ answer }) => answer instanceof Promise))
  await change()
  release()
  for (const { wanted, answer } of asked) {
    const found = await answer
    // For what is gone by then any answer does.
    if (wanted >= partition.logStartOffset) assert.equal(found, wanted)
  }
}

test('segments that are dropped meanwhile do not move the answer', async (context) => {
  const world = await start(context, 32 * KIB)
  const { partition, fill } = world
  await fill(() => partition.segmentCount >= 6)
  await compare(world, async () => assert.equal(await partition.deleteSegments(2, null), 2))
})

test('a journal file that is repacked meanwhile does not move the answer', async (context) => {
  const world = await start(context, 1024 * KIB)
  const { partition, fill } = world
  await fill(() => partition.segmentCount >= 1)
  await compare(world, async () => {
    const packedBytes = partition.sizeBytes
    // Round the journal: all that lay in it lies in the segment.
    await fill(() => partition.sizeBytes > packedBytes + 4 * SETTINGS.journal_file_size)
  })
})
