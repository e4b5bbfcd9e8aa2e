import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../../src/clock.ts'
import { EdgeError } from '../../../../src/errors.ts'
import { collectGarbage } from '../../../../src/garbage.ts'
import type { Client } from '../../../../src/sdk/client/client.ts'
import { Producer, type Spool } from '../../../../src/sdk/client/producer.ts'
import { errorOfStatus } from '../../../../src/sdk/client/server-error.ts'
import { SDK_DEFAULTS } from '../../../../src/sdk/defaults.ts'
import type { RecordBatch } from '../../../../src/sdk/wire/batch.ts'
import { stringHeader } from '../../../../src/sdk/wire/header-values.ts'
import { decodeRecords } from '../../../../src/sdk/wire/messages.ts'

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

test('callers that wait for room get it in the order they came, and before those that come later', async () => {
  const sentOrder: string[] = []
  const sendBatch = async (_stream: unknown, _topic: unknown, _partitioning: unknown, batch: RecordBatch) => {
    const whole = { skip: 0, take: batch.count, baseOffset: 0n, appendTimeUs: 0n, idSeed: 0n, isClockTrusted: true }
    for (const { payloadView } of decodeRecords({ ...batch, ...whole }))
      sentOrder.push(new TextDecoder().decode(payloadView))
    return null
  }
  const client = { clock: systemClock, random: Math.random, messages: { sendBatch } } as unknown as Client
  const producer = new Producer(client, { stream: 's', topic: 't', lingerMs: 0, bufferBytes: 200 })
  const givenOrder: string[] = []
  const callers = ['a', 'b', 'c', 'd', 'e', 'f'].map(async (name) => {
    for (let turn = 0; turn < 5; turn++) {
      const text = `${name}${turn}`
      givenOrder.push(text)
      await producer.send({ payload: new TextEncoder().encode(text) })
    }
  })
  await Promise.all(callers)
  assert.deepEqual(sentOrder, givenOrder)
  await producer.close()
})

test('callers that wait for room are no more than a bound, and all are told when it closes', async () => {
  const client = { clock: systemClock, random: Math.random, messages: { sendBatch: () => new Promise(() => {}) } }
  const producer = new Producer(client as unknown as Client, { stream: 's', topic: 't', bufferBytes: 1 })
  const message = { payload: new Uint8Array(1) }
  const sends = Array.from({ length: 1 + SDK_DEFAULTS.producerMaxWaiting }, () => producer.send(message))
  const settled = Promise.allSettled(sends)
  await assert.rejects(producer.send(message), { code: 'EDGE_BACKPRESSURE' })
  await producer.close(0)
  for (const each of await settled) {
    assert.equal(each.status, 'rejected')
    assert.equal(each.reason.code, 'EDGE_SHUTTING_DOWN')
  }
})

test('a message that no server takes is refused alone, and not with those that it would have been sent with', async () => {
  const counts: number[] = []
  const sendBatch = async (_stream: unknown, _topic: unknown, _partitioning: unknown, { count }: { count: number }) => {
    counts.push(count)
    return null
  }
  const client = { clock: systemClock, random: Math.random, messages: { sendBatch } } as unknown as Client
  const producer = new Producer(client, { stream: 's', topic: 't', lingerMs: 1 })
  const payload = new Uint8Array(1)
  const headers = [{ key: stringHeader('note'), value: stringHeader('') }]
  const [before, bad, after] = [
    producer.send({ payload }),
    producer.send({ payload, headers }),
    producer.send({ payload }),
  ]
  await assert.rejects(bad ?? Promise.resolve(), { code: 'EDGE_FORMAT_INVALID' })
  await Promise.all([before, after])
  assert.deepEqual(counts, [2])
  await producer.close()
})

const PAYLOAD_BYTES = 100

