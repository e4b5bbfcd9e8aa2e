/**
 * Encryption at rest on real files: nothing of a message stands in a file, what was written is read after a reopen, a wrong
 * key is told from damage and changes nothing, and keys come, go and rotate while old files stay readable.
 */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { systemClock } from '../../../src/clock.ts'
import { EdgeError } from '../../../src/errors.ts'
import {
  type EncryptionSettings,
  LOG_SETTINGS,
  type Log,
  openInspection,
  openLog,
  type Partition,
} from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { keyText, PLAIN, SEALED } from '../../support/encryption.ts'
import { eventually } from '../../support/eventually.ts'
import { append, batchesOf, range, readAll } from '../../support/partition-steps.ts'
import { idsOf, recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, segment_size: 16 * 1024 }
const GROUP_HEADER_SIZE = 96
const FIRST_GROUP_AT = 4096

function folder(context: TestContext): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'iggy-edge-sealed-'))
  context.after(() => fs.rmSync(path, { recursive: true, force: true }))
  return join(path, 'data')
}

const open = (path: string, encryption: EncryptionSettings = SEALED, bootId?: string): Promise<Log> =>
  openLog({
    path,
    clock: systemClock,
    logger: silentLogger,
    settings: SETTINGS,
    encryption,
    ...(bootId === undefined ? {} : { bootId }),
  })

async function partitionIn(log: Log): Promise<Partition> {
  const stream = log.catalog.stream('plant') ?? (await log.catalog.createStream('plant'))
  const options = topicOptions('durable')
  const topic =
    log.catalog.topic(stream.id, 'pumps') ??
    (await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options }))
  const [partition] = topic.partitions
  assert.ok(partition)
  return partition
}

const journalOf = (path: string): string[] => fs.globSync('journal/*', { cwd: path }).map((name) => join(path, name))
const segmentsOf = (path: string): string[] =>
  fs.globSync('streams/**/*.{seg,external}', { cwd: path }).map((name) => join(path, name))

/** Id of the key that a file names, 0 for a plain one. */
const keyIdIn = (file: string): number => {
  const header = fs.readFileSync(file).subarray(0, 64)
  return header.readUInt32LE(header.toString('latin1', 0, 4) === 'EDGJ' ? 48 : 56)
}

/** Groups of all journal files, in the order they were written. */
function groupsOf(path: string): { file: string; at: number; length: number; sequence: bigint }[] {
  const groups = journalOf(path).flatMap((file) => {
    const bytes = fs.readFileSync(file)
    const generation = bytes.readBigUInt64LE(24)
    const places: { file: string; at: number; length: number; sequence: bigint }[] = []
    for (let at = FIRST_GROUP_AT; at < bytes.length; at += 512) {
      const isGroup =
        bytes.toString('latin1', at + 4, at + 8) === 'EDGG' && bytes.readBigUInt64LE(at + 16) === generation
      if (isGroup)
        places.push({ file, at, length: bytes.readUInt32LE(at + 8), sequence: bytes.readBigUInt64LE(at + 40) })
    }
    return places
  })
  return groups.sort((a, b) => Number(a.sequence - b.sequence))
}

function change(file: string, edit: (bytes: Buffer) => void): void {
  const bytes = fs.readFileSync(file)
  edit(bytes)
  fs.writeFileSync(file, bytes)
}

const flip = (bytes: Buffer, at: number): void => void bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)

/** Names, sizes and contents below a folder; the lock's own file and SQLite's side files aside. */
function fingerprint(path: string): string[] {
  return fs
    .readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/lock|sqlite-/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((file) => `${file} ${crc32(fs.readFileSync(file))} ${fs.statSync(file).mtimeMs}`)
}

const isKeyWrong = (error: unknown): boolean => error instanceof EdgeError && error.code === 'EDGE_KEY_WRONG'

