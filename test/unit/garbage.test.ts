import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collectEverything, collectGarbage } from '../../src/garbage.ts'
import { eventually } from '../support/eventually.ts'

const MIB = 2 ** 20
const arrayBytes = () => process.memoryUsage().arrayBuffers

for (const collect of [collectGarbage, collectEverything]) {
  test(`${collect.name} frees what nothing refers to, and leaves no collector behind`, async () => {
    const before = arrayBytes()
    let bytes: Uint8Array | undefined = new Uint8Array(8 * MIB)
    assert.ok(arrayBytes() >= before + bytes.length)
    bytes = undefined
    collect()
    assert.equal(globalThis.gc, undefined)
    // Memory outside the heap is counted off by a thread of the collector.
    await eventually(() => arrayBytes() < before + MIB, 'the buffer is freed', 2000)
  })
}
