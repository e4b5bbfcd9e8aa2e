/** Pages that the device does not give: what lies in them is lost, told, and nothing else, at a start and while it runs. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { type EncryptionSettings, LOG_SETTINGS, type Log, type LogSettings, openLog } from '../../../src/log/index.ts'
import { plainCodec } from '../../../src/log/io/block-codec.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { PLAIN, SEALED } from '../../support/encryption.ts'
import { eventually } from '../../support/eventually.ts'
import { FaultyFileSystem } from '../../support/faulty-file-system.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { append, onlyPartition, range, readAll, readTried } from '../../support/partition-steps.ts'
import { recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, journal_files: 3, append_retry: 20 }
const PAGE = 4096
/** A message and the headers of its batch and group: each page holds a part of two messages. */
const RECORD_SIZE = 3000
/** In the first journal file, with room left. */
const EARLY = 30
/** A page may hold the end of a block and the header of the next. */
const MOST_IN_A_PAGE = 44
/** Opens a store of which these pages are bad. */
type Bad = Readonly<Record<string, readonly number[]>>

const FORMS: readonly (readonly [string, EncryptionSettings])[] = [
  ['plain', PLAIN],
  ['sealed', SEALED],
]

function folder(context: TestContext): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'edge-unreadable-pages-'))
  context.after(() => fs.rmSync(path, { recursive: true, force: true }))
  return path
}

async function open(
  context: TestContext,
  path: string,
  encryption: EncryptionSettings,
  { bad = {}, settings = SETTINGS }: { readonly bad?: Bad; readonly settings?: LogSettings } = {},
) {
  const disk = new FaultyFileSystem(createNodeFileSystem(path))
  for (const [name, pages] of Object.entries(bad)) disk.unreadable.set(name, new Set(pages))
  const options = { path, clock: systemClock, logger: silentLogger, settings, codec: plainCodec }
  const log = await openLog({ ...options, encryption, fileSystem: disk })
  context.after(() => log.close())
  return { disk, log }
}

async function fill(log: Log, from: number, end: number): Promise<void> {
  for (let number = from; number < end; number++)
    await append(log, onlyPartition(log), [recordsOf([number], RECORD_SIZE)])
}

interface Store {
  readonly path: string
  readonly disk: FaultyFileSystem
  readonly log: Log
}

/** A topic with so many messages, until `use` has ended. */
async function withStore(
  context: TestContext,
  encryption: EncryptionSettings,
  use: (store: Store) => Promise<void>,
  settings: LogSettings = SETTINGS,
): Promise<void> {
  const path = join(folder(context), 'data')
  fs.mkdirSync(path)
  const { log, disk } = await open(context, path, encryption, { settings })
  try {
    const stream = await log.catalog.createStream('plant')
    const options = topicOptions('durable', { segmentSizeBytes: 64 * 1024 })
    await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options })
    await fill(log, 0, EARLY)
    await use({ path, log, disk })
  } finally {
    await log.close()
  }
}

const eventsOf = (log: Log): string[] => log.findings().map(({ event }) => event)
const pagesOf = (path: string, name: string): number[] => range(0, Math.ceil(fs.statSync(join(path, name)).size / PAGE))

/** All but a few in a row are there, and what comes next gets an offset that was never given. */
async function assertMissing(log: Log, count: number, mostMissing: number, where: string): Promise<number[]> {
  const partition = onlyPartition(log)
  const found = await readTried(partition)
  const missing = range(0, count).filter((number) => !found.includes(number))
  assert.ok(missing.length <= mostMissing, `${where}: ${missing} are missing`)
  assert.deepEqual(
    found,
    range(0, count).filter((number) => !missing.includes(number)),
    where,
  )
  const next = partition.nextOffset
  assert.ok(next >= BigInt(count), `${where}: goes on at ${next}`)
  await append(log, partition, [recordsOf([count], RECORD_SIZE)])
  assert.deepEqual((await readAll(partition, next)).at(-1), count)
  if (missing.length > 0) assert.ok(log.findings().length > 0, `${where}: ${missing} are missing, and nobody said so`)
  return missing
}

/** Those that hold something, some of the others, and the last one. */
const tried = (pages: readonly number[], used: number): number[] =>
  pages.filter((page) => page < used || page % 7 === 0 || page === pages.length - 1)