/** A store with segments, a large batch and messages in the journal. */
async function writtenStore(path: string): Promise<number> {
  await using log = await open(path)
  const partition = await partitionIn(log)
  await append(log, partition, batchesOf(0, 4000))
  await eventually(() => partition.segmentCount > 1)
  await append(log, partition, [recordsOf([4000], 600_000), ...batchesOf(4001, 4010)])
  return 4010
}

test('what was sealed is read while the log is open and after a reopen, from journal, segments and large batches', async (context) => {
  const path = folder(context)
  const count = await writtenStore(path)
  await using log = await open(path)
  const partition = await partitionIn(log)
  assert.deepEqual(await readAll(partition), range(0, count))
  const middle = await partition.read({ fromOffset: 4005n, maxCount: 1, maxBytes: 1 })
  const timeUs = middle.batches[0]?.appendTimeUs ?? 0n
  const found = await partition.read({ fromOffset: await partition.offsetAt(timeUs), maxCount: 1, maxBytes: 1 })
  assert.equal(found.batches[0]?.appendTimeUs, timeUs)
  assert.deepEqual(log.findings(), [])
})

test('no file holds a payload in clear', async (context) => {
  const path = folder(context)
  const secret = Buffer.from('the pressure of pump seven')
  const records = recordsOf([1], 64)
  records.set(secret, records.length - secret.length)
  {
    await using log = await open(path)
    await append(log, await partitionIn(log), [records, records])
  }
  for (const file of [...journalOf(path), ...segmentsOf(path)]) {
    assert.equal(fs.readFileSync(file).includes(secret), false, file)
    assert.notEqual(keyIdIn(file), 0, file)
  }
})

test('a wrong key and no key are refused before anything is touched', async (context) => {
  const path = folder(context)
  await writtenStore(path)
  const before = fingerprint(path)
  await assert.rejects(open(path, { ...SEALED, key: keyText(2) }), isKeyWrong)
  await assert.rejects(open(path, PLAIN), isKeyWrong)
  assert.deepEqual(fingerprint(path), before)
  await using log = await open(path)
  assert.equal((await readAll(await partitionIn(log))).length, 4010)
})

test('a wrong key is refused also when store.json and its copy are gone', async (context) => {
  const path = folder(context)
  await writtenStore(path)
  for (const name of fs.globSync('{store.json,metadata.sqlite*}', { cwd: path })) fs.rmSync(join(path, name))
  await assert.rejects(open(path, { ...SEALED, key: keyText(2) }), isKeyWrong)
  await assert.rejects(open(path, PLAIN), isKeyWrong)
  await using log = await open(path)
  assert.equal(log.findings().at(1)?.event, 'log.store.recovered')
})

test('a key that is none is refused without being told', async (context) => {
  const path = folder(context)
  const cases: EncryptionSettings[] = [
    { ...PLAIN, enabled: true },
    { ...PLAIN, enabled: true, key: 'c2hvcnQ=' },
    { ...PLAIN, enabled: true, key_file: join(path, 'nowhere') },
    { ...SEALED, key_file: '/dev/null' },
    { ...SEALED, previous_keys: 'not a key' },
  ]
  for (const encryption of cases) {
    await assert.rejects(open(path, encryption), (error) => {
      assert.ok(error instanceof EdgeError && error.code === 'EDGE_KEY_WRONG')
      assert.doesNotMatch(error.message, /c2hvcnQ|not a key/)
      return true
    })
  }
  assert.equal(fs.existsSync(path), false)
})

test('a key file holds the key raw or in base64', async (context) => {
  const path = folder(context)
  fs.mkdirSync(path)
  const [raw, text] = [join(path, 'raw.key'), join(path, 'text.key')]
  fs.writeFileSync(raw, Buffer.alloc(32, 1))
  fs.writeFileSync(text, `${keyText(1)}\n`)
  const data = join(path, 'data')
  {
    await using log = await open(data, { ...PLAIN, enabled: true, key_file: raw })
    await append(log, await partitionIn(log), batchesOf(0, 3))
  }
  await using log = await open(data, { ...PLAIN, enabled: true, key_file: text })
  assert.deepEqual(await readAll(await partitionIn(log)), range(0, 3))
})

