import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { Journal } from '../../../src/log/io/journal.ts'
import type { JournalFile } from '../../../src/log/io/journal-file.ts'
import type { JournalFiles } from '../../../src/log/io/journal-files.ts'
import { Maintenance } from '../../../src/log/maintenance.ts'
import { systemScheduler } from '../../../src/log/scheduler.ts'
import { SeededRandom } from '../../support/seeded-random.ts'
import { SimDisk } from '../../support/sim-disk.ts'

/** More than any test repacks. */
const MANY = 1000

/** A log under such load that there is always another full file. */
function underLoad(): { maintenance: Maintenance; repackedCount: () => number } {
  let repackedCount = 0
  const file = { state: 'sealed' } as JournalFile
  const files = {
    all: [file],
    active: file,
    spareCount: 1,
    prepareFree: async () => {},
    repackable: () => (repackedCount < MANY ? [file] : []),
  }
  const { fileSystem } = new SimDisk(new SeededRandom(1), 1_000_000).mount({
    later: (_kind, task) => setImmediate(task),
  })
  const maintenance = new Maintenance({
    fileSystem,
    clock: systemClock,
    scheduler: systemScheduler,
    files: files as unknown as JournalFiles,
    fileCount: 1,
    fileSize: 4096,
    retryMs: 1000,
    repackAfterUs: 3_600_000_000,
    report: () => {},
    async repack() {
      repackedCount++
      await new Promise((resolve) => setImmediate(resolve))
      return []
    },
    checkpoint: () => {},
    journal: { hasUnsynced: false, fileReady: () => {} } as unknown as Journal,
    changed: () => {},
    isHoldIgnored: false,
  })
  return { maintenance, repackedCount: () => repackedCount }
}

test('a task waits for one file at most, however many are full, and repacking goes on behind it', async () => {
  const { maintenance, repackedCount } = underLoad()
  maintenance.kick()
  while (repackedCount() < 3) await new Promise((resolve) => setImmediate(resolve))
  const before = repackedCount()
  const during = await maintenance.exclusive(async () => repackedCount())
  assert.ok(during - before <= 1, `${during - before} files were repacked first`)
  while (repackedCount() < during + 3) await new Promise((resolve) => setImmediate(resolve))
  await maintenance.close()
})
