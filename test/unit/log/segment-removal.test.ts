/** Dropping thousands of segments at once: none is read any more at once, and others have their turn in between. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import type { FileSystem } from '../../../src/log/io/file-system.ts'
import type { LogPartition } from '../../../src/log/partition.ts'
import type { DescriptorStore, SealedSegment } from '../../../src/log/ports.ts'
import { SegmentRemoval } from '../../../src/log/segment-removal.ts'
import { plainSegmentFiles } from '../../support/segment-files.ts'

const COUNT = 100

/** @param onTurn before others have theirs. */
function world(onTurn: (partition: { isRemoved: boolean }) => void = () => {}) {
  const steps: string[] = []
  let removedCount = 0
  const partitionOf = (key: number, topicId: number, count: number) => ({
    key,
    spec: { directory: 'home', streamId: 1, topicId },
    logStartOffset: 0n,
    isRemoved: false,
    externals: new Map(),
    areNamesDirty: false,
    segments: Array.from({ length: count }, (_, at) => ({
      path: `${key}/${at}`,
      directory: 'home',
      endOffset: BigInt(at + 1),
      isClosed: at > 0,
    })),
    beginPurge: () => BigInt(count),
    dropBelow(offset: bigint) {
      steps.push(`start ${offset}`)
      this.logStartOffset = offset
    },
  })
  const partition = partitionOf(1, 1, COUNT)
  let broken = ''
  let last: Promise<unknown> = Promise.resolve()
  const fileSystem = {
    unlink(path) {
      if (path === broken) throw new EdgeError('EDGE_IO', 'EIO')
      steps.push('unlink')
    },
  } as Partial<FileSystem> as FileSystem
  const segmentFiles = plainSegmentFiles(fileSystem)
  const { removed } = segmentFiles
  segmentFiles.removed = (segment) => {
    removedCount++
    removed.call(segmentFiles, segment)
  }
  const exclusive = <T>(task: () => Promise<T>): Promise<T> => {
    const run = last.then(task)
    last = run.catch(() => {})
    return run
  }
  const removal = new SegmentRemoval({
    fileSystem,
    segmentFiles,
    descriptors: {
      raiseFloors: async (floors) => void steps.push(`floor ${[...floors.values()].join(' ')}`),
    } as Partial<DescriptorStore> as DescriptorStore,
    scheduler: {
      nextTurn(task) {
        steps.push(`turn, ${partition.segments.length} left`)
        onTurn(partition)
        task()
      },
      after: () => () => {},
    },
    closedSegments: ({ segments }) => segments.map((segment) => segment as unknown as SealedSegment),
    exclusive,
    makeRoom: () => false,
    changed: () => void steps.push('changed'),
    isUnlinkedBeforeFloor: false,
  })
  const breakUnlink = (path: string): void => {
    broken = path
  }
  const loaded = (key: number, topicId: number, count: number) =>
    partitionOf(key, topicId, count) as unknown as LogPartition
  return { steps, partition, loaded, removal, exclusive, breakUnlink, removedCount: () => removedCount }
}

test('nothing is counted as dropped of a partition that is deleted meanwhile', async () => {
  const { steps, partition, removal } = world((each) => {
    each.isRemoved = true
  })
  assert.equal(await removal.dropOldest(partition as unknown as LogPartition, COUNT, null), undefined)
  assert.deepEqual(
    steps.filter((step) => !step.startsWith('turn')),
    [],
  )
})

test('files go a few at a time, the floor first', async () => {
  const { steps, partition, removal, removedCount } = world()
  const [first] = partition.segments
  const dropped = await removal.dropOldest(partition as unknown as LogPartition, COUNT, null)
  assert.deepEqual([dropped?.count, dropped?.endOffset], [COUNT, BigInt(COUNT)])
  // They are counted first: what each holds may have to be read.
  const counting = steps.splice(0, steps.indexOf(`floor ${COUNT}`))
  assert.deepEqual(counting, Array(12).fill(`turn, ${COUNT} left`))
  assert.deepEqual(steps.slice(0, 2), [`floor ${COUNT}`, `start ${COUNT}`])
  assert.equal(steps.filter((step) => step === 'unlink').length, COUNT)
  assert.equal(removedCount(), COUNT, 'no index is kept of what is gone')
  assert.deepEqual(
    steps.filter((step) => step.startsWith('turn')),
    Array(3).fill('turn, 0 left'),
  )
  assert.equal(steps.at(-1), 'changed')
  assert.equal(first?.isClosed, true, 'what is gone grows no more')
})

test('what is asked for at a time costs one record for each topic', async () => {
  const { steps, loaded, removal } = world()
  await Promise.all([
    removal.purge(loaded(1, 1, 3)),
    removal.purge(loaded(2, 2, 4)),
    removal.dropOldest(loaded(3, 1, 5), 2, null),
  ])
  assert.deepEqual(steps, [
    'floor 3 2',
    ...['start 3', 'start 2', ...Array(5).fill('unlink'), 'changed'],
    'floor 4',
    ...['start 4', ...Array(4).fill('unlink'), 'changed'],
  ])
})

test('what one partition refuses holds up no other of its topic', async () => {
  const { steps, loaded, removal, breakUnlink } = world()
  breakUnlink('1/0')
  const [refused, other] = await Promise.allSettled([removal.purge(loaded(1, 1, 3)), removal.purge(loaded(2, 1, 4))])
  assert.deepEqual([refused?.status, other?.status], ['rejected', 'fulfilled'])
  assert.deepEqual(steps, ['floor 3 4', 'start 3', 'start 4', ...Array(4).fill('unlink'), 'changed'])
})

test('what is asked of a partition twice at a time is looked for when the first has gone', async () => {
  const { steps, loaded, removal } = world()
  const partition = loaded(1, 1, 5)
  const [first, second] = await Promise.all([
    removal.dropOldest(partition, 2, null),
    removal.dropOldest(partition, 2, null),
  ])
  assert.deepEqual([first?.endOffset, second?.endOffset], [2n, 4n])
  assert.deepEqual(
    steps.filter((step) => step.startsWith('floor')),
    ['floor 2', 'floor 4'],
  )
})

test('others that must not run beside have their turn while files go, and a stop does not wait for them', async () => {
  let closed: Promise<void> | undefined
  const { steps, loaded, removal, exclusive } = world(() => {
    void exclusive(async () => void steps.push('repack'))
    closed ??= removal.close()
  })
  const partition = loaded(1, 1, COUNT)
  const first = removal.purge(partition)
  const late = assert.rejects(removal.purge(partition), { code: 'EDGE_SHUTTING_DOWN' })
  await first
  await closed
  await late
  assert.deepEqual(
    steps.filter((step) => step !== 'unlink'),
    ['floor 100', 'start 100', 'turn, 100 left', 'repack', 'changed'],
  )
  assert.ok(steps.filter((step) => step === 'unlink').length < COUNT)
  await assert.rejects(removal.purge(loaded(2, 2, COUNT)), { code: 'EDGE_SHUTTING_DOWN' })
})
