import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../../src/clock.ts'
import { EdgeError } from '../../../../src/errors.ts'
import type { Client } from '../../../../src/sdk/client/client.ts'
import { Producer, type ProducerOptions, type Spool, type SpooledMessage } from '../../../../src/sdk/client/producer.ts'
import { errorOfStatus } from '../../../../src/sdk/client/server-error.ts'
import { SDK_DEFAULTS } from '../../../../src/sdk/defaults.ts'
import type { RecordBatch } from '../../../../src/sdk/wire/batch.ts'
import { decodeRecords } from '../../../../src/sdk/wire/messages.ts'

/** A spool in memory; `kept` holds what the next run would find. */
class MemorySpool implements Spool {
  readonly kept: SpooledMessage[]
  readonly pending: readonly SpooledMessage[]
  fault: EdgeError | null = null

  constructor(pending: readonly SpooledMessage[] = []) {
    this.kept = [...pending]
    this.pending = pending
  }

  get ids(): bigint[] {
    return this.kept.map(({ id }) => id)
  }

  async append(message: SpooledMessage): Promise<void> {
    await Promise.resolve()
    if (this.fault !== null) throw this.fault
    this.kept.push(message)
  }

  async acknowledged(count: number): Promise<void> {
    this.kept.splice(0, count)
  }

  async gaveUp(aheadCount: number): Promise<void> {
    this.kept.splice(aheadCount, 1)
  }

  async close(): Promise<void> {}
}

const messages = (count: number): SpooledMessage[] =>
  Array.from({ length: count }, (_, index) => ({ id: BigInt(index + 1), originUs: 1n, payload: new Uint8Array(1) }))

/** A producer whose server takes what `answer` does not throw for; `taken` are the ids of the messages, in order. */
function producing(answer: (ids: readonly bigint[]) => void, spool: Spool, options: Partial<ProducerOptions> = {}) {
  const taken: bigint[] = []
  let attemptCount = 0
  const sendBatch = async (_stream: unknown, _topic: unknown, _partitioning: unknown, batch: RecordBatch) => {
    attemptCount++
    const whole = { skip: 0, take: batch.count, baseOffset: 0n, appendTimeUs: 0n, idSeed: 0n, isClockTrusted: true }
    const ids = [...decodeRecords({ ...batch, ...whole })].map(({ id }) => id)
    answer(ids)
    taken.push(...ids)
    return null
  }
  const client = { clock: systemClock, random: () => 1, messages: { sendBatch }, state: 'connected' }
  const producer = new Producer(client as unknown as Client, {
    stream: 's',
    topic: 't',
    lingerMs: 0,
    spool,
    ...options,
  })
  return { producer, client, taken, attempts: () => attemptCount }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Lets the longest pause between attempts go by `count` times. */
async function pauses(context: TestContext, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    await turn()
    context.mock.timers.tick(SDK_DEFAULTS.producerRetryDelayMaxMs)
  }
  await turn()
}

for (const code of ['EDGE_TOPIC_NOT_FOUND', 'EDGE_TOKEN_EXPIRED', 'EDGE_FORBIDDEN', 'EDGE_CONNECTION_LOST'] as const) {
  test(`what an earlier run left stays in the spool over ${code}, and is sent in its order once that is over`, async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] })
    const spool = new MemorySpool(messages(5))
    let isOver = false
    const { producer, taken, attempts } = producing(() => {
      if (!isOver) throw new EdgeError(code, 'no')
    }, spool)
    const sent = producer.send({ id: 6n, payload: new Uint8Array(1) })
    const told = assert.rejects(sent, { code, details: { isKept: true } })
    await pauses(context, 10)
    await told
    await producer.flush()
    assert.deepEqual([spool.ids, taken], [[1n, 2n, 3n, 4n, 5n, 6n], []])
    assert.deepEqual([attempts(), producer.heldUpBy?.code, producer.refusedCount], [11, code, 0])
    isOver = true
    await pauses(context, 10)
    assert.deepEqual([spool.ids, taken, producer.heldUpBy], [[], [1n, 2n, 3n, 4n, 5n, 6n], null])
    await producer.close()
  })
}

test('a client that is closed before its producer leaves everything in the spool, and tells the callers', async () => {
  const spool = new MemorySpool()
  const { producer, client, attempts } = producing(
    () => {
      throw new EdgeError('EDGE_SHUTTING_DOWN', 'the client was closed')
    },
    spool,
    { lingerMs: 3_600_000 },
  )
  const sent = Promise.allSettled(messages(5).map((message) => producer.send(message)))
  await turn()
  client.state = 'closed'
  await producer.close()
  const isTold = (each: PromiseSettledResult<unknown>) => each.status === 'rejected' && each.reason.details.isKept
  assert.ok((await sent).every(isTold))
  assert.deepEqual([spool.ids, attempts()], [[1n, 2n, 3n, 4n, 5n], 1])
  await assert.rejects(producer.send({ payload: new Uint8Array(1) }), { code: 'EDGE_SHUTTING_DOWN' })
})

test('of a batch the server refuses for one message the others are taken, and that one is told', async () => {
  const refused: bigint[] = []
  const spool = new MemorySpool(messages(9))
  const { producer, taken } = producing(
    (ids) => {
      if (ids.includes(4n)) throw errorOfStatus(4022, 'send_messages')
    },
    spool,
    { onRefused: ({ id }) => refused.push(id) },
  )
  await producer.flush()
  assert.deepEqual(taken, [1n, 2n, 3n, 5n, 6n, 7n, 8n, 9n])
  assert.deepEqual([refused, producer.refusedCount], [[4n], 1])
  await producer.close()
  assert.deepEqual(spool.ids, [])
})

test('what the spool did not take is not sent', async () => {
  const spool = new MemorySpool()
  spool.fault = new EdgeError('EDGE_IO', 'full')
  const { producer, taken } = producing(() => {}, spool)
  await assert.rejects(producer.send({ id: 1n, payload: new Uint8Array(1) }), { code: 'EDGE_IO' })
  spool.fault = null
  await producer.send({ id: 2n, payload: new Uint8Array(1) })
  assert.deepEqual([taken, producer.bufferedCount, producer.bufferedBytes], [[2n], 0, 0])
  await producer.close()
})
