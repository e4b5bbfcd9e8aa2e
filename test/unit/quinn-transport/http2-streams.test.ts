import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { destroyAfterClose } from '../../../src/quinn-transport/http2-streams.ts'

function fakeStream() {
  const calls: string[] = []
  const stream = {
    destroyed: false,
    close: () => void calls.push('close'),
    destroy(error?: Error) {
      calls.push(error === undefined ? 'destroy' : error.message)
      stream.destroyed = true
      return stream
    },
  }
  destroyAfterClose(stream as unknown as Parameters<typeof destroyAfterClose>[0])
  return { stream, calls }
}

test('a destroy in the turn of a close happens later, once, and not when the stream has ended by itself', (context) => {
  mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  context.after(() => mock.timers.reset())
  const { stream, calls } = fakeStream()
  stream.close()
  stream.destroy()
  assert.deepEqual(calls, ['close'])
  mock.timers.tick(100)
  assert.deepEqual(calls, ['close', 'destroy'])

  const ended = fakeStream()
  ended.stream.close()
  ended.stream.destroy()
  ended.stream.destroyed = true
  mock.timers.tick(100)
  assert.deepEqual(ended.calls, ['close'])
})

test('every other destroy happens at once', (context) => {
  mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  context.after(() => mock.timers.reset())
  const { stream, calls } = fakeStream()
  stream.destroy()
  const failed = fakeStream()
  failed.stream.close()
  failed.stream.destroy(new Error('reset by peer'))
  const later = fakeStream()
  later.stream.close()
  mock.timers.tick(1)
  later.stream.destroy()
  assert.deepEqual([calls, failed.calls, later.calls], [['destroy'], ['close', 'reset by peer'], ['close', 'destroy']])
})