test('a flipped bit in a sealed segment is damage with its range, and all else reads', async (context) => {
  const path = folder(context)
  const count = await writtenStore(path)
  const [segment = ''] = segmentsOf(path).sort()
  change(segment, (bytes) => flip(bytes, 64 + 80 + 40))
  await using log = await open(path)
  const partition = await partitionIn(log)
  const numbers = await readAll(partition)
  const [hole] = partition.holes
  assert.ok(hole)
  const isKept = (number: number): boolean => BigInt(number) < hole.from || BigInt(number) >= hole.end
  assert.deepEqual(numbers, range(0, count).filter(isKept))
  const finding = log.findings().find(({ event }) => event === 'log.hole.found')
  assert.equal(finding?.fields.error_code, 'EDGE_BATCH_CORRUPT')
})

test('a changed block whose checksum was mended is told as one that its key does not open', async (context) => {
  const path = folder(context)
  await writtenStore(path)
  const [segment = ''] = segmentsOf(path).sort()
  change(segment, (bytes) => {
    const [block, seed] = [64, bytes.readUInt32LE(28)]
    flip(bytes, block + 80 + 40)
    const stored = bytes.readUInt32LE(block + 8)
    bytes.writeUInt32LE(crc32(bytes.subarray(block + 80, block + 80 + stored)), block + 12)
    bytes.writeUInt32LE(crc32(bytes.subarray(block + 4, block + 80), seed), block)
  })
  await using log = await open(path)
  const partition = await partitionIn(log)
  const numbers = await readAll(partition)
  assert.ok(numbers.length > 0 && numbers.length < 4010)
  const finding = log.findings().find(({ event }) => event === 'log.hole.found')
  assert.equal(finding?.fields.error_code, 'EDGE_DECRYPT_FAILED')
  assert.deepEqual([partition.holes[0]?.from, partition.holes[0]?.reason], [0n, 'damage'])
})

/** Acks one message after another, so that each has a group of its own. */
async function oneByOne(path: string, from: number, end: number, encryption = SEALED): Promise<void> {
  const log = await open(path, encryption)
  const partition = await partitionIn(log)
  for (const batch of batchesOf(from, end)) await append(log, partition, [batch])
  await log.close()
}

test('a changed group whose checksum was mended is no torn tail: it is told, kept aside, and what follows is read', async (context) => {
  const path = folder(context)
  await oneByOne(path, 0, 10)
  const withBatches = groupsOf(path).filter(({ length }) => length > GROUP_HEADER_SIZE + 16)
  const group = withBatches.at(-1)
  assert.ok(group)
  change(group.file, (bytes) => {
    const seed = Number(bytes.readBigUInt64LE(32) & 0xffffffffn)
    flip(bytes, group.at + GROUP_HEADER_SIZE + 20)
    const body = bytes.subarray(group.at + GROUP_HEADER_SIZE, group.at + group.length)
    bytes.writeUInt32LE(crc32(body), group.at + 12)
    bytes.writeUInt32LE(crc32(bytes.subarray(group.at + 4, group.at + GROUP_HEADER_SIZE), seed), group.at)
  })
  await using log = await open(path)
  const partition = await partitionIn(log)
  assert.deepEqual(await readAll(partition), range(0, 9))
  const finding = log.findings().find(({ event }) => event === 'log.decrypt.failed')
  assert.equal(finding?.fields.error_code, 'EDGE_DECRYPT_FAILED')
  const [aside] = fs.readdirSync(join(path, 'quarantine'))
  assert.equal(fs.statSync(join(path, 'quarantine', aside ?? '')).size, group.length)
  // The number of the message that cannot be read is not given to another.
  assert.ok(partition.nextOffset > 9n)
})

