import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatByteSize } from '../../../../src/runtime/http/byte-size.ts'

test('sizes read as Iggy writes them, recorded values included', () => {
  const recorded: readonly (readonly [number | bigint, string])[] = [
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1 KB'],
    [1024, '1 KiB'],
    [1500, '1.5 KB'],
    [69_092, '69.092 KB'],
    [1_511_323, '1511.323 KB'],
    [1_572_864, '1.5 MiB'],
    [3_211_776, '3136.5 KiB'],
    [26_400_000, '26.4 MB'],
    [150_949_888, '147412 KiB'],
    [10_482_560, '10236.875 KiB'],
    [2n ** 60n, '1 EiB'],
    [2n ** 64n - 1n, '18446744073709551.615 KB'],
  ]
  for (const [sizeBytes, text] of recorded) assert.equal(formatByteSize(sizeBytes), text)
})

test('every size can be read back exactly', () => {
  const units: Record<string, bigint> = {
    B: 1n,
    KB: 1000n,
    KiB: 1024n,
    MB: 10n ** 6n,
    MiB: 1n << 20n,
    GB: 10n ** 9n,
    GiB: 1n << 30n,
  }
  for (let size = 1; size < 4e9; size = Math.floor(size * 1.37) + 1) {
    const [number = '', unit = ''] = formatByteSize(size).split(' ')
    const [whole = '0', decimals = ''] = number.split('.')
    const thousandths = BigInt(whole) * 1000n + BigInt(decimals.padEnd(3, '0'))
    assert.equal((thousandths * (units[unit] ?? 0n)) / 1000n, BigInt(size))
  }
})
