/** Full journal files in which no group can be read any more: told at the start and by `check`, and no offset is given twice. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { EdgeError } from '../../../src/errors.ts'
import { areaOf } from '../../../src/log/core/byte-area.ts'
import {
  decodeJournalHeader,
  encodeJournalHeader,
  FIRST_GROUP_AT,
  GROUP_ALIGNMENT,
  GROUP_MAGIC_AT,
  GROUP_MAGIC_TEXT,
} from '../../../src/log/core/journal-format.ts'
import { LOG_SETTINGS, type Log, openInspection, openLog, type Partition } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const FILE_SIZE = 260 * 1024
const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: FILE_SIZE, journal_files: 4 }
/** Each synced alone, it takes seven pages: nine fill a file. */
const BATCH = { records: 250, payloadSize: 100 }
const BATCHES_PER_FILE = 9
const FULL_COUNT = BigInt(BATCH.records * BATCHES_PER_FILE)
/** By the journal file that holds all their messages; the last one proves that those before it were synced. */
const TOPICS = ['oldest', 'middle', 'newest'] as const
/** With what is left behind the last group of the file before. */
const TOLD =
  /^error log\.journal\.damaged journal: 0 batches are damaged, 2[56]\d\.\d KiB that may have held more cannot be read/
const CHECKED = /^error journal 2[56]\d\.\d KiB that may have held messages cannot be read$/

const open = (path: string): Promise<Log> =>
  openLog({ path, clock: systemClock, logger: silentLogger, settings: SETTINGS })

function append(partition: Partition): Promise<bigint> {
  const { promise, resolve, reject } = Promise.withResolvers<bigint>()
  const numbers = Array.from({ length: BATCH.records }, (_, at) => at)
  const settled = (error: EdgeError | null) => (error === null ? resolve(baseOffset) : reject(error))
  const batch = { count: BATCH.records, baseOriginUs: 1n, recordsView: recordsOf(numbers, BATCH.payloadSize) }
  const { baseOffset } = partition.append(batch, { settled })
  return promise
}

function partitionOf(log: Log, topicName: string): Partition {
  const [partition] = log.catalog.topic(0, topicName)?.partitions ?? []
  return partition ?? assert.fail(`topic ${topicName} is missing`)
}

const folderOf = (path: string, { topicId, key }: Partition): string =>
  join(path, 'streams/0/topics', String(topicId), String(key))

/** What a process leaves that was killed before it could recycle any of three files. */
async function killedStore(context: TestContext): Promise<string> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-journal-unreadable-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const living = join(folder, 'living')
  const log = await open(living)
  const stream = await log.catalog.createStream('plant')
  // No segment can be made: neither the folder is one, nor the refuge.
  fs.writeFileSync(join(living, 'refuge'), '')
  for (const name of TOPICS) {
    await log.catalog.createTopic(stream, { name, partitionCount: 1, options: topicOptions('durable') })
    const partition = partitionOf(log, name)
    fs.rmSync(folderOf(living, partition), { recursive: true, force: true })
    fs.writeFileSync(folderOf(living, partition), '')
    for (let count = 0; count < (name === 'newest' ? 1 : BATCHES_PER_FILE); count++) await append(partition)
  }
  const path = killedCopy(living, join(living, '..', 'killed'))
  for (const root of [living, path]) {
    for (const name of TOPICS) fs.rmSync(folderOf(root, partitionOf(log, name)))
    fs.rmSync(join(root, 'refuge'))
  }
  await log.close()
  assert.deepEqual(
    journalFiles(path).map((file) => groupsOf(file).length),
    [BATCHES_PER_FILE, BATCHES_PER_FILE, 1, 0],
  )
  return path
}

/** By age. */
function journalFiles(path: string): string[] {
  const files = fs.readdirSync(join(path, 'journal')).map((name) => join(path, 'journal', name))
  const generationOf = (file: string): number => decodeJournalHeader(areaOf(fs.readFileSync(file)))?.generation ?? 0
  return files.sort((a, b) => generationOf(a) - generationOf(b))
}

function groupsOf(file: string): number[] {
  const bytes = fs.readFileSync(file)
  const groups: number[] = []
  for (let at = FIRST_GROUP_AT; at < bytes.length; at += GROUP_ALIGNMENT) {
    const magicAt = at + GROUP_MAGIC_AT
    if (bytes.toString('latin1', magicAt, magicAt + GROUP_MAGIC_TEXT.length) === GROUP_MAGIC_TEXT) groups.push(at)
  }
  return groups
}

/** Two bits of each group's header: a single one would be put right. */
function rotGroups(file: string): void {
  const bytes = fs.readFileSync(file)
  for (const at of groupsOf(file)) bytes.writeUInt8(bytes.readUInt8(at) ^ 3, at)
  fs.writeFileSync(file, bytes)
}

const findingsOf = (log: Log): string[] => log.findings().map(({ level, event, text }) => `${level} ${event} ${text}`)

for (const [age, name] of TOPICS.slice(0, -1).entries()) {
  test(`the ${name} full file is unreadable: told, and offsets go on above all that it may have held`, async (context) => {
    const path = await killedStore(context)
    rotGroups(journalFiles(path)[age] ?? assert.fail('no such file'))
    {
      using inspection = openInspection({ path })
      const texts = inspection.findings.map(({ level, path: at, text }) => `${level} ${at} ${text}`)
      assert.ok(
        texts.some((text) => CHECKED.test(text)),
        texts.join('\n'),
      )
    }
    // Killed at once: the unreadable file is prepared anew by then, and nothing in the journal tells of it any more.
    const first = await open(path)
    assert.ok(
      findingsOf(first).some((text) => TOLD.test(text)),
      findingsOf(first).join('\n'),
    )
    const again = killedCopy(path, join(path, '..', 'again'))
    await first.close()

    await using log = await open(again)
    for (const [place, topic] of TOPICS.entries()) {
      const baseOffset = await append(partitionOf(log, topic))
      const expected = topic === 'newest' ? BigInt(BATCH.records) : FULL_COUNT
      // What lies behind the damage goes on from there; all else may have had more in it.
      assert.ok(place > age ? baseOffset === expected : baseOffset >= expected, `${topic} went on at ${baseOffset}`)
    }
  })
}

test('files that were recycled are no loss, nor are those of a version that did not tell where the chain begins', async (context) => {
  const path = await killedStore(context)
  for (const file of journalFiles(path)) {
    const bytes = new Uint8Array(fs.readFileSync(file))
    const header = decodeJournalHeader(areaOf(bytes)) ?? assert.fail('no header')
    encodeJournalHeader(areaOf(bytes), { ...header, firstSequence: 0 })
    fs.writeFileSync(file, bytes)
  }
  for (let start = 0; start < 3; start++) {
    await using log = await open(path)
    assert.deepEqual(findingsOf(log), [])
    for (let count = 0; count < 3 * BATCHES_PER_FILE; count++) await append(partitionOf(log, 'oldest'))
    assert.equal(partitionOf(log, 'oldest').nextOffset, FULL_COUNT * BigInt(1 + 3 * (start + 1)))
  }
})
