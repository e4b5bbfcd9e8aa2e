/** The journal at the end of a file, on a disk whose syncs end when the test says so. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlashBudget } from '../../../../src/log/core/flash-budget.ts'
import { type BatchOwner, PendingBatch } from '../../../../src/log/core/pending-batch.ts'
import { bodyChecksum } from '../../../../src/log/io/checksum.ts'
import { Journal } from '../../../../src/log/io/journal.ts'
import { JournalFiles } from '../../../../src/log/io/journal-files.ts'
import { noKeys } from '../../../../src/log/io/store-keys.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'
import { SimDisk } from '../../../support/sim-disk.ts'

const FILE_SIZE = 256 * 1024
const BUFFER_SIZE = FILE_SIZE / 4
const BODY_SIZE = 8 * 1024

const OWNER: BatchOwner = { written: () => true, keptInMemory() {}, writtenBefore: () => true, synced() {} }

async function createWorld() {
  const syncs: (() => void)[] = []
  const turns: (() => void)[] = []
  const { fileSystem } = new SimDisk(new SeededRandom(1), 100 * FILE_SIZE).mount({
    later: (_kind, task) => void syncs.push(task),
  })
  const endSyncs = (): void => {
    for (const end of syncs.splice(0)) end()
  }
  let salt = 1n
  let nowUs = 0
  const files = new JournalFiles(
    {
      fileSystem,
      storeIdBytes: new Uint8Array(16),
      fileSize: FILE_SIZE,
      keys: noKeys,
      randomU64: () => salt++,
      keyFloor: () => 1,
      nextSequence: () => journal.nextSequence,
      recycling() {},
      changed() {},
      written() {},
    },
    [],
  )
  const journal: Journal = new Journal({
    files,
    start: { ordinal: 1, boot: 1, bootHash: 0, last: { sequence: 0, crc: 0, ordinal: 0 }, again: [] },
    bufferSize: BUFFER_SIZE,
    isSealing: false,
    commit: {
      lingerMinUs: 0,
      lingerShare: 0,
      flushIntervalUs: 1_000_000,
      flushSizeBytes: BODY_SIZE,
      urgentBytes: BUFFER_SIZE / 2,
    },
    budget: new FlashBudget(0, 0),
    retryMs: 1000,
    clock: { wallUs: () => 1n, monotonicUs: () => (nowUs += 5000) },
    scheduler: { nextTurn: (task) => void turns.push(task), after: () => () => {} },
    checksum: bodyChecksum,
    randomU64: () => salt++,
    events: {
      fileSealed() {},
      fileWanted() {},
      settled() {},
      startRecorded() {},
      failed: (error) => assert.fail(error),
      writableAgain() {},
    },
  })
  fileSystem.makeDirectory('journal')
  for (let count = 0; count < 2; count++) {
    const made = files.add()
    while (files.all.length <= count) {
      endSyncs()
      await Promise.resolve()
    }
    await made
  }
  const prepared = files.prepareFree()
  while (files.spareCount < 2) {
    endSyncs()
    await Promise.resolve()
  }
  await prepared
  let offset = 0n
  const append = (): void => {
    const fields = { count: 1, baseOffset: offset, appendTimeUs: 1n, baseOriginUs: 1n, key: 1, kind: 0, flags: 1 }
    journal.append(new PendingBatch(OWNER, fields, ++offset, null), true, new Uint8Array(BODY_SIZE))
  }
  const turn = (): void => {
    for (const task of turns.splice(0)) task()
  }
  return { journal, files, turns, syncs, append, turn, endSyncs }
}

test('a file that is full while a sync runs is left when that ends, and not asked for in every turn until then', async () => {
  const { files, journal, turns, syncs, append, turn, endSyncs } = await createWorld()
  append()
  turn()
  const first = files.active
  assert.ok(first)
  const hasPlace = (): boolean => first.position + 2 * BODY_SIZE < first.groupsEnd
  for (let count = 0; hasPlace(); count++) {
    assert.ok(count < 100, 'the file never fills')
    if (journal.hasRoom(BODY_SIZE)) append()
    turn()
    // But the last one, which runs on.
    if (hasPlace()) endSyncs()
  }
  append()
  turn()
  if (syncs.length === 0) turn()
  assert.equal(syncs.length, 1, 'a sync runs')
  while (journal.hasRoom(BODY_SIZE)) {
    append()
    turn()
  }
  turn()
  assert.equal(turns.length, 0, 'no turn is asked for while the sync runs')
  for (let count = 0; files.active === first; count++) {
    assert.ok(count < 10, 'the file is never left')
    endSyncs()
    turn()
  }
  assert.equal(first.state, 'sealed')
})

test('a file that is left for its age ends where its groups do', async () => {
  const { files, journal, append, turn, endSyncs } = await createWorld()
  append()
  turn()
  const first = files.active
  assert.ok(first)
  endSyncs()
  turn()
  const { position } = first
  journal.leaveFile()
  turn()
  endSyncs()
  assert.equal(first.state, 'sealed')
  assert.ok(first.position < 4 * BODY_SIZE, `${first.position}, ${position} before`)
  append()
  turn()
  assert.notEqual(files.active, first)
})

test('while the mark of a clean stop is synced nothing is taken any more', async () => {
  const { journal, syncs, endSyncs } = await createWorld()
  assert.equal(journal.hasRoom(BODY_SIZE), true)
  const closed = journal.close(true)
  assert.equal(syncs.length, 1, 'the mark is synced')
  assert.equal(journal.hasRoom(BODY_SIZE), false)
  assert.equal(journal.isClosed, true)
  endSyncs()
  await closed
})
