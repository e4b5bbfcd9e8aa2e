import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ByteArea, createArea } from '../../../../src/log/core/byte-area.ts'
import {
  decodeGroupHeader,
  decodeJournalHeader,
  encodeGroupHeader,
  encodeJournalHeader,
  GROUP_FLAG,
  GROUP_HEADER_SIZE,
  JOURNAL_HEADER_SIZE,
  seedOf,
} from '../../../../src/log/core/journal-format.ts'
import { bitsOf, flipped } from '../../../support/flipped-bits.ts'

const FILE = {
  version: 1,
  storeIdBytes: Uint8Array.from({ length: 16 }, (_, index) => index),
  generation: 2 ** 33 + 5,
  salt: 0x0102030405060708n,
  keyFloor: 9,
  fileSize: 8 << 20,
  encryptionKeyId: 0,
  firstSequence: 71,
}

const GROUP = {
  length: 200,
  bodyCrc: 0xaabbccdd,
  generation: FILE.generation,
  position: 4096,
  flags: GROUP_FLAG.isFirst,
  sessionSalt: 0x1112131415161718n,
  sequence: 77,
  previousCrc: 5,
  batchCount: 2,
  durableSequence: 76,
  ordinal: 3,
  boot: 4,
  sessionFirst: 77,
  wallUs: 1_700_000_000_000_000n,
  parent: 2,
  bootHash: 0x99887766,
}

test('a file header has the documented bytes and reads back', () => {
  const area = createArea(JOURNAL_HEADER_SIZE)
  encodeJournalHeader(area, FILE)
  assert.equal(
    area.bytes.toHex(),
    '4544474a01000000000102030405060708090a0b0c0d0e0f0500000002000000080706050403020109000000000080000000000047000000000000001eed6ae2',
  )
  assert.deepEqual(decodeJournalHeader(area), { ...FILE, isMended: false })
})

test('of a file header one flipped bit is put right, in it and in the bytes that keys come from; two are damage', () => {
  const sound = createArea(JOURNAL_HEADER_SIZE)
  encodeJournalHeader(sound, FILE)
  for (const bit of bitsOf(sound)) {
    const area = flipped(sound, bit)
    assert.deepEqual(decodeJournalHeader(area), { ...FILE, isMended: true }, `bit ${bit}`)
    assert.deepEqual(area.bytes, sound.bytes)
    for (const other of bitsOf(sound)) {
      if (other !== bit) assert.equal(decodeJournalHeader(flipped(flipped(sound, bit), other)), undefined)
    }
  }
  assert.equal(decodeJournalHeader(createArea(10)), undefined)
})

test('a group header has the documented bytes and reads back', () => {
  const area = createArea(GROUP_HEADER_SIZE)
  const crc = encodeGroupHeader(area, 0, GROUP, seedOf(FILE.salt))
  assert.equal(
    area.bytes.toHex(),
    '46fa9bb245444747c8000000ddccbbaa050000000200000000100000010000001817161514131211' +
      '4d0000000000000005000000020000004c0000000000000003000000040000004d0000000000000000401e18240a06000200000066778899',
  )
  assert.deepEqual(decodeGroupHeader(area, 0, FILE, 4096, 8192), { ...GROUP, crc, isMended: false })
})

test('of a group header one flipped bit is put right, two are damage', () => {
  const sound = createArea(GROUP_HEADER_SIZE)
  const crc = encodeGroupHeader(sound, 0, GROUP, seedOf(FILE.salt))
  const decode = (area: ByteArea) => decodeGroupHeader(area, 0, FILE, GROUP.position, 8192)
  for (const bit of bitsOf(sound)) {
    const area = flipped(sound, bit)
    assert.deepEqual(decode(area), { ...GROUP, crc, isMended: true }, `bit ${bit}`)
    assert.deepEqual(area.bytes, sound.bytes)
    assert.equal(decode(flipped(flipped(sound, bit), (bit + 7) % (8 * GROUP_HEADER_SIZE))), undefined)
  }
})

test('a group of another file, generation or place is none', () => {
  const area = createArea(GROUP_HEADER_SIZE)
  encodeGroupHeader(area, 0, GROUP, seedOf(FILE.salt))
  assert.equal(decodeGroupHeader(area, 0, { ...FILE, salt: 1n }, 4096, 8192), undefined)
  assert.equal(decodeGroupHeader(area, 0, { ...FILE, generation: 1 }, 4096, 8192), undefined)
  assert.equal(decodeGroupHeader(area, 0, FILE, 4608, 8192), undefined)
  assert.equal(decodeGroupHeader(area, 0, FILE, 4096, 4096 + GROUP.length - 1), undefined)
})
