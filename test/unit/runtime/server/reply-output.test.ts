import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OUTPUT_BUFFER_BYTES } from '../../../../src/runtime/server/defaults.ts'
import { ReplyOutput } from '../../../../src/runtime/server/reply-output.ts'

/** @returns the buffers of as many peers that read slowly at the same time. */
function lentBy(output: ReplyOutput, count: number): Uint8Array[] {
  return Array.from({ length: count }, () => output.lend()).filter((buffer) => buffer !== null)
}

test('when slow peers have read all, replies are put together in the large buffers again', () => {
  const output = new ReplyOutput()
  const first = output.bufferView
  for (const order of ['first lent, first back', 'last lent, first back']) {
    const lent = lentBy(output, 5)
    assert.ok(output.bufferView.length < OUTPUT_BUFFER_BYTES, 'others get one of their own')
    assert.equal(new Set([...lent, output.bufferView]).size, 6, 'no buffer is with two')
    for (const buffer of order.startsWith('last') ? lent.reverse() : lent) output.giveBack(buffer)
    assert.equal(output.bufferView.length, OUTPUT_BUFFER_BYTES, order)
    const again = [...lentBy(output, 2), output.bufferView]
    assert.deepEqual(
      again.map(({ length }) => length),
      [OUTPUT_BUFFER_BYTES, OUTPUT_BUFFER_BYTES, OUTPUT_BUFFER_BYTES],
      order,
    )
    assert.ok(again.includes(first), order)
    for (const buffer of again.slice(0, 2)) output.giveBack(buffer)
  }
})

test('what is being written stays where it is when a larger buffer comes back', () => {
  const output = new ReplyOutput()
  const lent = lentBy(output, 3)
  output.u32(7)
  for (const buffer of lent) output.giveBack(buffer)
  assert.deepEqual([...output.writtenView], [7, 0, 0, 0])
})
