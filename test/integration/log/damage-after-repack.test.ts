/** A process that is killed when segments hold a journal file, and before it is recycled: what rots in the file then is not missed. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { EdgeError } from '../../../src/errors.ts'
import { type EncryptionSettings, LOG_SETTINGS, type Log, openInspection, openLog } from '../../../src/log/index.ts'
import type { FileSystem, LogFile } from '../../../src/log/io/file-system.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { PLAIN, SEALED } from '../../support/encryption.ts'
import { eventually } from '../../support/eventually.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { append, batchesOf, onlyPartition, range, readAll } from '../../support/partition-steps.ts'
import { idsOf, recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = {
  ...defaultsOf(LOG_SETTINGS),
  journal_file_size: 256 * 1024,
  journal_files: 4,
  segment_size: 32 * 1024,
  append_retry: 20,
}
const PAYLOAD_SIZE = 250
/** The first file is full with fewer. */
const COUNT = 1100
const LARGE_AT = 400

const open = (path: string, encryption: EncryptionSettings, fileSystem?: FileSystem): Promise<Log> =>
  openLog({
    path,
    clock: systemClock,
    logger: silentLogger,
    settings: SETTINGS,
    encryption,
    ...(fileSystem === undefined ? {} : { fileSystem }),
  })

/** No header of a journal file can be written while it says so. */
function withoutPreparing(inner: FileSystem, faults: { isPreparing: boolean }): FileSystem {
  const checked = (path: string, file: LogFile): LogFile => ({
    size: () => file.size(),
    read: (targetView, position) => file.read(targetView, position),
    readAtHand: () => false,
    readLater: (target, position) => file.readLater(target, position),
    write(bytesView, position) {
      if (!faults.isPreparing && position === 0) throw new EdgeError('EDGE_IO', `EIO on ${path}`)
      file.write(bytesView, position)
    },
    datasync: (done) => file.datasync(done),
    truncate: (size) => file.truncate(size),
    close: () => file.close(),
  })
  return {
    ...inner,
    open: (path, mode) => {
      const file = inner.open(path, mode)
      return path.startsWith('journal/') ? checked(path, file) : file
    },
  }
}

/** @returns a store whose first journal file was packed and not recycled. */
async function packedStore(context: TestContext, encryption: EncryptionSettings): Promise<string> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-damage-after-repack-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const living = join(folder, 'living')
  fs.mkdirSync(living)
  const faults = { isPreparing: true }
  const log = await open(living, encryption, withoutPreparing(createNodeFileSystem(living), faults))
  const stream = await log.catalog.createStream('plant')
  await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options: topicOptions('durable') })
  const partition = onlyPartition(log)
  await eventually(() => log.stats().journalFileCount === SETTINGS.journal_files)
  faults.isPreparing = false
  for (let from = 0; from < COUNT; from += 50) {
    await append(log, partition, batchesOf(from, from + 50, PAYLOAD_SIZE))
    if (from + 50 === LARGE_AT) await append(log, partition, [recordsOf([LARGE_NUMBER], 600_000)])
  }
  await eventually(() => log.findings().some(({ event }) => event === 'log.repack.failed'))
  const path = join(folder, 'killed')
  killedCopy(living, path)
  faults.isPreparing = true
  await log.close()
  return path
}

const LARGE_NUMBER = 1_000_000
const expectedNumbers = (): number[] => [...range(0, LARGE_AT), LARGE_NUMBER, ...range(LARGE_AT, COUNT)]

/** The one whose first group is the oldest. */
function oldestFile(path: string): string {
  const files = fs.readdirSync(join(path, 'journal')).map((name) => join(path, 'journal', name))
  const sequenceOf = (file: string): bigint => fs.readFileSync(file).readBigUInt64LE(4096 + 40)
  const [oldest] = files.filter((file) => sequenceOf(file) > 0n).sort((a, b) => Number(sequenceOf(a) - sequenceOf(b)))
  return oldest ?? assert.fail('no journal file holds messages')
}

/** Of all groups, in order. */
function groupsIn(bytes: Buffer): number[] {
  const places: number[] = []
  for (let at = 4096; at < bytes.length; at += 512)
    if (bytes.toString('latin1', at + 4, at + 8) === 'EDGG') places.push(at)
  return places
}

function flip(bytes: Buffer, at: number): void {
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
}

