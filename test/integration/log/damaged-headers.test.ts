/** Headers of files that read as something else, or not at all: what their page held is lost and told, all else reads. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { EdgeError } from '../../../src/errors.ts'
import {
  type EncryptionSettings,
  LOG_SETTINGS,
  type Log,
  type LogSettings,
  openInspection,
  openLog,
} from '../../../src/log/index.ts'
import type { FileSystem, LogFile } from '../../../src/log/io/file-system.ts'
import { headerCopyAt } from '../../../src/log/io/journal-header.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { PLAIN, SEALED } from '../../support/encryption.ts'
import { eventually } from '../../support/eventually.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { append, batchesOf, onlyPartition, range, readAll, readTried } from '../../support/partition-steps.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, journal_files: 3, append_retry: 20 }
const KINDS = [
  ['plain', PLAIN],
  ['sealed', SEALED],
] as const
const PAGE = 4096
/** Enough for several runs of one segment, with some left in the journal. */
const COUNT = 2500

interface Store {
  readonly path: string
  readonly encryption: EncryptionSettings
  readonly settings?: LogSettings
}

const open = ({ path, encryption, settings = SETTINGS }: Store, fileSystem?: FileSystem): Promise<Log> =>
  openLog({
    path,
    clock: systemClock,
    logger: silentLogger,
    settings,
    encryption,
    ...(fileSystem === undefined ? {} : { fileSystem }),
  })

/** As a process leaves it that was killed after all acks. */
async function killedStore(
  context: TestContext,
  encryption: EncryptionSettings,
  settings: LogSettings = SETTINGS,
): Promise<Store> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-damaged-headers-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const living = { path: join(folder, 'living'), encryption, settings }
  const log = await open(living)
  const stream = await log.catalog.createStream('plant')
  await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options: topicOptions('durable') })
  const partition = onlyPartition(log)
  for (let from = 0; from < COUNT; from += 100) await append(log, partition, batchesOf(from, from + 100, 250))
  await eventually(() => log.stats().journalUsedBytes < SETTINGS.journal_file_size)
  const path = join(folder, 'killed')
  killedCopy(living.path, path)
  await log.close()
  return { path, encryption, settings }
}

const filesOf = ({ path }: Store, pattern: string): string[] =>
  fs.globSync(pattern, { cwd: path }).map((name) => join(path, name))

function garble(file: string, position: number, size = PAGE): void {
  const bytes = fs.readFileSync(file)
  fs.writeFileSync(file, bytes.fill(0xa5, position, position + size))
}

/** The disk does not give the first page of any file whose path ends so. */
function withoutFirstPage(inner: FileSystem, isHit: (path: string) => boolean): FileSystem {
  return {
    ...inner,
    open: (path, mode) => (isHit(path) ? unreadableAtFirst(path, inner.open(path, mode)) : inner.open(path, mode)),
  }
}

function unreadableAtFirst(path: string, inner: LogFile): LogFile {
  const checked = (position: number, size: number): void => {
    if (size > 0 && position < PAGE)
      throw new EdgeError('EDGE_IO', `EIO on ${path}`, { details: { code: 'EIO', path } })
  }
  return {
    size: () => inner.size(),
    read(targetView, position) {
      checked(position, targetView.length)
      return inner.read(targetView, position)
    },
    readAtHand: () => false,
    async readLater(target, position) {
      checked(position, target.length)
      return inner.readLater(target, position)
    },
    write: (bytesView, position) => inner.write(bytesView, position),
    datasync: (done) => inner.datasync(done),
    truncate: (size) => inner.truncate(size),
    close: () => inner.close(),
  }
}

const findingsOf = (log: Log): string[] => log.findings().map(({ level, event, text }) => `${level} ${event} ${text}`)

function checkFindings({ path, encryption }: Store): string[] {
  using inspection = openInspection({ path, encryption })
  return inspection.findings.map(({ level, path: at, text }) => `${level} ${at} ${text}`)
}

