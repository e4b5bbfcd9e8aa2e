/** A journal whose file size was lowered: the file it goes on in is larger than all that follow, and syncs fail meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlashBudget } from '../../../../src/log/core/flash-budget.ts'
import { type BatchOwner, PendingBatch } from '../../../../src/log/core/pending-batch.ts'
import { bodyChecksum } from '../../../../src/log/io/checksum.ts'
import { Journal } from '../../../../src/log/io/journal.ts'
import { createZeroed, JournalFile, journalPath } from '../../../../src/log/io/journal-file.ts'
import { JournalFiles } from '../../../../src/log/io/journal-files.ts'
import { noKeys } from '../../../../src/log/io/store-keys.ts'
import { journalBufferSize } from '../../../../src/log/journal-start.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'
import { SimDisk } from '../../../support/sim-disk.ts'

const FILE_SIZE = 256 * 1024
const LARGER_FILE_SIZE = 16 * FILE_SIZE
const BUFFER_SIZE = journalBufferSize(FILE_SIZE)
const SEEDS = 20
const STEPS = 400

const OWNER: BatchOwner = { written: () => true, keptInMemory() {}, writtenBefore: () => true, synced() {} }

/** Runs until the end of its steps, or an assertion. @returns failures, and the most that was written again at once. */
async function runJournal(seed: number): Promise<{ failureCount: number; longestAgain: number }> {
  const random = new SeededRandom(seed)
  const events: (() => void)[] = []
  const turns: (() => void)[] = []
  const disk = new SimDisk(random, 1000 * FILE_SIZE)
  const { fileSystem } = disk.mount({ later: (_kind, task) => void events.push(task) })
  let failureCount = 0
  let longestAgain = 0
  let salt = 1n
  let nowUs = 0
  const settled = async (work: Promise<unknown>): Promise<void> => {
    let isDone = false
    void work
      .catch(() => {})
      .finally(() => {
        isDone = true
      })
    while (!isDone) {
      for (const end of events.splice(0)) end()
      await Promise.resolve()
    }
  }
  const after = (_milliseconds: number, task: () => void): (() => void) => {
    turns.push(task)
    return () => {}
  }
  fileSystem.makeDirectory('journal')
  const handles: Promise<JournalFile> = createZeroed(fileSystem, journalPath(0), LARGER_FILE_SIZE).then(
    (handle) => new JournalFile(0, handle, { size: LARGER_FILE_SIZE, generation: 1, salt: 1n }),
  )
  await settled(handles)
  const active = await handles
  active.state = 'active'
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
    [active],
  )
  const journal: Journal = new Journal({
    files,
    start: { ordinal: 1, boot: 1, bootHash: 0, last: { sequence: 0, crc: 0, ordinal: 0 }, again: [] },
    bufferSize: BUFFER_SIZE,
    isSealing: false,
    commit: {
      lingerMinUs: 0,
      lingerShare: 0,
      flushIntervalUs: seed % 2 === 0 ? 20_000 : 60_000_000,
      // In every second world no sync is due before the buffers are full.
      flushSizeBytes: seed % 2 === 0 ? BUFFER_SIZE / 2 : 100 * BUFFER_SIZE,
      urgentBytes: BUFFER_SIZE / 2,
    },
    budget: new FlashBudget(0, 0),
    retryMs: 1000,
    clock: { wallUs: () => 1n, monotonicUs: () => (nowUs += 5000) },
    scheduler: { nextTurn: (task) => void turns.push(task), after },
    checksum: bodyChecksum,
    randomU64: () => salt++,
    events: {
      fileSealed() {},
      fileWanted() {},
      settled() {},
      startRecorded() {},
      failed() {
        failureCount++
      },
      writableAgain() {},
    },
  })
  let offset = 0n
  for (let step = 0; step < STEPS; step++) {
    const size = 1 + random.below(journal.maxBodySize - 1)
    if (random.chance(0.6) && journal.hasRoom(size)) {
      const fields = { count: 1, baseOffset: offset, appendTimeUs: 1n, baseOriginUs: 1n, key: 1, kind: 0, flags: 1 }
      journal.append(
        new PendingBatch(OWNER, fields, ++offset, null),
        seed % 2 === 1 || random.chance(0.5),
        new Uint8Array(size),
      )
    }
    if (random.chance(0.7)) for (const task of turns.splice(0)) task()
    longestAgain = Math.max(longestAgain, journal.memory?.bytes.length ?? 0)
    // The log's own syncs fail in one of two, those that make files never.
    if (random.chance(0.5)) {
      disk.syncFailureRate = 0.5
      for (const end of events.splice(0)) end()
      disk.syncFailureRate = 0
    }
    if (!random.chance(0.2)) continue
    for (const file of files.repackable()) file.state = 'free'
    await settled(files.prepareFree())
    while (files.spareCount < 2) {
      await settled(files.add())
      await settled(files.prepareFree())
    }
    journal.fileReady()
  }
  return { failureCount, longestAgain }
}

test('what is written again fits the smaller files, however many syncs fail', async () => {
  let failures = 0
  let longest = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { failureCount, longestAgain } = await runJournal(seed)
    failures += failureCount
    longest = Math.max(longest, longestAgain)
  }
  assert.ok(failures > 10 * SEEDS, `${failures} syncs failed`)
  assert.ok(longest > 2 * BUFFER_SIZE, `${longest} bytes were written again at once`)
})
