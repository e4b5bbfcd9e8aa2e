/** Dropping thousands of segments at once: none is read any more at once, and others have their turn in between. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
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
  const partition = {
    key: 1,
    spec: { directory: 'home' },
    logStartOffset: 0n,
    isRemoved: false,
    externals: new Map(),
    areNamesDirty: false,
    segments: Array.from({ length: COUNT }, (_, at) => ({
      path: `${at}`,
      directory: 'home',
      endOffset: BigInt(at + 1),
      isClosed: at > 0,
    })),
    dropBelow(offset: bigint) {
      steps.push(`start ${offset}`)
    },
  }
  const fileSystem = { unlink: () => void steps.push('unlink') } as Partial<FileSystem> as FileSystem
  const segmentFiles = plainSegmentFiles(fileSystem)
  const { removed } = segmentFiles
  segmentFiles.removed = (segment) => {
    removedCount++
    removed.call(segmentFiles, segment)
  }
  const removal = new SegmentRemoval({
    fileSystem,
    segmentFiles,
    descriptors: {
      raiseFloor: async (_key: number, floor: bigint) => void steps.push(`floor ${floor}`),
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
    exclusive: (task) => task(),
    makeRoom: () => false,
    changed: () => void steps.push('changed'),
    isUnlinkedBeforeFloor: false,
  })
  return { steps, partition, removal, removedCount: () => removedCount }
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
