import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryOfMessage, entryOfNote, MAGIC, readEntries } from '../../../../src/sdk/client/spool-format.ts'
import { type Note, NoteLedger } from '../../../../src/sdk/client/spool-notes.ts'

const messageOf = (id: number) =>
  entryOfMessage({ id: BigInt(id), originUs: 1_700_000_000_000_000n, payload: Buffer.from(`reading ${id}`) })
const fileOf = (...entries: Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat([MAGIC, ...entries]))
const idsIn = (file: Uint8Array): number[] => readEntries(file).pending.map(({ id }) => Number(id))

const ENTRIES = [1, 2, 3].map(messageOf)
const NOTED = [
  ...ENTRIES,
  entryOfNote({ kind: 'done', count: 1 }),
  messageOf(4),
  entryOfNote({ kind: 'given-up', count: 1 }),
]

test('what is done with and what was given up leaves the spool', () => {
  assert.deepEqual(idsIn(fileOf(...NOTED)), [2, 4])
})

test('each flipped bit costs the message it lies in at most, and no note counts a message too much', () => {
  const file = fileOf(...NOTED, messageOf(5))
  const lastAt = file.length - messageOf(5).length
  const starts = [1, 2, 3].map((id) => MAGIC.length + (id - 1) * messageOf(1).length)
  for (let at = MAGIC.length; at < lastAt; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const damaged = file.slice()
      damaged[at] = (damaged[at] ?? 0) ^ (1 << bit)
      const ids = idsIn(damaged)
      const isOwn = at >= (starts[1] ?? 0) && at < (starts[2] ?? 0)
      const isFour = at >= lastAt - messageOf(4).length - 13 && at < lastAt - 13
      assert.ok(ids.includes(2) || isOwn, `byte ${at}, bit ${bit}: ${ids}`)
      assert.ok(ids.includes(4) || isFour, `byte ${at}, bit ${bit}: ${ids}`)
      assert.equal(ids.at(-1), 5)
      assert.ok(readEntries(damaged).damagedBytes > 0)
    }
  }
})

test('a torn tail is cut, wherever it is torn, and is no damage', () => {
  const file = fileOf(...ENTRIES)
  const secondEnd = file.length - messageOf(3).length
  for (let length = secondEnd; length < file.length; length++) {
    const { pending, endAt, damagedBytes } = readEntries(file.slice(0, length))
    assert.deepEqual([pending.length, endAt, damagedBytes], [2, secondEnd, 0])
  }
})

test('a last entry that is all there and wrong is damage, and zeros that a power cut left are none', () => {
  const file = fileOf(...ENTRIES)
  const lastAt = file.length - messageOf(3).length
  for (let at = lastAt + 4; at < file.length; at++) {
    const damaged = file.slice()
    damaged[at] = (damaged[at] ?? 0) ^ 1
    const { pending, endAt, damagedBytes } = readEntries(damaged)
    assert.deepEqual([pending.length, endAt, damagedBytes], [2, lastAt, file.length - lastAt])
  }
  assert.equal(readEntries(file.slice().fill(0, lastAt)).damagedBytes, 0)
})

test('behind a hole of unknown length notes count nothing: messages are sent once more instead of lost', () => {
  const hole = new Uint8Array(200).fill(0xff)
  assert.deepEqual(idsIn(fileOf(messageOf(1), hole, messageOf(3), entryOfNote({ kind: 'done', count: 2 }))), [3])
})

test('notes that are owed stay in order, and take no more memory however often one repeats', () => {
  const ledger = new NoteLedger()
  const notes: Note[] = [
    { kind: 'done', count: 1 },
    { kind: 'done', count: 2 },
    { kind: 'given-up', count: 1 },
    { kind: 'given-up', count: 1 },
    { kind: 'given-up', count: 0 },
    { kind: 'done', count: 1 },
  ]
  for (const note of notes) ledger.add(note)
  assert.deepEqual(ledger.notes(), [{ kind: 'done', count: 3 }, ...notes.slice(2)])
  ledger.clear()
  assert.deepEqual(ledger.notes(), [])
})

test('a payload that looks like the beginning of large entries all over does not hold up the search behind damage', () => {
  // At each of its places an entry of a million bytes could begin, of which a sum would have to be made.
  const payload = new Uint8Array(2 * 1024 * 1024)
  for (let at = 0; at + 32 <= payload.length; at += 32) payload.set([0xff, 0xff, 0x0f, 0, 0, 0, 0, 0, 1], at)
  const contrived = entryOfMessage({ id: 2n, originUs: 0n, payload })
  const file = fileOf(messageOf(1), contrived, messageOf(3))
  file[file.length - 100] = (file[file.length - 100] ?? 0) ^ 1
  const before = process.cpuUsage()
  assert.deepEqual(idsIn(file), [1, 3])
  const { user } = process.cpuUsage(before)
  assert.ok(user < 3_000_000, `took ${user} µs`)
})
