import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'

const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 7) & 255))

function folderWithFile(context: TestContext): string {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-at-hand-'))
  context.after(() => fs.rmSync(folder, { recursive: true }))
  fs.writeFileSync(join(folder, 'file'), bytes)
  return folder
}

describe('a read of what is at hand', () => {
  test('gives what was just written, from any position', (context) => {
    const file = createNodeFileSystem(folderWithFile(context)).open('file', 'existing')
    context.after(() => file.close())
    for (const [position, size] of [
      [0, 10],
      [4090, 20],
      [50_001, 49_999],
      [0, 100_000],
    ] as const) {
      const target = new Uint8Array(size + 2)
      assert.equal(file.readAtHand(target.subarray(1, size + 1), position), true)
      assert.deepEqual(Buffer.from(target.subarray(1, size + 1)), bytes.subarray(position, position + size))
      assert.deepEqual([target[0], target.at(-1)], [0, 0])
    }
  })

  test('is none beyond the end of the file, nor of one that is closed', (context) => {
    const fileSystem = createNodeFileSystem(folderWithFile(context))
    const file = fileSystem.open('file', 'existing')
    assert.equal(file.readAtHand(new Uint8Array(10), 99_995), false)
    assert.equal(file.readAtHand(new Uint8Array(10), 200_000), false)
    file.close()
    // Gets the closed one's descriptor.
    const next = fileSystem.open('file', 'existing')
    context.after(() => next.close())
    assert.equal(file.readAtHand(new Uint8Array(10), 0), false)
  })
})
