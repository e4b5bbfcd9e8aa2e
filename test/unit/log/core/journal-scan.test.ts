/** Which groups count: sessions, proof and chain, on groups made by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PAGE_SIZE } from '../../../../src/log/core/journal-format.ts'
import { type FoundFile, type FoundGroup, scanJournal } from '../../../../src/log/core/journal-scan.ts'

interface Written {
  readonly sequence: number
  readonly ordinal: number
  readonly sessionFirst: number
  readonly durableSequence: number
  /** CRC of the group before it. */
  readonly previousCrc: number
  readonly isWhole?: boolean
  readonly parent?: number
}

/** One page each; the CRC of a group is 1000 times its session and its sequence. */
function fileOf(id: number, generation: number, groups: readonly Written[]): FoundFile {
  return { id, generation, groups: groups.map((written, index) => groupOf(written, generation, index)), refused: [] }
}

function groupOf(written: Written, generation: number, index: number): FoundGroup {
  const { sequence, ordinal, sessionFirst, durableSequence, previousCrc, parent = 0 } = written
  const header = {
    length: PAGE_SIZE,
    bodyCrc: 0,
    generation,
    position: PAGE_SIZE * (index + 1),
    flags: 0,
    sessionSalt: BigInt(ordinal),
    sequence,
    previousCrc,
    batchCount: 1,
    durableSequence,
    ordinal,
    boot: 1,
    sessionFirst,
    wallUs: 0n,
    parent,
    bootHash: 0,
    crc: ordinal * 1000 + sequence,
  }
  return { header, isWhole: written.isWhole !== false }
}

const sequencesOf = (files: readonly FoundFile[], rules = {}): string[] =>
  scanJournal(files, rules).chain.map(({ header }) => `${header.ordinal}/${header.sequence}`)

/** Three groups of a session; the last is synced and acked, and nothing was written behind it that says so. */
const BEFORE_KILL = fileOf(0, 1, [
  { sequence: 1, ordinal: 1, sessionFirst: 1, durableSequence: 0, previousCrc: 0 },
  { sequence: 2, ordinal: 1, sessionFirst: 1, durableSequence: 1, previousCrc: 1001 },
  { sequence: 3, ordinal: 1, sessionFirst: 1, durableSequence: 2, previousCrc: 1002 },
])

test('a session whose first group is lost replaces nothing: acked groups before it still count', () => {
  // The next session wrote group 3 again and went on while the disk took its time; the power cut took the first of both.
  const next = fileOf(1, 2, [
    { sequence: 3, ordinal: 2, sessionFirst: 3, durableSequence: 2, previousCrc: 1002, isWhole: false, parent: 1 },
    { sequence: 4, ordinal: 2, sessionFirst: 3, durableSequence: 2, previousCrc: 2003, parent: 1 },
  ])
  assert.deepEqual(sequencesOf([BEFORE_KILL, next]), ['1/1', '1/2', '1/3'])
  assert.deepEqual(sequencesOf([BEFORE_KILL, next], { isAnyHeirTaken: true }), ['1/1', '1/2'], 'the rule is needed')
})

test('a session whose first group is whole replaces what it wrote again', () => {
  const next = fileOf(1, 2, [
    { sequence: 3, ordinal: 2, sessionFirst: 3, durableSequence: 2, previousCrc: 1002, parent: 1 },
    { sequence: 4, ordinal: 2, sessionFirst: 3, durableSequence: 2, previousCrc: 2003, parent: 1 },
  ])
  assert.deepEqual(sequencesOf([BEFORE_KILL, next]), ['1/1', '1/2', '2/3', '2/4'])
})

test('a session that knows its first group as synced replaces older ones though that group is damaged', () => {
  const next = fileOf(1, 2, [
    { sequence: 3, ordinal: 2, sessionFirst: 3, durableSequence: 2, previousCrc: 1002, isWhole: false, parent: 1 },
    { sequence: 4, ordinal: 2, sessionFirst: 3, durableSequence: 3, previousCrc: 2003, parent: 1 },
  ])
  assert.deepEqual(sequencesOf([BEFORE_KILL, next]), ['1/1', '1/2', '2/3', '2/4'])
})

test('a group above the proof that is not whole ends the log, and all behind it is cut', () => {
  const torn = fileOf(0, 1, [
    { sequence: 1, ordinal: 1, sessionFirst: 1, durableSequence: 0, previousCrc: 0 },
    { sequence: 2, ordinal: 1, sessionFirst: 1, durableSequence: 1, previousCrc: 1001, isWhole: false },
    { sequence: 3, ordinal: 1, sessionFirst: 1, durableSequence: 1, previousCrc: 1002 },
  ])
  assert.deepEqual(sequencesOf([torn]), ['1/1'])
})

test('a file full of the smallest groups is followed without going through all of them for each', () => {
  const count = 16_000
  let lookCount = 0
  const groups = Array.from({ length: count }, (_, index): FoundGroup => {
    const previousCrc = index === 0 ? 0 : 1000 + index
    const written = { sequence: index + 1, ordinal: 1, sessionFirst: 1, durableSequence: index, previousCrc }
    const { header, isWhole } = groupOf(written, 1, index)
    return {
      isWhole,
      get header() {
        lookCount++
        return header
      },
    }
  })
  assert.equal(scanJournal([{ id: 0, generation: 1, groups, refused: [] }]).chain.length, count)
  assert.ok(lookCount < 50 * count, `${lookCount} looks at ${count} groups`)
})

test('a group behind the last one that the device does not give may have been acked; elsewhere bad pages hide nothing', () => {
  const place = (page: number) => [{ from: page * PAGE_SIZE, end: (page + 1) * PAGE_SIZE }]
  const hiddenIn = (file: FoundFile, ...others: readonly FoundFile[]) => scanJournal([file, ...others]).hidden
  const end = { fileId: 0, from: 4 * PAGE_SIZE }
  assert.deepEqual(hiddenIn(BEFORE_KILL), [])
  assert.deepEqual(hiddenIn({ ...BEFORE_KILL, refused: place(4) }), [end])
  assert.deepEqual(hiddenIn({ ...BEFORE_KILL, refused: place(5) }), [])
  const torn = { sequence: 4, ordinal: 1, sessionFirst: 1, durableSequence: 3, previousCrc: 1003, isWhole: false }
  const withTorn = { ...BEFORE_KILL, groups: [...BEFORE_KILL.groups, groupOf(torn, 1, 3)] }
  assert.deepEqual(hiddenIn(withTorn), [], 'a torn one is told from one of which a page went bad')
  assert.deepEqual(hiddenIn({ ...withTorn, refused: place(4) }), [end])
  const next = fileOf(1, 2, [{ sequence: 4, ordinal: 1, sessionFirst: 1, durableSequence: 3, previousCrc: 1003 }])
  assert.deepEqual(hiddenIn({ ...BEFORE_KILL, refused: place(4) }, next), [], 'the chain goes on in the next file')
})