test('a flipped bit in a sealed group that later ones prove costs that group and is told with its range', async (context) => {
  const path = folder(context)
  await oneByOne(path, 0, 10)
  const groups = groupsOf(path).filter(({ length }) => length > GROUP_HEADER_SIZE + 16)
  const group = groups[4]
  assert.ok(group)
  change(group.file, (bytes) => flip(bytes, group.at + GROUP_HEADER_SIZE + 30))
  await using log = await open(path)
  const partition = await partitionIn(log)
  assert.deepEqual(await readAll(partition), [...range(0, 4), ...range(5, 10)])
  assert.deepEqual(partition.holes, [{ from: 4n, end: 5n, reason: 'damage' }])
})

test('of a torn tail the authentic prefix is served, and nothing is told as a wrong key', async (context) => {
  const path = folder(context)
  await oneByOne(path, 0, 10)
  // A power cut: the mark of the clean stop and half of the last group never reached the disk.
  const groups = groupsOf(path)
  const last = groups.findLast(({ length }) => length > GROUP_HEADER_SIZE + 16)
  assert.ok(last)
  for (const { file, at, length } of groups.filter(({ sequence }) => sequence > last.sequence)) {
    change(file, (bytes) => bytes.fill(0, at, at + length))
  }
  change(last.file, (bytes) => bytes.fill(0, last.at + GROUP_HEADER_SIZE + 40, last.at + last.length))
  await using log = await open(path, SEALED, 'another start of the machine')
  const partition = await partitionIn(log)
  assert.deepEqual(await readAll(partition), range(0, 9))
  // The stop had put on record how far it was synced: what was torn off is told, as lost.
  assert.deepEqual(
    log.findings().map(({ event, fields }) => [event, fields.error_code]),
    [['log.hole.found', 'EDGE_BATCH_CORRUPT']],
  )
  await append(log, partition, batchesOf(9, 12))
  assert.deepEqual(await readAll(partition), range(0, 12))
})

test('turned on for an existing store, new files are sealed and old ones read as they are', async (context) => {
  const path = folder(context)
  await oneByOne(path, 0, 20, PLAIN)
  {
    await using log = await open(path)
    const partition = await partitionIn(log)
    await append(log, partition, batchesOf(20, 2500))
    await eventually(() => partition.segmentCount > 0)
    assert.deepEqual(await readAll(partition), range(0, 2500))
  }
  assert.ok(journalOf(path).every((file) => keyIdIn(file) !== 0))
  await assert.rejects(open(path, PLAIN), isKeyWrong)
  await using log = await open(path)
  assert.deepEqual(await readAll(await partitionIn(log)), range(0, 2500))
})

test('turned off, new files are plain, and the key is needed only as long as a file is sealed with it', async (context) => {
  const path = folder(context)
  await writtenStore(path)
  const off = { ...SEALED, enabled: false }
  {
    await using log = await open(path, off)
    const partition = await partitionIn(log)
    assert.deepEqual(await readAll(partition), range(0, 4010))
    await append(log, partition, batchesOf(4010, 4020))
  }
  await assert.rejects(open(path, PLAIN), isKeyWrong)
  {
    await using log = await open(path, off)
    await (await partitionIn(log)).purge()
    await eventually(() => journalOf(path).every((file) => keyIdIn(file) === 0))
  }
  await using log = await open(path, PLAIN)
  assert.equal((await partitionIn(log)).nextOffset, 4020n)
})

test('the key is needed also where only what a partition has in its refuge is sealed with it', async (context) => {
  const path = folder(context)
  const off = { ...SEALED, enabled: false }
  let count = 2500
  {
    await using log = await open(path)
    const partition = await partitionIn(log)
    const inTheWay = join(path, `streams/0/topics/0/${partition.key}`)
    fs.writeFileSync(inTheWay, '')
    await append(log, partition, batchesOf(0, count))
    await eventually(() => partition.segmentCount > 0)
    fs.rmSync(inTheWay)
  }
  {
    await using log = await open(path, off)
    const partition = await partitionIn(log)
    for (; journalOf(path).some((file) => keyIdIn(file) !== 0); count += 500)
      await append(log, partition, batchesOf(count, count + 500))
    await eventually(() => segmentsOf(path).length > 0)
    for (const file of segmentsOf(path).filter((each) => keyIdIn(each) !== 0)) fs.rmSync(file)
  }
  await assert.rejects(open(path, PLAIN), isKeyWrong)
  await using log = await open(path, off)
  assert.equal((await partitionIn(log)).nextOffset, BigInt(count))
})

