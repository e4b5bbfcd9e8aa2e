/** XXH3-64 and XXH32 against an independent implementation, at every length that has a form of its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createXXHash3, createXXHash32 } from 'hash-wasm'
import { JsKernel } from '../../../../src/sdk/wire/kernel/js-kernel.ts'
import { WasmKernel } from '../../../../src/sdk/wire/kernel/wasm-kernel.ts'
import { partitionOfKey, xxh32, xxh32OfText } from '../../../../src/sdk/wire/xxh32.ts'
import keyPartitioning from '../../../fixtures/iggy/key-partitioning.json' with { type: 'json' }
import { seededRandom } from './support/random.ts'

const KERNELS = [new JsKernel(), new WasmKernel()]
const oracle3 = await createXXHash3(0)
const oracle32 = await createXXHash32(0)

function assertXxh3(bytes: Uint8Array): void {
  const expected = BigInt(`0x${oracle3.init().update(bytes).digest('hex')}`)
  for (const kernel of KERNELS) assert.equal(kernel.xxh3(bytes), expected, `${kernel.kind}, ${bytes.length} bytes`)
}

test('XXH3-64 is exact at every length from 0 to 1,300 for zeros, ones and random bytes', () => {
  const random = seededRandom(1)
  for (let length = 0; length <= 1300; length++) {
    assertXxh3(new Uint8Array(length))
    assertXxh3(new Uint8Array(length).fill(255))
    assertXxh3(random.bytes(length))
  }
})

test('XXH3-64 is exact around each block boundary of long inputs and beyond the kernel memory', () => {
  const random = seededRandom(2)
  for (const length of [2047, 2048, 2049, 4096, 4097, 65_535, 65_536, 1_000_001, 3 * 1024 * 1024 + 5]) {
    assertXxh3(random.bytes(length))
  }
})

test('XXH3-64 reads from any alignment and from within the kernel memory', () => {
  const random = seededRandom(3)
  const wasm = new WasmKernel()
  const region = wasm.reserve(600)
  for (let shift = 0; shift < 9; shift++) {
    const bytes = random.bytes(300)
    region.set(bytes, shift)
    const expected = new JsKernel().xxh3(bytes)
    assert.equal(wasm.xxh3(region.subarray(shift, shift + 300)), expected)
  }
})

test('XXH32 is exact at every length from 0 to 300', () => {
  const random = seededRandom(4)
  for (let length = 0; length <= 300; length++) {
    for (const bytes of [new Uint8Array(length), new Uint8Array(length).fill(255), random.bytes(length)]) {
      assert.equal(xxh32(bytes), Number.parseInt(oracle32.init().update(bytes).digest('hex'), 16), `${length} bytes`)
    }
  }
})

test('keys land in the partitions that real servers chose', () => {
  for (const key of keyPartitioning.keys) {
    const bytes = Uint8Array.fromBase64(key.key_base64)
    assert.equal(xxh32(bytes), key.xxhash32)
    assert.equal(partitionOfKey(bytes, keyPartitioning.partitions), key.partition)
  }
  assert.equal(xxh32OfText('order-key-1'), 0x0d3fe0e1)
  assert.equal(xxh32OfText('a'), 0x550d7456)
})
