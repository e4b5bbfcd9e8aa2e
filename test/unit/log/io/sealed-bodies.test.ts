/** Sealed groups and blocks as they lie in a file: documented bytes, and what no longer opens after a change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { areaOf, type ByteArea, createArea } from '../../../../src/log/core/byte-area.ts'
import { crc32 } from '../../../../src/log/core/checksum.ts'
import {
  decodeGroupHeader,
  encodeJournalHeader,
  GROUP_HEADER_SIZE,
  type GroupHeader,
  JOURNAL_HEADER_SIZE,
  seedOf,
} from '../../../../src/log/core/journal-format.ts'
import { blockNonce, groupNonce, NONCE_SIZE, TAG_SIZE } from '../../../../src/log/core/sealed-body.ts'
import { encodeSegmentHeader, SEGMENT_HEADER_SIZE } from '../../../../src/log/core/segment-format.ts'
import { bodyChecksum } from '../../../../src/log/io/checksum.ts'
import { GroupBuilder } from '../../../../src/log/io/group-buffer.ts'
import { openBlockBody, type SealedHeader, sealBlockBody } from '../../../../src/log/io/sealed-blocks.ts'
import { GroupEncoder, openGroup, openGroupInPlace } from '../../../../src/log/io/sealed-groups.ts'
import { createStoreKeys, type FileCipher, keyIdOf, noKeys } from '../../../../src/log/io/store-keys.ts'

const KEY = Uint8Array.from({ length: 32 }, (_, index) => index)
const OTHER_KEY = new Uint8Array(32).fill(9)
const keys = createStoreKeys([KEY], true)
const BODY = new TextEncoder().encode('twenty-four bytes of it!')

const JOURNAL_FILE = {
  version: 1,
  storeIdBytes: new Uint8Array(16).fill(3),
  generation: 5,
  salt: 0x0102030405060708n,
  keyFloor: 9,
  fileSize: 8 << 20,
  encryptionKeyId: keys.currentId,
  firstSequence: 0,
}

const GROUP = {
  generation: 5,
  position: 4096,
  flags: 1,
  sessionSalt: 0x1112131415161718n,
  sequence: 79,
  previousCrc: 5,
  batchCount: 1,
  durableSequence: 76,
  ordinal: 3,
  boot: 4,
  sessionFirst: 77,
  wallUs: 1_700_000_000_000_000n,
  parent: 2,
  bootHash: 0x99887766,
}

const BLOCK: SealedHeader = {
  rawSize: 400,
  batchCount: 5,
  codec: 1,
  flags: 0,
  baseOffset: 1000n,
  endOffset: 1010n,
  firstTimeUs: 5n,
  lastTimeUs: 6n,
  runNumber: 12,
  boot: 2,
  recordCount: 10,
  previousPosition: 0,
  position: 64,
}

function cipherOf(headerView: Uint8Array, from = keys): FileCipher {
  return from.cipherFor(headerView, keys.currentId) ?? assert.fail('the file is sealed')
}

function journalHeader(changes: Partial<typeof JOURNAL_FILE> = {}): Uint8Array {
  const area = createArea(JOURNAL_HEADER_SIZE)
  encodeJournalHeader(area, { ...JOURNAL_FILE, ...changes })
  return area.bytes
}

function segmentHeader(seed: number): Uint8Array {
  const area = createArea(SEGMENT_HEADER_SIZE)
  const { storeIdBytes, encryptionKeyId } = JOURNAL_FILE
  const place = { key: 4, seed, baseOffset: 1000n, runNumber: 12, createdAtUs: 1_700_000_000_000_000n }
  encodeSegmentHeader(area, 0, { version: 1, storeIdBytes, encryptionKeyId, ...place })
  return area.bytes
}

function sealedGroup(cipher = cipherOf(journalHeader())): { bytes: Uint8Array; header: GroupHeader } {
  const builder = new GroupBuilder(createArea(256), 0, 4)
  builder.area.bytes.set(BODY, GROUP_HEADER_SIZE)
  builder.end = GROUP_HEADER_SIZE + BODY.length
  const { bytesView, crc } = new GroupEncoder(bodyChecksum).encode(builder, GROUP, { salt: JOURNAL_FILE.salt, cipher })
  const bytes = new Uint8Array(bytesView)
  const header = decodeGroupHeader(areaOf(bytes), 0, JOURNAL_FILE, GROUP.position, 1 << 20)
  assert.ok(header)
  assert.equal(header.crc, crc)
  return { bytes, header }
}

const isDecryptFailed = (error: unknown): boolean => error instanceof EdgeError && error.code === 'EDGE_DECRYPT_FAILED'
const flipped = (bytes: Uint8Array, at: number): Uint8Array => bytes.with(at, (bytes[at] ?? 0) ^ 1)

test('a sealed group has the documented bytes and opens to what was sealed', () => {
  const { bytes, header } = sealedGroup()
  assert.equal(
    bytes.toHex(),
    '1bcc41924544474788000000a019f0540500000000000000001000000100000018171615141312114f0000000000000005000000010000004c0000000000000003000000040000004d0000000000000000401e18240a06000200000066778899' +
      '16617415ba4a3b8a8413b23392f41a516e1e1251251d6a260bd944390aa16480e9a03858566ad9d1',
  )
  assert.equal(header.length, GROUP_HEADER_SIZE + BODY.length + TAG_SIZE)
  assert.equal(header.bodyCrc, bodyChecksum(bytes, GROUP_HEADER_SIZE, bytes.length, 0))
  assert.deepEqual(new Uint8Array(openGroup(cipherOf(journalHeader()), areaOf(bytes), 0, header)), BODY)
})

test('a sealed block has the documented bytes and opens to what was sealed', () => {
  const cipher = cipherOf(segmentHeader(7))
  let random = 0xa0a0a0a0
  const stored = sealBlockBody(cipher, BLOCK, BODY, () => random++)
  assert.equal(
    stored.toHex(),
    'a0a0a0a0a1a0a0a040000000d2d26adb147415d11798f9b63011031c7ba81ee9d102e481cf34832cbc84e17a61be95b706dc1256',
  )
  assert.deepEqual(new Uint8Array(openBlockBody(cipher, BLOCK, stored)), BODY)
})

test('in a plain file bodies stay as they are', () => {
  assert.equal(noKeys.cipherFor(journalHeader(), 0), undefined)
  assert.equal(
    sealBlockBody(undefined, BLOCK, BODY, () => assert.fail('no nonce is needed')),
    BODY,
  )
  assert.equal(openBlockBody(undefined, BLOCK, BODY), BODY)
})

test('a group does not open after a change of any byte that is authenticated', () => {
  const { bytes, header } = sealedGroup()
  const cipher = cipherOf(journalHeader())
  for (let at = 16; at < bytes.length; at++) {
    const area = areaOf(flipped(bytes, at))
    const changed = at < GROUP_HEADER_SIZE ? headerWithItsSum(area) : header
    // Of another generation, or for another place, it is none of this file.
    if (changed === undefined) assert.ok(at < 28)
    else assert.throws(() => openGroup(cipher, area, 0, changed), isDecryptFailed, `byte ${at}`)
  }
})

/** As whoever changed it would leave it. */
function headerWithItsSum(area: ByteArea): GroupHeader | undefined {
  const sum = crc32(area.bytes, 4, GROUP_HEADER_SIZE, seedOf(JOURNAL_FILE.salt))
  area.view.setUint32(0, sum, true)
  return decodeGroupHeader(area, 0, JOURNAL_FILE, GROUP.position, 1 << 20)
}

