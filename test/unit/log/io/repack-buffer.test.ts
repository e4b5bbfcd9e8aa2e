import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RepackBuffer } from '../../../../src/log/io/repack-buffer.ts'

/** Large enough to be given back. */
const SIZE = 64 * 1024

function manualScheduler() {
  const timers = new Set<() => void>()
  return {
    nextTurn: (task: () => void) => task(),
    after(_milliseconds: number, task: () => void) {
      timers.add(task)
      return () => void timers.delete(task)
    },
    fire() {
      for (const task of [...timers]) task()
    },
    get count() {
      return timers.size
    },
  }
}

test('file after file takes the same buffer', () => {
  const scheduler = manualScheduler()
  const buffer = new RepackBuffer(scheduler)
  const first = buffer.take(SIZE)
  buffer.done()
  const second = buffer.take(SIZE - 20)
  assert.equal(second.bytes.buffer, first.bytes.buffer)
  assert.equal(second.bytes.length, SIZE - 20)
  assert.equal(scheduler.count, 0)
  buffer.done()
  assert.equal(buffer.take(2 * SIZE).bytes.length, 2 * SIZE)
})

test('when no file has come for a while the memory is given back at once', () => {
  const scheduler = manualScheduler()
  const buffer = new RepackBuffer(scheduler)
  const { bytes } = buffer.take(SIZE)
  buffer.done()
  scheduler.fire()
  assert.equal(bytes.length, 0)
  assert.equal(buffer.take(SIZE).bytes.length, SIZE)
  buffer.release()
  assert.equal(scheduler.count, 0)
})

test('a file that failed before it took the buffer leaves no timer behind', () => {
  const scheduler = manualScheduler()
  const buffer = new RepackBuffer(scheduler)
  buffer.take(SIZE)
  buffer.done()
  buffer.done()
  const { bytes } = buffer.take(SIZE)
  assert.equal(scheduler.count, 0)
  scheduler.fire()
  assert.equal(bytes.length, SIZE)
})
