import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import type { BlockFields } from '../../../../src/log/core/repack-plan.ts'
import { BLOCK_CODEC } from '../../../../src/log/core/segment-format.ts'
import type { FileSystem, LogFile } from '../../../../src/log/io/file-system.ts'
import type { Segment } from '../../../../src/log/io/segment.ts'
import type { SegmentWriter } from '../../../../src/log/io/segment-writer.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'
import { plainSegmentFiles, plainSegmentWriter } from '../../../support/segment-files.ts'
import { SimDisk } from '../../../support/sim-disk.ts'

const HOME = 'home'
const REFUGE = 'refuge/1'
const BODY = { codec: BLOCK_CODEC.plain, bytes: new Uint8Array(1000) }

const blockAt = (base: number): BlockFields => ({
  rawSize: BODY.bytes.length,
  batchCount: 1,
  flags: 0,
  baseOffset: BigInt(base),
  endOffset: BigInt(base + 1),
  firstTimeUs: 1n,
  lastTimeUs: 1n,
  boot: 1,
  recordCount: 1,
})

/** What a write into one of these folders comes to, from a position on. */
interface Quota {
  readonly folder: string
  readonly endsAt: number
  readonly code: string
}

function world({ quotas, freeBytes = 2 ** 30 }: { quotas: readonly Quota[]; freeBytes?: number }) {
  const disk = new SimDisk(new SeededRandom(1), 10_000_000)
  const { fileSystem: inner } = disk.mount({ later: (_kind, task) => setImmediate(task) })
  disk.makeDurable(HOME)
  const within = (path: string, file: LogFile): LogFile => ({
    size: () => file.size(),
    read: (target, position) => file.read(target, position),
    readAtHand: () => false,
    readLater: (target, position) => file.readLater(target, position),
    write(bytesView, position) {
      const quota = quotas.find(({ folder, endsAt }) => path.startsWith(folder) && position + bytesView.length > endsAt)
      if (quota === undefined) return file.write(bytesView, position)
      file.write(bytesView.subarray(0, Math.max(0, quota.endsAt - position)), position)
      const isFull = quota.code === 'EDQUOT'
      throw new EdgeError(isFull ? 'EDGE_DISK_FULL' : 'EDGE_IO', `${quota.code} on ${path}`)
    },
    datasync: (done) => file.datasync(done),
    truncate: (size) => file.truncate(size),
    close: () => file.close(),
  })
  const fileSystem: FileSystem = {
    ...inner,
    open: (path, mode) => within(path, inner.open(path, mode)),
    space: () => ({ freeBytes, totalBytes: 2 * freeBytes }),
  }
  const files = plainSegmentFiles(fileSystem)
  let runs = 0
  const writerBehind = (active: Segment | undefined): SegmentWriter =>
    plainSegmentWriter({ fileSystem, files, directory: HOME, nextRunNumber: () => ++runs }, active)
  const names = (folder: string): string[] => inner.list(folder).map(({ name }) => name.slice(-24))
  return { disk, files, writerBehind, names }
}

const placesOf = (segments: readonly Segment[]): [string, bigint, bigint][] =>
  segments.map(({ directory, baseOffset, endOffset }) => [directory, baseOffset, endOffset])

test('where the quota of its folder ends in the middle of a file, the next blocks lie in the refuge', async () => {
  const { files, writerBehind, names } = world({ quotas: [{ folder: HOME, endsAt: 2500, code: 'EDQUOT' }] })
  const writer = writerBehind(undefined)
  for (let base = 0; base < 4; base++) writer.append(blockAt(base), BODY)
  await writer.sync()
  const segments = writer.commit()
  assert.deepEqual(placesOf(segments), [
    [HOME, 0n, 2n],
    [HOME, 2n, 4n],
  ])
  assert.deepEqual([writer.refusal, names(REFUGE)], [undefined, []])
  assert.deepEqual(
    segments.map((segment) => files.index(segment).count),
    [2, 2],
  )
})

test('where its folder takes a header and no block, nothing of it is left there', async () => {
  const { writerBehind, names } = world({ quotas: [{ folder: HOME, endsAt: 100, code: 'EDQUOT' }] })
  const writer = writerBehind(undefined)
  for (let base = 0; base < 3; base++) writer.append(blockAt(base), BODY)
  await writer.sync()
  assert.deepEqual(placesOf(writer.commit()), [[REFUGE, 0n, 3n]])
  assert.match(writer.refusal?.message ?? '', /EDQUOT on home/)
  assert.deepEqual(names(HOME), [])
})

test('a file that takes no more is left for another one in the same folder', () => {
  const quotas: Quota[] = []
  const { writerBehind } = world({ quotas })
  const first = writerBehind(undefined)
  first.append(blockAt(0), BODY)
  const [active] = first.commit()
  assert.ok(active)
  quotas.push({ folder: active.path, endsAt: 0, code: 'EIO' })
  const second = writerBehind(active)
  second.append(blockAt(1), BODY)
  assert.deepEqual(placesOf(second.commit()), [[HOME, 1n, 2n]])
  assert.deepEqual([active.isClosed, active.endOffset], [true, 1n])
})

test('as soon as the folder takes files again the next ones lie there, and what it did not take stays as it is', async () => {
  const { disk, writerBehind, files } = world({ quotas: [] })
  disk.refusing.add(HOME)
  let active: Segment | undefined
  for (let run = 0; run < 2; run++) {
    const writer = writerBehind(active)
    writer.append(blockAt(run), BODY)
    await writer.sync()
    active = writer.commit().at(-1) ?? active
    assert.match(writer.refusal?.message ?? '', /EPERM/)
  }
  assert.ok(active)
  assert.deepEqual(placesOf([active]), [[REFUGE, 0n, 2n]])
  disk.refusing.clear()
  const writer = writerBehind(active)
  writer.append(blockAt(2), BODY)
  writer.append(blockAt(3), BODY)
  await writer.sync()
  assert.deepEqual(placesOf(writer.commit()), [[HOME, 2n, 4n]])
  assert.deepEqual([writer.refusal, active.isClosed, files.index(active).count], [undefined, true, 2])
})

test('a disk without room is full, whatever its folders say', () => {
  const { writerBehind, names } = world({ quotas: [{ folder: HOME, endsAt: 100, code: 'EDQUOT' }], freeBytes: 4096 })
  const writer = writerBehind(undefined)
  assert.throws(() => writer.append(blockAt(0), BODY), { code: 'EDGE_DISK_FULL' })
  writer.abort()
  assert.deepEqual([names(HOME), names(REFUGE)], [[], []])
})

test('where the refuge takes nothing either, that is why', () => {
  const quotas = [HOME, REFUGE].map((folder) => ({ folder, endsAt: 100, code: 'EIO' }))
  const { writerBehind, names } = world({ quotas })
  const writer = writerBehind(undefined)
  assert.throws(() => writer.append(blockAt(0), BODY), { message: /EIO on refuge/ })
  writer.abort()
  assert.deepEqual([names(HOME), names(REFUGE)], [[], []])
})
