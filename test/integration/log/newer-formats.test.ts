/** Data folders that a newer release wrote: refused before anything is touched, and told from damage. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, type Log, openLog } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { streamAt } from '../../support/by-number.ts'
import { eventually } from '../../support/eventually.ts'
import { append, batchesOf, onlyPartition, range, readAll } from '../../support/partition-steps.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, segment_size: 4096 }
const COUNT = 6000

function folder(context: TestContext): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'iggy-edge-newer-'))
  context.after(() => fs.rmSync(path, { recursive: true, force: true }))
  return join(path, 'data')
}

const open = (path: string): Promise<Log> =>
  openLog({ path, clock: systemClock, logger: silentLogger, settings: SETTINGS })

/** Raises the version in the file's header. @returns what the file held before, and holds now. */
function asNewer(file: string): { readonly before: Buffer; readonly newer: Buffer } {
  const before = fs.readFileSync(file)
  const newer = Buffer.from(before)
  newer.writeUInt16LE(2, 4)
  newer.writeUInt32LE(crc32(newer.subarray(0, 60)), 60)
  fs.writeFileSync(file, newer)
  return { before, newer }
}

/** Names, sizes and times below a folder; SQLite's and the lock's own files aside. */
function fingerprint(path: string): string[] {
  return fs
    .readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/sqlite|lock/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((file) => `${file} ${fs.readFileSync(file).toString('base64').length} ${fs.statSync(file).mtimeMs}`)
}

async function isRefusedUntouched(path: string): Promise<void> {
  const before = fingerprint(path)
  await assert.rejects(open(path), { code: 'EDGE_STORE_NEWER' })
  assert.deepEqual(fingerprint(path), before)
}

test('a journal of a newer format is refused before anything is touched', async (context) => {
  const path = folder(context)
  await (await open(path)).close()
  asNewer(join(path, 'journal', '0'))
  await isRefusedUntouched(path)
})

test('a segment of a newer format is told from a damaged one: nothing is touched, and the newer release reads it again', async (context) => {
  const path = folder(context)
  const log = await open(path)
  await log.catalog.createStream('plant')
  await log.catalog.createTopic(streamAt(log.catalog, 0), {
    name: 'climate',
    partitionCount: 1,
    options: topicOptions('durable'),
  })
  const partition = onlyPartition(log)
  await append(log, partition, batchesOf(0, COUNT))
  await eventually(() => partition.segmentCount > 1 && log.stats().journalUsedBytes < 512 * 1024)
  await log.close()
  const segments = fs
    .readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.seg'))
    .map((name) => join(path, name))
    .sort()
  const [first = '', last = ''] = [segments[0], segments.at(-1)]

  const newest = asNewer(last)
  await isRefusedUntouched(path)
  fs.writeFileSync(last, newest.before)

  // No release leaves one before an older one: it is met when it is read, and stays as it is.
  const oldest = asNewer(first)
  const meanwhile = await open(path)
  assert.ok((await readAll(onlyPartition(meanwhile))).length < COUNT)
  await meanwhile.close()
  assert.deepEqual(fs.readFileSync(first), oldest.newer)
  fs.writeFileSync(first, oldest.before)

  const again = await open(path)
  assert.deepEqual(await readAll(onlyPartition(again)), range(0, COUNT))
  await again.close()
})