/** Reads all, and that all but the first is there, and told what is not. @returns how many are missing. */
async function assertLostFirst(log: Log): Promise<number> {
  const numbers = await readTried(onlyPartition(log))
  const lostCount = numbers[0] ?? COUNT
  assert.deepEqual(numbers, range(lostCount, COUNT))
  assert.ok(lostCount > 0 && lostCount < COUNT / 2, `${lostCount} are lost`)
  const told = findingsOf(log)
  const text = new RegExp(`^error log\\.hole\\.found offsets 0 to ${lostCount - 1} .* cannot be read`)
  assert.ok(
    told.some((each) => text.test(each)),
    told.join('\n'),
  )
  return lostCount
}

const SEGMENT_TOLD = /^error log\.header\.unreadable streams\/0\/topics\/0\/\d+\/0+\.1\.seg begins with something else/

/** A bit of each header, another one each time. @returns how many there were. */
function rotHeaders(file: string, isHeaderAt: (bytes: Buffer, position: number) => number): number {
  const bytes = fs.readFileSync(file)
  let count = 0
  for (let position = 0; position + PAGE <= bytes.length; position += 8) {
    const size = isHeaderAt(bytes, position)
    if (size === 0) continue
    const at = position + ((count * 7) % size)
    bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (count % 8)), at)
    count++
  }
  fs.writeFileSync(file, bytes)
  return count
}

const hasText = (bytes: Buffer, at: number, text: string): boolean =>
  bytes.toString('latin1', at, at + text.length) === text

for (const [kind, encryption] of KINDS) {
  test(`a flipped bit in each header of a ${kind} store costs nothing, and is told`, async (context) => {
    const store = await killedStore(context, encryption)
    const segments = filesOf(store, 'streams/**/*.seg')
    const journal = filesOf(store, 'journal/*')
    for (const file of segments) {
      const isBlockAt = (bytes: Buffer, at: number): boolean =>
        hasText(bytes, at + 4, 'EDGB') && bytes.readUInt32LE(at + 76) === at
      const count = rotHeaders(file, (bytes, at) => (at === 0 ? 64 : isBlockAt(bytes, at) ? 80 : 0))
      assert.ok(count > 3, 'there are blocks')
    }
    for (const file of journal)
      rotHeaders(file, (bytes, at) => (at === 0 ? 64 : at % 512 === 0 && hasText(bytes, at + 4, 'EDGG') ? 96 : 0))
    {
      using inspection = openInspection(store)
      const [partition] = inspection.topics[0]?.partitions ?? []
      assert.ok(partition)
      const walk = inspection.read(partition)
      for await (const _batch of walk.batches()) assert.ok(walk.counts.messageCount > 0)
      assert.equal(walk.counts.messageCount, COUNT)
      assert.ok(inspection.findings.length > segments.length + journal.length)
      for (const { level, text } of inspection.findings) assert.match(`${level} ${text}`, /^warn .*has a flipped bit/)
    }
    await using log = await open(store)
    assert.deepEqual(await readAll(onlyPartition(log)), range(0, COUNT))
    const others = segments.length + journal.length - 1
    const told = `warn log.header.mended journal/0, and ${others} more files, has a flipped bit in a header, which is put right at each read: nothing is lost`
    assert.deepEqual(findingsOf(log), [told])
    await append(log, onlyPartition(log), batchesOf(COUNT, 2 * COUNT, 250))
    await eventually(() => log.stats().journalUsedBytes < SETTINGS.journal_file_size)
    assert.deepEqual(await readAll(onlyPartition(log)), range(0, 2 * COUNT))
  })

  test(`garbage in the first page of a ${kind} segment costs the blocks that begin there, also at later starts`, async (context) => {
    const store = await killedStore(context, encryption)
    const [file, ...others] = filesOf(store, 'streams/**/*.seg')
    assert.ok(file !== undefined && others.length === 0, 'there is one segment')
    garble(file, 0)
    for (let start = 0; start < 2; start++) {
      await using log = await open(store)
      const first = findingsOf(log)
      assert.ok(
        first.some((each) => SEGMENT_TOLD.test(each)),
        first.join('\n'),
      )
      await assertLostFirst(log)
    }
    {
      using inspection = openInspection(store)
      const [partition] = inspection.topics[0]?.partitions ?? []
      assert.ok(partition)
      const walk = inspection.read(partition)
      for await (const _batch of walk.batches()) assert.ok(walk.counts.messageCount > 0)
      assert.ok(walk.counts.messageCount > COUNT / 2)
      assert.ok(inspection.findings.some(({ path, text }) => path.endsWith('.seg') && /from its copy/.test(text)))
    }
  })

  test(`a first page that the disk does not give costs a ${kind} segment no more than that`, async (context) => {
    const store = await killedStore(context, encryption)
    const fileSystem = withoutFirstPage(createNodeFileSystem(store.path), (path) => path.endsWith('.seg'))
    await using log = await open(store, fileSystem)
    await assertLostFirst(log)
  })

  test(`the first pages of all ${kind} journal files may be garbage: nothing is lost, and they are made anew`, async (context) => {
    const store = await killedStore(context, encryption)
    for (const file of filesOf(store, 'journal/*')) garble(file, 0)
    assert.ok(
      checkFindings(store).some((text) => /^warn journal\/\d .* from its copy: nothing of it is lost/.test(text)),
    )
    {
      await using log = await open(store)
      assert.deepEqual(await readAll(onlyPartition(log)), range(0, COUNT))
      const told = findingsOf(log)
      assert.equal(told.filter((text) => /^warn log\.header\.unreadable journal\/\d begins/.test(text)).length, 3)
      assert.deepEqual(
        told.filter((text) => /^error/.test(text)),
        [],
      )
    }
    await (await open(store)).close()
    await using log = await open(store)
    assert.deepEqual(findingsOf(log), [])
    assert.deepEqual(await readAll(onlyPartition(log)), range(0, COUNT))
  })

  test(`first pages that the disk does not give cost a ${kind} journal nothing`, async (context) => {
    const store = await killedStore(context, encryption)
    const isOld = new Set(fs.readdirSync(join(store.path, 'journal')).map((name) => `journal/${name}`))
    const fileSystem = withoutFirstPage(createNodeFileSystem(store.path), (path) => isOld.has(path))
    await using log = await open(store, fileSystem)
    assert.deepEqual(await readAll(onlyPartition(log)), range(0, COUNT))
  })
}

