/** Bytes of a disk that nobody wrote so: each decoder gives something or nothing, and takes no memory for what they announce. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatStore,
  formatStream,
  formatTopic,
  parseStore,
  parseStream,
  parseTopic,
} from '../../../src/log/catalog/descriptor.ts'
import {
  BATCH_HEADER_SIZE,
  batchSizeAt,
  decodeBatchHeader,
  decodeTag,
  encodeTag,
} from '../../../src/log/core/batch-header.ts'
import { areaOf } from '../../../src/log/core/byte-area.ts'
import {
  decodeGroupHeader,
  decodeJournalHeader,
  encodeJournalHeader,
  GROUP_HEADER_SIZE,
  JOURNAL_HEADER_SIZE,
} from '../../../src/log/core/journal-format.ts'
import {
  decodeBlockHeader,
  decodeSegmentHeader,
  decodeSegmentTrailer,
  parseSegmentName,
  SEGMENT_TRAILER_SIZE,
} from '../../../src/log/core/segment-format.ts'
import { decodeTrail, encodeTrailRow, TRAIL_ROW_BYTES } from '../../../src/log/metadata/trail-rows.ts'
import { bytesOf, countDecoded, textOf } from '../../support/mutated-bytes.ts'
import { topicOptions } from '../../support/topic-options.ts'

const ROUNDS = 30_000

test('descriptors of stores, streams and topics', () => {
  const partitions = [1, 2].map((key) => ({ key, createdAtUs: 5n, floorOffset: 9n, idSeed: 7n }))
  const samples = [
    formatStore({ storeId: new Uint8Array(16), createdAtUs: 5n, nextKeyFloor: 3, keyCheck: null, isRebuilt: false }),
    formatStream({ name: 'plant', createdAtUs: 5n }),
    formatTopic({ name: 'tür', createdAtUs: 5n, options: topicOptions('durable'), partitions }),
  ].map(bytesOf)
  const decoded = countDecoded({ samples, rounds: ROUNDS, seed: 1 }, (bytes) => {
    const text = textOf(bytes)
    return [parseStore(text), parseStream(text), parseTopic(text)].find(({ kind }) => kind === 'sound')
  })
  assert.ok(decoded > 100, `${decoded}`)
})

test('rows of the trail of offsets', () => {
  const trail = Buffer.alloc(3 * TRAIL_ROW_BYTES)
  for (let row = 0; row < 3; row++) {
    const target = trail.subarray(row * TRAIL_ROW_BYTES, (row + 1) * TRAIL_ROW_BYTES)
    encodeTrailRow(target, { partitionKey: row, column: row, offset: 5n }, 3)
  }
  countDecoded({ samples: [trail], rounds: ROUNDS, seed: 2 }, (bytes) => {
    const { rows, damagedCount } = decodeTrail(Buffer.from(bytes))
    assert.ok(rows.length + damagedCount <= 4)
    return rows
  })
})

test('headers, tags and names of journals and segments', () => {
  const header = new Uint8Array(JOURNAL_HEADER_SIZE)
  encodeJournalHeader(areaOf(header), {
    version: 1,
    storeIdBytes: new Uint8Array(16),
    generation: 3,
    salt: 9n,
    keyFloor: 1,
    fileSize: 65_536,
    encryptionKeyId: 0,
    firstSequence: 1,
  })
  const tag = new Uint8Array(64)
  encodeTag(tag, 0, { device: 3, epoch: 77, lane: 1, firstSequence: 5, sequenceCount: 9 })
  const samples = [header, tag, new Uint8Array(512), bytesOf('00000000000000000007-00000003.seg')]
  countDecoded({ samples, rounds: ROUNDS, seed: 4 }, (bytes) => {
    const area = areaOf(bytes)
    decodeJournalHeader(area)
    decodeTag(bytes, 0, bytes.length)
    if (bytes.length >= GROUP_HEADER_SIZE) decodeGroupHeader(area, 0, { generation: 3, salt: 9n }, 4096, 65_536)
    if (bytes.length >= BATCH_HEADER_SIZE) {
      batchSizeAt(area, 0)
      decodeBatchHeader(area, 0, bytes.length)
    }
    decodeSegmentHeader(area)
    decodeBlockHeader(area, 0, 7, 64, 1000)
    if (bytes.length >= SEGMENT_TRAILER_SIZE) decodeSegmentTrailer(area, 7, bytes.length)
    return parseSegmentName(textOf(bytes))
  })
})
