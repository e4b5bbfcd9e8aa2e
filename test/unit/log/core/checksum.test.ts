import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 as reference } from 'node:zlib'
import { crc32, joinedCrc32 } from '../../../../src/log/core/checksum.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

test('the check value of CRC-32 comes out', () => {
  assert.equal(crc32(new TextEncoder().encode('123456789'), 0, 9, 0), 0xcbf43926)
})

test('every length, start and seed gives what zlib gives', () => {
  const random = new SeededRandom(1)
  const bytes = Uint8Array.from({ length: 200 }, () => random.below(256))
  for (let start = 0; start < 8; start++) {
    for (let end = start; end <= bytes.length; end++) {
      const seed = random.below(2 ** 32)
      assert.equal(crc32(bytes, start, end, seed), reference(bytes.subarray(start, end), seed))
    }
  }
})

test('sums of two pieces make the sum of both, for every length up to 300 and some long ones', () => {
  const random = new SeededRandom(2)
  const bytes = Uint8Array.from({ length: 70_000 }, () => random.below(256))
  const lengths = [...Array.from({ length: 301 }, (_, length) => length), 4096, 20_011, 65_535, 65_536, 69_000]
  for (const length of lengths) {
    const start = random.below(1000)
    const [first, second] = [bytes.subarray(0, start), bytes.subarray(start, start + length)]
    const seed = random.below(2 ** 32)
    const joined = joinedCrc32(reference(first, seed), reference(second), second.length)
    assert.equal(joined, reference(bytes.subarray(0, start + length), seed), `${start} and ${length} bytes`)
  }
})