for (const [kind, encryption] of KINDS) {
  test(`of many ${kind} segments a start opens the last one, and what their headers are like is told when they are read`, async (context) => {
    const store = await killedStore(context, encryption, { ...SETTINGS, segment_size: 8 * 1024 })
    const names = filesOf(store, 'streams/**/*.seg').sort()
    const [mended = '', copied = '', unread = ''] = names
    assert.ok(names.length > 3, `there are ${names.length} segments`)
    const bytes = fs.readFileSync(mended)
    fs.writeFileSync(mended, bytes.fill(bytes.readUInt8(40) ^ 1, 40, 41))
    garble(copied, 0)
    const opened: string[] = []
    const nodeFileSystem = createNodeFileSystem(store.path)
    const unreadable = withoutFirstPage(nodeFileSystem, (path) => unread.endsWith(path))
    const watched: FileSystem = {
      ...unreadable,
      open(path, mode) {
        if (path.endsWith('.seg')) opened.push(join(store.path, path))
        return unreadable.open(path, mode)
      },
    }
    await using log = await open(store, watched)
    assert.deepEqual(new Set(opened), new Set(names.slice(-1)))
    assert.deepEqual(findingsOf(log), [])
    const numbers = await readTried(onlyPartition(log))
    assert.ok(numbers[0] === 0 && numbers.at(-1) === COUNT - 1)
    const told = findingsOf(log).map((text) => text.replace(/streams\/0\/topics\/0\/\d+\//, ''))
    assert.ok(told.some((text) => text.startsWith(`warn log.header.mended ${basename(mended)} has a flipped bit`)))
    assert.ok(told.some((text) => text.startsWith(`error log.header.unreadable ${basename(copied)} begins with`)))
  })
}

test('a journal file whose header and copy are garbage counts as empty, as it did without a copy', async (context) => {
  const store = await killedStore(context, PLAIN)
  for (const file of filesOf(store, 'journal/*')) {
    garble(file, 0)
    garble(file, headerCopyAt(SETTINGS.journal_file_size))
  }
  await using log = await open(store)
  const numbers = await readAll(onlyPartition(log))
  assert.deepEqual(numbers, range(0, numbers.length))
  assert.ok(findingsOf(log).some((text) => /^warn log\.journal\.file_missing .* has no readable header/.test(text)))
})
