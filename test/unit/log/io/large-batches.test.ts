/** What waits behind a large batch: within its bounds, told when the log closes, and nothing of it left on the disk. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { BATCH_KIND } from '../../../../src/log/core/batch-header.ts'
import { type BatchOwner, PendingBatch } from '../../../../src/log/core/pending-batch.ts'
import { plainCodec } from '../../../../src/log/io/block-codec.ts'
import { bodyChecksum } from '../../../../src/log/io/checksum.ts'
import type { FileSystem } from '../../../../src/log/io/file-system.ts'
import type { Journal } from '../../../../src/log/io/journal.ts'
import { LargeBatches } from '../../../../src/log/io/large-batches.ts'
import { noKeys } from '../../../../src/log/io/store-keys.ts'
import type { LogPartition } from '../../../../src/log/partition.ts'
import { systemScheduler } from '../../../../src/log/scheduler.ts'

const MAX_WAITING_BYTES = 64 * 1024
const TAG = { device: 1, epoch: 1, lane: 0, firstSequence: 0, sequenceCount: 1 }

interface State {
  refusal: EdgeError | undefined
  isClosed: boolean
  hasRoom: boolean
  askedCount: number
}

/** A journal without room, until the test says so, or it is refused or closed, and the files that are there. */
function createWorld() {
  const state: State = { refusal: undefined, isClosed: false, hasRoom: false, askedCount: 0 }
  const paths = new Set<string>()
  const takenBack: bigint[] = []
  const externals: bigint[] = []
  const journal = {
    boot: 1,
    get refusal() {
      return state.refusal
    },
    get isClosed() {
      return state.isClosed
    },
    hasRoom: () => state.hasRoom,
    append: (batch: PendingBatch) => batch.settle(null),
    onceRoom(callback: () => void) {
      state.askedCount++
      systemScheduler.nextTurn(callback)
    },
    roomMade() {},
    flush: async () => {},
  }
  const fileSystem: Partial<FileSystem> = {
    makeDirectory() {},
    open(path) {
      paths.add(path)
      return {
        size: () => 0,
        read: () => 0,
        readAtHand: () => false,
        readLater: async () => 0,
        write() {},
        datasync: (done) => systemScheduler.nextTurn(() => done(null)),
        truncate() {},
        close() {},
      }
    },
    unlink: (path) => void paths.delete(path),
    syncDirectory: async () => {},
  }
  const large = new LargeBatches({
    fileSystem: fileSystem as FileSystem,
    scheduler: systemScheduler,
    codec: plainCodec,
    checksum: bodyChecksum,
    journal: journal as Partial<Journal> as Journal,
    storeIdBytes: new Uint8Array(16),
    keys: noKeys,
    nextRunNumber: () => 1,
    randomU32: () => 7,
    maxWaitingBytes: MAX_WAITING_BYTES,
    written() {},
    placed() {},
    stored() {},
    entered() {},
  })
  const partition = {
    key: 1,
    isRemoved: false,
    spec: { directory: 'streams/0/topics/0/1' },
    logStartOffset: 0n,
    addExternal: (offset: bigint) => void externals.push(offset),
    watermark: { isBuffered: false },
    takeBack: (offset: bigint) => void takenBack.push(offset),
  } as unknown as LogPartition
  return { state, paths, takenBack, externals, large, partition }
}

type World = ReturnType<typeof createWorld>

/** @returns the code of the error that the sender is told. */
function appendTo({ large, partition }: World, baseOffset: bigint, kind: number, size: number): Promise<string> {
  return new Promise((resolve) => {
    const fields = { count: 1, baseOffset, appendTimeUs: 1n, baseOriginUs: 1n, key: 1, kind, flags: 0 }
    const receipt = { settled: (error: EdgeError | null) => resolve(error?.code ?? 'none') }
    const batch = new PendingBatch({} as BatchOwner, fields, baseOffset + 1n, receipt)
    large.append(partition, batch, new Uint8Array(size), undefined)
  })
}

async function untilWaiting({ state }: World): Promise<void> {
  for (let turn = 0; state.askedCount < 2; turn++) {
    assert.ok(turn < 1000, 'it never came to wait for room')
    await new Promise<void>((resolve) => systemScheduler.nextTurn(resolve))
  }
}

test('what waits for room when the log closes is told, and nobody goes on asking', async () => {
  const world = createWorld()
  const told = [appendTo(world, 0n, BATCH_KIND.external, 4096), appendTo(world, 1n, BATCH_KIND.data, 64)]
  await untilWaiting(world)
  world.state.isClosed = true
  assert.deepEqual(await Promise.all(told), ['EDGE_SHUTTING_DOWN', 'EDGE_SHUTTING_DOWN'])
  await world.large.settled()
  assert.deepEqual(world.takenBack, [0n])
  assert.equal(world.large.holds(world.partition, undefined), false)
})

test('the file of a large batch that is given up does not stay on the disk', async () => {
  const world = createWorld()
  const told = appendTo(world, 0n, BATCH_KIND.external, 4096)
  await untilWaiting(world)
  assert.equal(world.paths.size, 1)
  world.state.refusal = new EdgeError('EDGE_APPEND_FAILED', 'the disk refuses')
  assert.equal(await told, 'EDGE_APPEND_FAILED')
  await world.large.settled()
  assert.deepEqual([...world.paths], [])
})

test('of a large batch that a purge has passed meanwhile the file goes, and the sender is told that it is kept', async () => {
  const world = createWorld()
  const told = [0n, 1n].map((offset) => appendTo(world, offset, BATCH_KIND.external, 4096))
  await untilWaiting(world)
  world.partition.logStartOffset = 1n
  world.state.hasRoom = true
  assert.deepEqual(await Promise.all(told), ['none', 'none'])
  await world.large.settled()
  assert.deepEqual(world.externals, [1n])
  assert.equal(world.paths.size, 1)
})

test('batches without bytes that wait behind a large one are bounded as well', async () => {
  const { state, large, partition } = createWorld()
  const fields = {
    count: 0,
    baseOffset: 0n,
    appendTimeUs: 1n,
    baseOriginUs: 1n,
    key: 0,
    kind: BATCH_KIND.sequence,
    flags: 0,
  }
  let count = 0
  for (; large.hasRoom(0); count++) {
    assert.ok(count < 10_000, 'no bound')
    large.append(
      count === 0 ? partition : undefined,
      new PendingBatch({} as BatchOwner, fields, 0n, null),
      new Uint8Array(0),
      TAG,
    )
  }
  assert.equal(large.holds(undefined, TAG), true)
  assert.equal(large.holds(undefined, { ...TAG, device: 2 }), false)
  assert.equal(large.holds(partition, undefined), true)
  state.isClosed = true
  await large.settled()
})
