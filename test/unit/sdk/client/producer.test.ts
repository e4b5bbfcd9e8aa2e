import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../../src/clock.ts'
import { EdgeError } from '../../../../src/errors.ts'
import type { Client } from '../../../../src/sdk/client/client.ts'
import { Producer } from '../../../../src/sdk/client/producer.ts'
import { SDK_DEFAULTS } from '../../../../src/sdk/defaults.ts'

test('a producer that tries again for as long as it lives keeps nothing of the attempts', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const listeners = { count: 0 }
  const { addEventListener, removeEventListener } = EventTarget.prototype
  context.mock.method(EventTarget.prototype, 'addEventListener', function (this: EventTarget, ...all: never[]) {
    listeners.count++
    return Reflect.apply(addEventListener, this, all)
  })
  context.mock.method(EventTarget.prototype, 'removeEventListener', function (this: EventTarget, ...all: never[]) {
    listeners.count--
    return Reflect.apply(removeEventListener, this, all)
  })
  let attemptCount = 0
  const sendBatch = async () => {
    attemptCount++
    throw new EdgeError('EDGE_BACKPRESSURE', 'busy')
  }
  const client = { clock: systemClock, random: Math.random, messages: { sendBatch } } as unknown as Client
  const producer = new Producer(client, { stream: 's', topic: 't', retries: null, lingerMs: 0 })
  const sent = producer.send({ payload: new Uint8Array(1) })
  sent.catch(() => {})
  while (attemptCount < 50) {
    context.mock.timers.tick(SDK_DEFAULTS.producerRetryDelayMaxMs)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.ok(listeners.count <= 1, `${listeners.count} listeners`)
  await producer.close(0)
  await assert.rejects(sent, { code: 'EDGE_SHUTTING_DOWN' })
})

test('a second close waits until the first one has sent what was queued', async () => {
  const taken = Promise.withResolvers<null>()
  const client = { clock: systemClock, random: Math.random, messages: { sendBatch: () => taken.promise } }
  const producer = new Producer(client as unknown as Client, { stream: 's', topic: 't', lingerMs: 0 })
  const sent = producer.send({ payload: new Uint8Array(1) })
  let isOver = false
  void producer.close()
  const again = producer.close().then(() => {
    isOver = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(isOver, false)
  taken.resolve(null)
  await Promise.all([sent, again])
})