for (const [form, encryption] of FORMS) {
  test(`${form}: any page of a journal file that cannot be read costs the messages in it, at a start`, async (context) => {
    await withStore(context, encryption, async ({ path }) => {
      let lostCount = 0
      for (const page of tried(pagesOf(path, 'journal/0'), EARLY + 3)) {
        const copy = killedCopy(path, join(path, '..', 'killed'))
        const { log } = await open(context, copy, encryption, { bad: { 'journal/0': [page] } })
        lostCount += (await assertMissing(log, EARLY, 2, `page ${page}`)).length
        await log.close()
      }
      assert.ok(lostCount >= EARLY, `only ${lostCount} were lost: the pages were not those of the messages`)
    })
  })

  test(`${form}: with both headers of a journal file unreadable a start goes on above all that it may have held`, async (context) => {
    await withStore(context, encryption, async ({ path }) => {
      const copy = killedCopy(path, join(path, '..', 'killed'))
      const { log } = await open(context, copy, encryption, { bad: { 'journal/0': [0, 63] } })
      await assertMissing(log, EARLY, EARLY, 'no header')
      assert.ok(eventsOf(log).includes('log.journal.file_missing'))
      await log.close()
    })
  })

  test(`${form}: pages of the journal that go bad while it runs cost what lies in them, in polls and in a repack`, async (context) => {
    await withStore(context, encryption, async ({ log, disk }) => {
      disk.unreadable.set('journal/0', new Set([5, 20]))
      const partition = onlyPartition(log)
      const missing = await assertMissing(log, EARLY, 4, 'polled')
      assert.ok(missing.length > 0)
      assert.ok(eventsOf(log).includes('log.hole.found'))
      await partition.offsetAt(1n)
      await fill(log, EARLY + 1, 4 * EARLY)
      await eventually(() => partition.segmentCount > 1, 'the journal goes on into segments')
      await assertMissing(log, 4 * EARLY, missing.length, 'repacked')
    })
  })

  test(`${form}: pages of the journal that are not given for a while cost nothing`, async (context) => {
    // Time to see that one run failed, before the last one.
    const settings = { ...SETTINGS, append_retry: 1000 }
    const use = async ({ path, log, disk }: Store): Promise<void> => {
      disk.unreadable.set('journal/0', new Set(pagesOf(path, 'journal/0')))
      await fill(log, EARLY, 4 * EARLY)
      await eventually(() => eventsOf(log).includes('log.repack.failed'), 'it is told')
      disk.unreadable.clear()
      await eventually(() => log.stats().segmentCount > 0, 'repacked')
      const partition = onlyPartition(log)
      assert.deepEqual(await readAll(partition, partition.logStartOffset), range(0, 4 * EARLY))
    }
    await withStore(context, encryption, use, settings)
  })

  test(`${form}: segments that are not given for a while cost nothing: a read fails, and is worth another try`, async (context) => {
    await withStore(context, encryption, async ({ path, log }) => {
      const count = 5 * EARLY
      await fill(log, EARLY, count)
      await eventually(() => onlyPartition(log).segmentCount > 2, 'some segments')
      const segments = `streams/0/topics/0/${onlyPartition(log).key}`
      await log.close()
      const names = fs.readdirSync(join(path, segments)).map((name) => `${segments}/${name}`)
      const settings = { ...SETTINGS, append_retry: 5000, decoded_blocks: 1 }
      const { log: again, disk } = await open(context, path, encryption, { settings })
      const partition = onlyPartition(again)
      const all = range(0, count)
      // With nothing of a file in memory, then with where its blocks lie.
      for (const from of [0, 1]) {
        for (const name of names) disk.unreadable.set(name, new Set(pagesOf(path, name).slice(from)))
        await assert.rejects(readAll(partition, partition.logStartOffset), { code: 'EDGE_IO' })
        disk.unreadable.clear()
        assert.deepEqual(await readAll(partition, partition.logStartOffset), all)
      }
      assert.deepEqual(eventsOf(again), [])
    })
  })

  test(`${form}: pages of the journal that a poll is not given for a while cost nothing`, async (context) => {
    const settings = { ...SETTINGS, append_retry: 5000 }
    const use = async ({ path, log, disk }: Store): Promise<void> => {
      const partition = onlyPartition(log)
      disk.unreadable.set('journal/0', new Set(pagesOf(path, 'journal/0')))
      await assert.rejects(readAll(partition), { code: 'EDGE_IO' })
      disk.unreadable.clear()
      assert.deepEqual(await readAll(partition), range(0, EARLY))
      assert.deepEqual(eventsOf(log), [])
    }
    await withStore(context, encryption, use, settings)
  })

  test(`${form}: any page of the last segment that cannot be read costs the messages in it, at a start and later`, async (context) => {
    await withStore(context, encryption, async ({ path, log }) => {
      const partition = onlyPartition(log)
      const count = 5 * EARLY
      await fill(log, EARLY, count)
      await eventually(() => partition.segmentCount > 2, 'some segments')
      await log.close()
      const segments = `streams/0/topics/0/${partition.key}`
      const [last] = fs.readdirSync(join(path, segments)).sort().reverse()
      const name = `${segments}/${last}`
      let lostCount = 0
      for (const page of pagesOf(path, name)) {
        const copy = killedCopy(path, join(path, '..', 'stopped'))
        const { log: again } = await open(context, copy, encryption, { bad: { [name]: [page] } })
        lostCount += (await assertMissing(again, count, MOST_IN_A_PAGE, `page ${page}`)).length
        await again.close()
      }
      assert.ok(lostCount > 0)
    })
  })
}