test('a group opens with a flipped bit in its header, which decoding puts right', () => {
  const { bytes, header } = sealedGroup()
  const cipher = cipherOf(journalHeader())
  for (let at = 0; at < GROUP_HEADER_SIZE; at++) {
    const area = areaOf(flipped(bytes, at))
    const decoded = decodeGroupHeader(areaOf(area.bytes.slice()), 0, JOURNAL_FILE, GROUP.position, 1 << 20)
    assert.deepEqual(decoded, { ...header, isMended: true })
    assert.deepEqual([...openGroup(cipher, area, 0, header)], [...BODY], `byte ${at}`)
  }
})

test('a group that does not open leaves zeros, in which nothing is found', () => {
  const { bytes, header } = sealedGroup()
  const area = areaOf(flipped(bytes, GROUP_HEADER_SIZE + 3))
  assert.equal(openGroupInPlace(cipherOf(journalHeader()), area, 0, header)?.code, 'EDGE_DECRYPT_FAILED')
  assert.ok(area.bytes.subarray(GROUP_HEADER_SIZE).every((byte) => byte === 0))
})

test('a block does not open with another header, nonce, tag or shorter body', () => {
  const cipher = cipherOf(segmentHeader(7))
  const stored = sealBlockBody(cipher, BLOCK, BODY, () => 1)
  const changes: Partial<SealedHeader>[] = [
    { rawSize: 401 },
    { batchCount: 4 },
    { codec: 0 },
    { flags: 1 },
    { baseOffset: 1001n },
    { endOffset: 1011n },
    { firstTimeUs: 4n },
    { lastTimeUs: 7n },
    { runNumber: 13 },
    { boot: 3 },
    { recordCount: 11 },
    { previousPosition: 8 },
    { position: 72 },
  ]
  for (const change of changes) {
    assert.throws(
      () => openBlockBody(cipher, { ...BLOCK, ...change }, stored),
      isDecryptFailed,
      JSON.stringify(Object.keys(change)),
    )
  }
  for (let at = 0; at < stored.length; at++) {
    assert.throws(() => openBlockBody(cipher, BLOCK, flipped(stored, at)), isDecryptFailed, `byte ${at}`)
  }
  for (let size = 0; size < stored.length; size++) {
    assert.throws(() => openBlockBody(cipher, BLOCK, stored.subarray(0, size)), EdgeError, `${size} bytes`)
  }
})

