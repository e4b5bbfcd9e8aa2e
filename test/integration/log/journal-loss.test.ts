/** A journal file that is deleted or overwritten: told at the start and by `check`, and no offset is given twice. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { EdgeError } from '../../../src/errors.ts'
import { JOURNAL_HEADER_SIZE } from '../../../src/log/core/journal-format.ts'
import { LOG_SETTINGS, type Log, openInspection, openLog, type Partition } from '../../../src/log/index.ts'
import { headerCopyAt } from '../../../src/log/io/journal-header.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const FILE_SIZE = 256 * 1024
const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: FILE_SIZE, journal_files: 3 }
/** Each synced alone, on a page of its own: the first file takes them all. */
const COUNT = 40
const open = (path: string): Promise<Log> =>
  openLog({ path, clock: systemClock, logger: silentLogger, settings: SETTINGS })

async function append(partition: Partition, number: number): Promise<bigint> {
  return new Promise<bigint>((resolve, reject) => {
    const settled = (error: EdgeError | null) => (error === null ? resolve(baseOffset) : reject(error))
    const { baseOffset } = partition.append(
      { count: 1, baseOriginUs: 1n, recordsView: recordsOf([number]) },
      { settled },
    )
  })
}

async function fill(path: string): Promise<Log> {
  const log = await open(path)
  const stream = await log.catalog.createStream('plant')
  const topic = await log.catalog.createTopic(stream, {
    name: 'pumps',
    partitionCount: 1,
    options: topicOptions('durable'),
  })
  const [partition] = topic.partitions
  assert.ok(partition)
  for (let number = 0; number < COUNT; number++) assert.equal(await append(partition, number), BigInt(number))
  return log
}

/** The files as a process leaves them that was killed after acks; or after a clean stop. */
async function stoppedStore(context: TestContext, how: 'killed' | 'clean'): Promise<string> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-journal-loss-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const living = join(folder, 'living')
  const log = await fill(living)
  if (how === 'clean') await log.close()
  const path = join(folder, 'stopped')
  killedCopy(living, path)
  await log.close()
  return path
}

/** The one with messages. */
function fullFile(path: string): string {
  const files = fs.readdirSync(join(path, 'journal')).map((name) => join(path, 'journal', name))
  const groupAt = (file: string): number => fs.readFileSync(file).readUInt32LE(4096 + 4)
  return files.find((file) => groupAt(file) !== 0) ?? assert.fail('no journal file holds messages')
}

function checkFindings(path: string): string[] {
  using inspection = openInspection({ path })
  return inspection.findings.map(({ level, path: at, text }) => `${level} ${at} ${text}`)
}

/** @returns what the start tells, after an append that must get an offset nobody has seen. */
async function startFindings(path: string): Promise<string[]> {
  await using log = await open(path)
  const [partition] = log.catalog.topic(0, 0)?.partitions ?? []
  assert.ok(partition)
  const findings = log.findings().map(({ level, event, text }) => `${level} ${event} ${text}`)
  const baseOffset = await append(partition, COUNT)
  assert.ok(baseOffset >= BigInt(COUNT), `offset ${baseOffset} was given before`)
  return findings
}

const LOSSES: readonly (readonly [string, (file: string) => void, RegExp])[] = [
  ['deleted', (file) => fs.rmSync(file), /error .*lacks the files of generations \d+, deleted or overwritten/],
  ['zeroed', (file) => fs.writeFileSync(file, Buffer.alloc(FILE_SIZE)), /error .*lacks the files of generations \d+/],
  ['emptied', (file) => fs.truncateSync(file, 0), /error .*lacks the files of generations \d+/],
  [
    'cut short',
    (file) => fs.truncateSync(file, 8192),
    /error .*is cut short, 248\.0 KiB of 256\.0 KiB are missing: .* get offsets above theirs/,
  ],
  [
    'garbled at both ends',
    (file) => {
      for (const position of [0, headerCopyAt(FILE_SIZE)]) garble(file, position)
    },
    /warn .*journal\/\d+ has no readable header .*unless a power cut came/,
  ],
]

function garble(file: string, position: number): void {
  const bytes = fs.readFileSync(file)
  fs.writeFileSync(file, bytes.fill(7, position, position + JOURNAL_HEADER_SIZE))
}

for (const [how, lose, expected] of LOSSES) {
  test(`a journal file that is ${how} after a kill is told, and offsets go on above its own`, async (context) => {
    const path = await stoppedStore(context, 'killed')
    lose(fullFile(path))
    const told = (findings: string[]): boolean => findings.some((finding) => expected.test(finding))
    assert.ok(told(checkFindings(path)), `check: ${checkFindings(path).join('\n')}`)
    const findings = await startFindings(path)
    assert.ok(told(findings), `start: ${findings.join('\n')}`)
    // A file that is cut short is replaced with its next repack, of what a kill left unproven one start later.
    await startFindings(path)
    assert.deepEqual(await startFindings(path).then((again) => again.filter((each) => /file_missing/.test(each))), [])
  })
}

test('after a clean stop the offsets that are gone are told exactly', async (context) => {
  const path = await stoppedStore(context, 'clean')
  fs.rmSync(fullFile(path))
  const checked: string[] = []
  {
    using inspection = openInspection({ path })
    for (const { partitions } of inspection.topics) {
      for (const partition of partitions) {
        for await (const _batch of inspection.read(partition).batches()) assert.fail('nothing is left')
      }
    }
    checked.push(...inspection.findings.map(({ text }) => text))
  }
  assert.ok(checked.some((text) => text.startsWith('offsets 0 to 39 are missing: they had been synced')))
  const findings = await startFindings(path)
  assert.ok(
    findings.some((text) => /offsets 0 to 39 of stream "\w+", topic "\w+", partition 0 cannot be read/.test(text)),
  )
})

test('the journal as a whole may be gone: told, and offsets go on above', async (context) => {
  const path = await stoppedStore(context, 'killed')
  fs.rmSync(join(path, 'journal'), { recursive: true })
  const findings = await startFindings(path)
  assert.ok(findings.some((text) => /lacks the files of generations 1, 2, 3, .*none found/.test(text)))
})

test('a file that never held a message may be gone or cut without a word of lost messages', async (context) => {
  const path = await stoppedStore(context, 'killed')
  const full = fullFile(path)
  const spare = fs.readdirSync(join(path, 'journal')).map((name) => join(path, 'journal', name))
  fs.truncateSync(spare.find((file) => file !== full) ?? assert.fail('no spare'), 16_384)
  assert.deepEqual(checkFindings(path), [])
  assert.deepEqual(await startFindings(path), [])
})

test('stops and starts, and files that are recycled, are no loss', async (context) => {
  const path = await stoppedStore(context, 'killed')
  for (let round = 0; round < 3; round++) {
    await using log = await open(path)
    const [partition] = log.catalog.topic(0, 0)?.partitions ?? []
    assert.ok(partition)
    for (let batch = 0; batch < 40; batch++) {
      const numbers = Array.from({ length: 200 }, (_, at) => at)
      while (!log.hasRoom(64 * 1024)) await new Promise<void>((resolve) => log.onceRoom(resolve))
      await new Promise<void>((resolve, reject) => {
        const settled = (error: EdgeError | null) => (error === null ? resolve() : reject(error))
        partition.append({ count: 200, baseOriginUs: 1n, recordsView: recordsOf(numbers, 100) }, { settled })
      })
    }
    assert.deepEqual(log.findings(), [])
  }
  assert.deepEqual(checkFindings(path), [])
})
