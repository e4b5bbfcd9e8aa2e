import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { EdgeError } from '../../../src/errors.ts'
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
function underLoad({ fullFileCount = MANY, unlink }: { fullFileCount?: number; unlink?: () => never } = {}) {
  let repackedCount = 0
  const events: string[] = []
  const file = { state: 'sealed' } as JournalFile
  const files = {
    all: [file],
    active: file,
    spareCount: 1,
    prepareFree: async () => {},
    repackable: () => (repackedCount < fullFileCount ? [file] : []),
  }
  const { fileSystem } = new SimDisk(new SeededRandom(1), 10_000_000).mount({
    later: (_kind, task) => setImmediate(task),
  })
  const maintenance = new Maintenance({
    fileSystem: unlink === undefined ? fileSystem : Object.assign(fileSystem, { unlink }),
    clock: systemClock,
    scheduler: systemScheduler,
    files: files as unknown as JournalFiles,
    fileCount: 1,
    fileSize: 4096,
    retryMs: 1000,
    repackAfterUs: 3_600_000_000,
    report: ({ event }) => void events.push(event),
    async repack() {
      repackedCount++
      await new Promise((resolve) => setImmediate(resolve))
      return []
    },
    checkpoint: () => {},
    journal: { hasUnsynced: false, fileReady: () => {} } as unknown as Journal,
    changed: () => {},
    written() {},
    isHoldIgnored: false,
  })
  return { maintenance, events, repackedCount: () => repackedCount }
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

test('a reserve that cannot be made is told by its name, once, and holds nothing up', async () => {
  const { maintenance, events, repackedCount } = underLoad({
    fullFileCount: 1,
    unlink() {
      throw new EdgeError('EDGE_IO', 'EISDIR on reserve-drops')
    },
  })
  for (let kick = 0; kick < 2; kick++) {
    maintenance.kick()
    while (maintenance.isBusy) await new Promise((resolve) => setImmediate(resolve))
  }
  await maintenance.close()
  assert.equal(repackedCount(), 1)
  assert.deepEqual(events, ['log.reserve.failed'])
})