test('no two files share a key: each byte of a header that its sum covers is part of it', () => {
  const { bytes, header } = sealedGroup()
  const original = journalHeader()
  for (let at = 0; at < 60; at++) {
    const cipher = cipherOf(flipped(original, at))
    assert.throws(() => openGroup(cipher, areaOf(bytes), 0, header), isDecryptFailed, `byte ${at}`)
  }
  const stored = sealBlockBody(cipherOf(segmentHeader(7)), BLOCK, BODY, () => 1)
  assert.throws(() => openBlockBody(cipherOf(segmentHeader(8)), BLOCK, stored), isDecryptFailed)
})

test('another key opens nothing, and without the key it is said which one is missing', () => {
  const { bytes, header } = sealedGroup()
  const other = createStoreKeys([OTHER_KEY], true)
  assert.notEqual(other.currentId, keys.currentId)
  const failure = (from: typeof keys): unknown => {
    try {
      return openGroup(cipherOf(journalHeader(), from), areaOf(bytes), 0, header)
    } catch (error) {
      return error
    }
  }
  const error = failure(other)
  assert.ok(error instanceof EdgeError && error.code === 'EDGE_DECRYPT_FAILED')
  assert.match(error.message, /was not given \(key [0-9a-f]{8}\)/)
  const both = failure(createStoreKeys([OTHER_KEY, KEY], true))
  assert.deepEqual(new Uint8Array(both as Uint8Array), BODY)
})

test('check value and id of a key are documented and say nothing of it', () => {
  assert.deepEqual(keys.checks, ['5b01a41191db59134a7527d48962cc35'])
  assert.equal(keys.currentId, keyIdOf(keys.checks[0] ?? ''))
  assert.equal(createStoreKeys([KEY], false).currentId, 0)
  assert.equal(keyIdOf('0000000011223344556677889900aabb'), 1)
})

test('nonces are twelve bytes: a session and a number in it, or chance and a position', () => {
  assert.equal(groupNonce(GROUP).toHex(), '181716151413121102000000')
  assert.equal(groupNonce({ ...GROUP, sequence: GROUP.sessionFirst + 2 ** 32 + 1 }).toHex(), '181716151413121101000000')
  let random = 1
  assert.equal(blockNonce(64, () => random++).toHex(), '010000000200000040000000')
  const ofSession = new Set(
    Array.from({ length: 20_000 }, (_, k) => groupNonce({ ...GROUP, sequence: 77 + k }).toHex()),
  )
  assert.equal(ofSession.size, 20_000)
  assert.equal(groupNonce(GROUP).length, NONCE_SIZE)
})