test('a new key seals new files, the previous one opens the old, and without it the start is refused', async (context) => {
  const path = folder(context)
  await writtenStore(path)
  const rotated = { ...PLAIN, enabled: true, key: keyText(2), previous_keys: keyText(1) }
  {
    await using log = await open(path, rotated)
    const partition = await partitionIn(log)
    assert.deepEqual(await readAll(partition), range(0, 4010))
    await append(log, partition, batchesOf(4010, 6000))
    await eventually(() => new Set(segmentsOf(path).map(keyIdIn)).size === 2)
  }
  await assert.rejects(open(path, { ...rotated, previous_keys: '' }), isKeyWrong)
  await assert.rejects(open(path, SEALED), isKeyWrong)
  await using log = await open(path, rotated)
  assert.deepEqual(await readAll(await partitionIn(log)), range(0, 6000))
})

test('a sealed store is inspected with its key, and judged by its checksums without one', async (context) => {
  const path = folder(context)
  const count = await writtenStore(path)
  {
    using inspection = openInspection({ path, encryption: SEALED })
    const [partition] = inspection.topics[0]?.partitions ?? []
    assert.ok(partition)
    const numbers: number[] = []
    for await (const batch of inspection.read(partition).batches()) numbers.push(...idsOf(batch))
    assert.deepEqual(numbers, range(0, count))
    assert.deepEqual(inspection.findings, [])
  }
  assert.throws(() => openInspection({ path }), isKeyWrong)
  assert.throws(
    () => openInspection({ path, encryption: { ...SEALED, key: keyText(2) }, isBlindAllowed: true }),
    isKeyWrong,
  )
  const [segment = ''] = segmentsOf(path).sort()
  const blindFindings = async (): Promise<string[]> => {
    using inspection = openInspection({ path, encryption: PLAIN, isBlindAllowed: true })
    const [partition] = inspection.topics[0]?.partitions ?? []
    assert.ok(partition)
    for await (const _batch of inspection.read(partition).batches()) assert.fail('nothing can be opened')
    return inspection.findings.map(({ level, text }) => `${level} ${text}`)
  }
  assert.deepEqual(await blindFindings(), [
    'warn names a key that was not given: of sealed files only checksums are looked at',
  ])
  change(segment, (bytes) => flip(bytes, 64 + 80 + 40))
  const [, damage] = await blindFindings()
  assert.match(
    damage ?? '',
    /^error block at 64 is damaged: offsets 0 to \d+ cannot be read here \(stream "\S+", topic "\S+", partition 0\)$/,
  )
})

test('without a key what lies below the floor is not counted, as when a power cut brought a dropped file back', async (context) => {
  const path = folder(context)
  await writtenStore(path)
  const [first = ''] = segmentsOf(path).sort()
  const dropped = fs.readFileSync(first)
  let floor = 0n
  {
    await using log = await open(path)
    const partition = await partitionIn(log)
    assert.equal(await partition.deleteSegments(1, null), 1)
    floor = partition.logStartOffset
  }
  const blindCounts = async (): Promise<{ messageCount: number; firstOffset: bigint | null }> => {
    using inspection = openInspection({ path, encryption: PLAIN, isBlindAllowed: true })
    const [partition] = inspection.topics[0]?.partitions ?? []
    assert.ok(partition)
    const reading = inspection.read(partition)
    for await (const _batch of reading.batches()) assert.fail('nothing can be opened')
    return reading.counts
  }
  const { messageCount, firstOffset } = await blindCounts()
  assert.equal(firstOffset, floor)
  fs.writeFileSync(first, dropped)
  const again = await blindCounts()
  assert.deepEqual([again.messageCount, again.firstOffset], [messageCount, floor])
})