/** A producer that gives up the oldest above `messageCount`, and whose server leaves its first batch without an answer. */
function unanswered(messageCount: number, spool?: Spool) {
  const answer = Promise.withResolvers<null>()
  let batchCount = 0
  const sendBatch = async () => (++batchCount === 1 ? await answer.promise : null)
  const client = { clock: systemClock, random: Math.random, messages: { sendBatch } } as unknown as Client
  const bufferBytes = messageCount * (PAYLOAD_BYTES + 64)
  const options = { stream: 's', topic: 't', lingerMs: 0, bufferBytes, overflow: 'drop-oldest' } as const
  const producer = new Producer(client, spool === undefined ? options : { ...options, spool })
  return { producer, answered: () => answer.resolve(null) }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('messages that are given up while a batch waits for its answer are kept nowhere', async () => {
  const { producer, answered } = unanswered(10)
  const payloads: WeakRef<Uint8Array>[] = []
  for (let index = 0; index < 1000; index++) {
    const payload = new Uint8Array(PAYLOAD_BYTES)
    payloads.push(new WeakRef(payload))
    producer.send({ payload }).catch(() => {})
    if (index % 100 === 0) await turn()
  }
  await turn()
  assert.equal(producer.droppedCount, 990)
  collectGarbage()
  const keptCount = payloads.filter((each) => each.deref() !== undefined).length
  assert.ok(keptCount <= 11, `${keptCount} messages are in memory`)
  answered()
  await producer.close()
})

test('a spool learns at once of what is given up behind a batch', async () => {
  const told: string[] = []
  let appendedCount = 0
  const spool: Spool = {
    pending: [],
    append: async () => {
      // The third one does not come to the disk.
      if (++appendedCount === 3) throw new EdgeError('EDGE_IO', 'full')
    },
    acknowledged: async (count) => void told.push(`done ${count}`),
    gaveUp: async (aheadCount) => void told.push(`given up behind ${aheadCount}`),
    close: async () => {},
  }
  const { producer, answered } = unanswered(2, spool)
  const send = () => producer.send({ payload: new Uint8Array(PAYLOAD_BYTES) })
  const first = send()
  await turn()
  const sent = Promise.allSettled([first, ...Array.from({ length: 5 }, send)])
  await turn()
  assert.equal(producer.droppedCount, 4)
  // Of the one that did not come to the disk there is nothing to tell.
  assert.deepEqual(told, Array(3).fill('given up behind 1'))
  answered()
  await sent
  await producer.close()
  assert.deepEqual(told.slice(3), ['done 1', 'done 1'])
})

test('a flush waits for what was queued before it, not for what goes on coming', {
  timeout: 10_000,
}, async (context) => {
  let takenCount = 0
  const sendBatch = async () => {
    // One more comes with each batch: the queue is never empty.
    producer.send({ payload: new Uint8Array(1) }).catch(() => {})
    await turn()
    takenCount++
    return null
  }
  const client = { clock: systemClock, random: Math.random, messages: { sendBatch } } as unknown as Client
  const producer = new Producer(client, { stream: 's', topic: 't' })
  context.after(() => producer.close(0))
  producer.send({ payload: new Uint8Array(1) }).catch(() => {})
  await producer.flush()
  assert.equal(takenCount, 1)
})

test('halving a batch for one message that the server refuses uses up no attempt of the others', async () => {
  let hasFailed = false
  const sendBatch = async (_stream: unknown, _topic: unknown, _partitioning: unknown, { count }: { count: number }) => {
    if (count > 1) throw errorOfStatus(4022, 'send_messages')
    if (!hasFailed) {
      hasFailed = true
      throw new EdgeError('EDGE_CONNECTION_LOST', 'gone for a moment')
    }
    return null
  }
  const client = { clock: systemClock, random: () => 0, messages: { sendBatch } } as unknown as Client
  const producer = new Producer(client, { stream: 's', topic: 't', retries: 1, lingerMs: 1 })
  await Promise.all(Array.from({ length: 8 }, () => producer.send({ payload: new Uint8Array(1) })))
  await producer.close()
})

test('no message is given up for one that gets no room all the same', async () => {
  const client = { clock: systemClock, random: Math.random, messages: { sendBatch: () => new Promise(() => {}) } }
  const options = { stream: 's', topic: 't', lingerMs: 0, bufferBytes: 500, overflow: 'drop-oldest' } as const
  const producer = new Producer(client as unknown as Client, options)
  const sends = [100, 100].map((sizeBytes) => producer.send({ payload: new Uint8Array(sizeBytes) }))
  const settled = Promise.allSettled(sends)
  await assert.rejects(producer.send({ payload: new Uint8Array(400) }), { code: 'EDGE_BACKPRESSURE' })
  assert.deepEqual([producer.bufferedCount, producer.droppedCount], [2, 0])
  await producer.close(0)
  await settled
})
