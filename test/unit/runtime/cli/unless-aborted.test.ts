import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unlessAborted } from '../../../../src/runtime/cli/unless-aborted.ts'

function thing() {
  const closed = Promise.withResolvers<void>()
  return { closed: closed.promise, [Symbol.asyncDispose]: async () => closed.resolve() }
}

test('a start that is not over ends with the signal, and what comes of it later is closed', async () => {
  for (const isBefore of [true, false]) {
    const start = Promise.withResolvers<ReturnType<typeof thing>>()
    const stop = new AbortController()
    if (isBefore) stop.abort()
    const result = unlessAborted(start.promise, stop.signal)
    stop.abort()
    assert.equal(await result, null)
    const late = thing()
    start.resolve(late)
    await late.closed
  }
})

test('without a signal the start is what it is, also when it fails', async () => {
  const { signal } = new AbortController()
  const started = thing()
  assert.equal(await unlessAborted(Promise.resolve(started), signal), started)
  await assert.rejects(unlessAborted(Promise.reject(new Error('no')), signal), /no/)
})
