/** Which header of a journal file counts, when its first page, its copy or both read as something else. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createArea } from '../../../../src/log/core/byte-area.ts'
import {
  encodeGroupHeader,
  encodeJournalHeader,
  FIRST_GROUP_AT,
  GROUP_HEADER_SIZE,
  JOURNAL_HEADER_SIZE,
  PAGE_SIZE,
  seedOf,
} from '../../../../src/log/core/journal-format.ts'
import { bodyChecksum } from '../../../../src/log/io/checksum.ts'
import type { FileSystem } from '../../../../src/log/io/file-system.ts'
import { headerCopyAt } from '../../../../src/log/io/journal-header.ts'
import { type FoundJournal, readJournal } from '../../../../src/log/io/journal-recovery.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'
import { SimDisk } from '../../../support/sim-disk.ts'

const STORE_ID = new Uint8Array(16).fill(7)
const FILE_SIZE = 8 * PAGE_SIZE
const GARBAGE = new Uint8Array(JOURNAL_HEADER_SIZE).fill(0xa5)

interface Life {
  readonly generation: number
  readonly firstSequence: number
}

function headerOf({ generation, firstSequence }: Life): Uint8Array {
  const area = createArea(JOURNAL_HEADER_SIZE)
  const fixed = { version: 1, storeIdBytes: STORE_ID, keyFloor: 1, fileSize: FILE_SIZE, encryptionKeyId: 0 }
  encodeJournalHeader(area, { ...fixed, generation, firstSequence, salt: BigInt(generation) })
  return area.bytes
}

/** Groups without batches, the first of which names the one before as synced. */
function groupsOf(generation: number, sequences: readonly number[]): Uint8Array {
  const area = createArea(FILE_SIZE - 2 * PAGE_SIZE)
  let previousCrc = 0
  for (const [index, sequence] of sequences.entries()) {
    const at = index * PAGE_SIZE
    const session = { sessionSalt: 1n, ordinal: 1, boot: 1, parent: 0, bootHash: 0, sessionFirst: 1, flags: 0 }
    const group = { ...session, generation, sequence, previousCrc, position: FIRST_GROUP_AT + at, batchCount: 0 }
    const body = { length: GROUP_HEADER_SIZE, bodyCrc: 0, durableSequence: sequence, wallUs: 0n }
    previousCrc = encodeGroupHeader(area, at, { ...group, ...body }, seedOf(BigInt(generation)))
  }
  return area.bytes
}

interface FileBytes {
  readonly first: Uint8Array
  readonly copy: Uint8Array
  readonly groups: Uint8Array
}

function found(...files: readonly FileBytes[]): FoundJournal {
  const disk = new SimDisk(new SeededRandom(1), 10 * FILE_SIZE)
  const { fileSystem } = disk.mount({ later: () => {} })
  fileSystem.makeDirectory('journal')
  for (const [number, bytes] of files.entries()) write(fileSystem, `journal/${number}`, bytes)
  return readJournal({ fileSystem, storeIdBytes: STORE_ID, checksum: bodyChecksum })
}

function write(fileSystem: FileSystem, path: string, { first, copy, groups }: FileBytes): void {
  const file = fileSystem.open(path, 'create')
  file.write(new Uint8Array(FILE_SIZE), 0)
  file.write(first, 0)
  file.write(groups, FIRST_GROUP_AT)
  file.write(copy, headerCopyAt(FILE_SIZE))
  file.close()
}

const sequencesOf = ({ scan }: FoundJournal): number[] => scan.chain.map(({ header }) => header.sequence)

const OLDEST = { generation: 1, firstSequence: 1 }

test('a file whose first page is garbage has its groups by the copy of its header, and is made anew in its turn', () => {
  const journal = found({ first: GARBAGE, copy: headerOf(OLDEST), groups: groupsOf(1, [1, 2, 3]) })
  assert.deepEqual([sequencesOf(journal), journal.copiedNames, journal.garbledNames], [[1, 2, 3], ['0'], []])
  assert.deepEqual([journal.generations, journal.firstSequence], [[1], 1])
  assert.equal(journal.files[0]?.hasFailed, true)
})

test('a header that can be read counts, whatever its copy says', () => {
  const next = { generation: 2, firstSequence: 4 }
  const half = { first: headerOf(next), copy: headerOf(OLDEST), groups: groupsOf(1, [1, 2, 3]) }
  const prepared = found(half)
  assert.deepEqual([sequencesOf(prepared), prepared.generations, prepared.copiedNames], [[], [2], []])
  const unprepared = found({ ...half, first: headerOf(OLDEST), copy: headerOf(next) })
  assert.deepEqual([sequencesOf(unprepared), unprepared.generations], [[1, 2, 3], [1]])
})

test('the copy of an earlier life counts as long as no younger file was prepared since', () => {
  const old = { first: GARBAGE, copy: headerOf(OLDEST), groups: groupsOf(1, [1, 2, 3]) }
  const whileLiving = { generation: 2, firstSequence: 1 }
  const beside = found(old, { first: headerOf(whileLiving), copy: GARBAGE, groups: groupsOf(2, []) })
  assert.deepEqual(sequencesOf(beside), [1, 2, 3])
  // Groups 1 to 3 lie in segments, and what came between them and 9 was recycled.
  const since = { generation: 4, firstSequence: 9 }
  const behind = found(old, { first: headerOf(since), copy: headerOf(since), groups: groupsOf(4, [9, 10]) })
  assert.deepEqual(sequencesOf(behind), [9, 10])
})

test('a file with garbage in both places is garbled, one with nothing but zeros was never prepared', () => {
  const garbled = found({ first: GARBAGE, copy: GARBAGE, groups: groupsOf(1, [1]) })
  assert.deepEqual([sequencesOf(garbled), garbled.garbledNames, garbled.files[0]?.hasFailed], [[], ['0'], false])
  const zeros = new Uint8Array(JOURNAL_HEADER_SIZE)
  const blank = found({ first: zeros, copy: zeros, groups: new Uint8Array(PAGE_SIZE) })
  assert.deepEqual([blank.garbledNames, blank.files[0]?.hasFailed], [[], true])
})

test('a group whose flipped bit hides it from the search is found behind the one before it', () => {
  const groups = groupsOf(1, [1, 2, 3])
  for (const at of [0, PAGE_SIZE, 2 * PAGE_SIZE]) groups[at + 4] = (groups[at + 4] ?? 0) ^ 1
  const journal = found({ first: headerOf(OLDEST), copy: headerOf(OLDEST), groups })
  assert.deepEqual(sequencesOf(journal), [1, 2, 3])
})
