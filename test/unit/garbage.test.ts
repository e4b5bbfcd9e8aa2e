import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collectEverything, collectGarbage } from '../../src/garbage.ts'

for (const collect of [collectGarbage, collectEverything]) {
  test(`${collect.name} frees what nothing refers to, and leaves no collector behind`, () => {
    const before = process.memoryUsage().arrayBuffers
    let bytes: Uint8Array | undefined = new Uint8Array(8 * 2 ** 20)
    assert.ok(process.memoryUsage().arrayBuffers >= before + bytes.length)
    bytes = undefined
    collect()
    assert.ok(process.memoryUsage().arrayBuffers < before + 2 ** 20)
    assert.equal(globalThis.gc, undefined)
  })
}
