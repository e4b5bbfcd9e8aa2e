import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogRoom, Waiters } from '../../../../src/runtime/server/waiters.ts'

test('all that wait are called once, in the order in which they came', () => {
  const waiters = new Waiters()
  const called: string[] = []
  const [first, second] = [() => void called.push('first'), () => void called.push('second')]
  waiters.add(first)
  waiters.add(second)
  waiters.add(first)
  waiters.wake()
  waiters.wake()
  assert.deepEqual(called, ['first', 'second'])
})

test('one that must wait on comes back without being called again at once', () => {
  const waiters = new Waiters()
  let count = 0
  const waitOn = () => {
    count++
    waiters.add(waitOn)
  }
  waiters.add(waitOn)
  waiters.wake()
  assert.equal(count, 1)
  assert.equal(waiters.size, 1)
})

test('one that is gone is not called', () => {
  const waiters = new Waiters()
  const gone = () => assert.fail('it is gone')
  waiters.add(gone)
  waiters.delete(gone)
  waiters.wake()
})

test('the log is asked once for all that wait for room, and again for those that come later', () => {
  const asked: (() => void)[] = []
  const room = new LogRoom({ onceRoom: (callback) => void asked.push(callback) })
  let count = 0
  room.add(() => count++)
  room.add(() => count++)
  assert.equal(asked.length, 1)
  asked[0]?.()
  assert.equal(count, 2)
  room.add(() => count++)
  assert.equal(asked.length, 2)
})