const DAMAGES: readonly (readonly [string, (bytes: Buffer) => void])[] = [
  ['the body of the first group', (bytes) => flip(bytes, (groupsIn(bytes)[1] ?? 0) + 200)],
  ['the body of a group in the middle', (bytes) => flip(bytes, (groupsIn(bytes).at(9) ?? 0) + 200)],
  ['the body of the last group', (bytes) => flip(bytes, (groupsIn(bytes).at(-1) ?? 0) + 200)],
  [
    'each third body',
    (bytes) => groupsIn(bytes).forEach((at, index) => void (index % 3 === 1 && flip(bytes, at + 200))),
  ],
  ['all of a group', (bytes) => void bytes.fill(0xa5, groupsIn(bytes).at(9), groupsIn(bytes).at(10))],
  ['all of the last groups', (bytes) => void bytes.fill(0xa5, groupsIn(bytes).at(-4))],
  ['the whole file', (bytes) => void bytes.fill(0xa5)],
]

for (const [kind, encryption] of [
  ['plain', PLAIN],
  ['sealed', SEALED],
] as const) {
  for (const [what, damage] of DAMAGES) {
    test(`${kind}: of a packed journal file ${what} is damaged: segments have it all`, async (context) => {
      const path = await packedStore(context, encryption)
      const file = oldestFile(path)
      const bytes = fs.readFileSync(file)
      damage(bytes)
      fs.writeFileSync(file, bytes)
      {
        await using log = await open(path, encryption)
        assert.deepEqual(await readAll(onlyPartition(log)), expectedNumbers())
        const told = log.findings().filter(({ event }) => event === 'log.hole.found' || event === 'log.segment.damaged')
        assert.deepEqual(told, [])
        assert.ok(onlyPartition(log).nextOffset >= BigInt(expectedNumbers().length))
        await append(log, onlyPartition(log), [recordsOf([COUNT])])
      }
      await using log = await open(path, encryption)
      assert.deepEqual(await readAll(onlyPartition(log)), [...expectedNumbers(), COUNT])
    })
  }
}

test('a block that is not whole and that the journal still has is missed by nobody who looks', async (context) => {
  const path = await packedStore(context, PLAIN)
  const segments = fs.globSync('streams/**/*.seg', { cwd: path }).sort()
  const sound = segments.map((name) => fs.readFileSync(join(path, name)))
  const blockAt = 64
  for (const [index, name] of segments.entries()) {
    const bytes = Buffer.from(sound[index] ?? '')
    // The large batch lies in a file of its own.
    if (name.includes(String(LARGE_AT).padStart(20, '0'))) continue
    for (const at of [blockAt + 80 + 10, blockAt + 30]) {
      flip(bytes, at)
      flip(bytes, at + 1)
      flip(bytes, at + 2)
      fs.writeFileSync(join(path, name), bytes)
      using inspection = openInspection({ path })
      const numbers: number[] = []
      for (const { partitions } of inspection.topics)
        for (const partition of partitions)
          for await (const batch of inspection.read(partition).batches()) numbers.push(...idsOf(batch))
      assert.deepEqual(numbers, expectedNumbers(), `${name} at ${at}`)
      assert.deepEqual(inspection.findings, [], `${name} at ${at}`)
    }
    fs.writeFileSync(join(path, name), sound[index] ?? '')
  }
  const [first] = segments
  const bytes = Buffer.from(sound[0] ?? '')
  flip(bytes, blockAt + 80 + 10)
  fs.writeFileSync(join(path, first ?? assert.fail('no segments')), bytes)
  await using log = await open(path, PLAIN)
  assert.deepEqual(await readAll(onlyPartition(log)), expectedNumbers(), 'as the start finds it')
})

test('a block that is not whole ends what segments have: the journal counts from there', async (context) => {
  const path = await packedStore(context, PLAIN)
  const file = oldestFile(path)
  const bytes = fs.readFileSync(file)
  flip(bytes, (groupsIn(bytes).at(9) ?? 0) + 200)
  fs.writeFileSync(file, bytes)
  const [segment] = fs.globSync('streams/**/*.seg', { cwd: path }).sort()
  const torn = join(path, segment ?? assert.fail('no segments'))
  const block = fs.readFileSync(torn)
  flip(block, 64 + 80 + 10)
  fs.writeFileSync(torn, block)
  await using log = await open(path, PLAIN)
  const numbers = await readAll(onlyPartition(log))
  const missing = expectedNumbers().filter((number) => !numbers.includes(number))
  // One batch has rotted in both.
  assert.deepEqual([missing.length, numbers[0]], [1, 0])
  assert.equal(log.findings().filter(({ event }) => event === 'log.hole.found').length, 1)
})
