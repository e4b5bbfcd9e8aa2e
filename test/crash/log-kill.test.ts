/**
 * A writer is killed with SIGKILL in the middle of its work, again and again on the same folder. A kill may lose nothing
 * that was acked, neither of durable nor of buffered topics: the page cache outlives the process. (What a power cut may
 * take is the simulation's to show.)
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../src/clock.ts'
import { ENCRYPTION_SETTINGS, LOG_SETTINGS, type Log, openLog, type Partition } from '../../src/log/index.ts'
import { silentLogger } from '../../src/logger.ts'
import { defaultsOf } from '../../src/setting.ts'
import { idsOf, recordsOf } from '../support/records.ts'

const WRITER = fileURLToPath(new URL('../support/log-writer.ts', import.meta.url))
const settings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, segment_size: 64 * 1024 }

/** Acked numbers by topic and offset. */
type Acked = Map<string, number>

function folder(context: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'iggy-edge-kill-'))
  context.after(() => rmSync(path, { recursive: true, force: true }))
  return join(path, 'data')
}

const KEY = Buffer.alloc(32, 7).toString('base64')

/** @param key of a sealed store. */
const open = (path: string, key = ''): Promise<Log> => {
  const encryption = { ...defaultsOf(ENCRYPTION_SETTINGS), enabled: key !== '', key }
  return openLog({ path, clock: systemClock, logger: silentLogger, settings, encryption })
}

/** Lets a writer run until it has told `count` acks, kills it, and adds what it told. */
async function writeAndKill(path: string, count: number, acked: Acked, key = ''): Promise<void> {
  const writer = spawn(process.execPath, [WRITER, path, String(acked.size * 2), key], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => writer.once('close', () => resolve()))
  let told = 0
  for await (const line of createInterface({ input: writer.stdout })) {
    const [topic, offset, number] = line.split(' ')
    // The kill may cut the last line in half.
    if (number === undefined || number === '') continue
    const key = `${topic} ${offset}`
    assert.ok(!acked.has(key), `offset ${key} was given twice`)
    acked.set(key, Number(number))
    if (++told === count) writer.kill('SIGKILL')
  }
  await ended
}

async function readAll(partition: Partition, topic: string): Promise<Acked> {
  const found: Acked = new Map()
  for (let next = partition.logStartOffset; next < partition.visibleEnd; ) {
    const result = await partition.read({ fromOffset: next, maxCount: 1000, maxBytes: 1 << 20 })
    for (const batch of result.batches) {
      for (const [index, number] of idsOf(batch).entries())
        found.set(`${topic} ${batch.baseOffset + BigInt(index)}`, number)
    }
    next = result.nextOffset
  }
  return found
}

async function checkAll(path: string, acked: Acked, key = ''): Promise<void> {
  await using log = await open(path, key)
  const found: Acked = new Map()
  for (const topic of ['durable', 'buffered']) {
    for (const partition of log.catalog.topic(0, topic)?.partitions ?? []) {
      for (const [key, number] of await readAll(partition, topic)) found.set(key, number)
    }
  }
  for (const [key, number] of acked) assert.equal(found.get(key), number, `acked ${key}`)
  assert.deepEqual(
    log.findings().filter((finding) => finding.level === 'error'),
    [],
  )
}

test('everything acked before a SIGKILL is there after it, five times in a row', async (context) => {
  const path = folder(context)
  const acked: Acked = new Map()
  for (const count of [1, 40, 400, 1500, 25]) {
    await writeAndKill(path, count, acked)
    await checkAll(path, acked)
  }
})

test('kills without a clean stop between them lose nothing either', async (context) => {
  const path = folder(context)
  const acked: Acked = new Map()
  for (const count of [30, 1, 200, 5]) await writeAndKill(path, count, acked)
  await checkAll(path, acked)
})

test('the same on a sealed store: everything acked before a SIGKILL is there after it', async (context) => {
  const path = folder(context)
  const acked: Acked = new Map()
  for (const count of [1, 40, 1500, 25]) {
    await writeAndKill(path, count, acked, KEY)
    await checkAll(path, acked, KEY)
  }
  for (const count of [30, 1, 200]) await writeAndKill(path, count, acked, KEY)
  await checkAll(path, acked, KEY)
})

for (const key of ['', KEY]) {
  const kind = key === '' ? 'plain' : 'sealed'
  test(`a torn tail of a ${kind} store is cut, and all before it still reads`, (context) => checkTornTail(context, key))
}

async function checkTornTail(context: TestContext, key: string): Promise<void> {
  const path = folder(context)
  const acked: Acked = new Map()
  await writeAndKill(path, 30, acked, key)
  tearNewestGroup(path)
  await using log = await open(path, key)
  const [partition] = log.catalog.topic(0, 'durable')?.partitions ?? []
  assert.ok(partition)
  const found = await readAll(partition, 'durable')
  const kept = [...acked].filter(([key]) => key.startsWith('durable') && found.has(key))
  for (const [key, number] of kept) assert.equal(found.get(key), number)
  assert.equal(BigInt(found.size), partition.visibleEnd)
  const settled = Promise.withResolvers<void>()
  const { baseOffset } = partition.append(
    { count: 1, baseOriginUs: 1n, recordsView: recordsOf([1]) },
    { settled: (error) => (error === null ? settled.resolve() : settled.reject(error)) },
  )
  assert.equal(baseOffset, BigInt(found.size))
  await settled.promise
  assert.deepEqual(
    log.findings().filter((finding) => finding.level === 'error'),
    [],
  )
}

/** Flips a byte in the body of the last group of the file that was written last. */
function tearNewestGroup(path: string): void {
  const files = readdirSync(join(path, 'journal')).map((name) => join(path, 'journal', name))
  const groups = files.flatMap((file) => {
    const bytes = readFileSync(file)
    const places: { file: string; at: number; sequence: bigint }[] = []
    for (let at = 4096; at < bytes.length; at += 512) {
      if (bytes.toString('latin1', at + 4, at + 8) === 'EDGG')
        places.push({ file, at, sequence: bytes.readBigUInt64LE(at + 40) })
    }
    return places
  })
  const [last] = groups.sort((a, b) => Number(b.sequence - a.sequence))
  assert.ok(last)
  const bytes = readFileSync(last.file)
  bytes[last.at + 150] = (bytes[last.at + 150] ?? 0) ^ 1
  writeFileSync(last.file, bytes)
}
