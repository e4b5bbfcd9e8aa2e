import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import { createDeadLetters, DEAD_LETTER_STREAM, DEAD_LETTER_TOPIC } from '../../../src/runtime/dead-letters.ts'
import { headerScalarOf, stringHeader } from '../../../src/sdk/wire/header-values.ts'
import { decodeRecords } from '../../../src/sdk/wire/messages.ts'
import { decodeUserHeaders, encodeUserHeaders } from '../../../src/sdk/wire/user-headers.ts'
import { createBrokerWorld } from '../../support/broker-world.ts'

const LETTER = {
  route: 'sensors/* > central:site-7/{topic}',
  streamName: 'sensors',
  topicName: 'climate',
  partitionId: 2,
  offset: 41n,
  payloadBytes: new TextEncoder().encode('poison'),
  userHeadersBytes: encodeUserHeaders([{ key: stringHeader('unit'), value: stringHeader('Cel') }]),
  originUs: 1_800_000_000_000_000n,
  reason: new EdgeError('EDGE_MESSAGE_TOO_LARGE', 'x'.repeat(400)),
}

describe('a record that an upstream refuses for good', () => {
  it('is kept with its bytes, its headers, where it came from and why it was refused', async () => {
    const { broker } = await createBrokerWorld()
    const sink = createDeadLetters(broker)
    await sink.add(LETTER)
    await sink.add({ ...LETTER, offset: 42n, userHeadersBytes: null })
    const partition = broker.partition(DEAD_LETTER_STREAM, DEAD_LETTER_TOPIC, 0)
    assert.ok(partition !== undefined)
    const { batches } = await partition.read({ fromOffset: 0n, maxCount: 10, maxBytes: 1e6 })
    const [first, second] = batches.flatMap((batch) => decodeRecords(batch))
    assert.ok(first !== undefined && second !== undefined)
    assert.equal(new TextDecoder().decode(first.payloadView), 'poison')
    const headers = new Map(
      decodeUserHeaders(first.userHeadersView).map(({ key, value }) => [headerScalarOf(key), headerScalarOf(value)]),
    )
    assert.equal(headers.get('unit'), 'Cel')
    assert.equal(headers.get('dead_letter.offset'), '41')
    assert.equal(headers.get('dead_letter.code'), 'EDGE_MESSAGE_TOO_LARGE')
    assert.ok(String(headers.get('dead_letter.reason')).length <= 255)
    assert.equal(decodeUserHeaders(second.userHeadersView).length, 7)
  })

  it('is kept also when it comes first with others, or its own headers leave no room for more', async () => {
    const { broker } = await createBrokerWorld()
    const sink = createDeadLetters(broker)
    await Promise.all([sink.add(LETTER), sink.add({ ...LETTER, offset: 42n })])
    const header = { key: stringHeader('k'), value: stringHeader('v'.repeat(239)) }
    const userHeadersBytes = encodeUserHeaders(Array.from({ length: 400 }, () => header))
    assert.equal(userHeadersBytes.length, 100_000)
    await sink.add({ ...LETTER, userHeadersBytes })
    const partition = broker.partition(DEAD_LETTER_STREAM, DEAD_LETTER_TOPIC, 0)
    const { batches } = (await partition?.read({ fromOffset: 0n, maxCount: 10, maxBytes: 1e6 })) ?? { batches: [] }
    const records = batches.flatMap((batch) => decodeRecords(batch))
    assert.equal(records.length, 3)
    assert.deepEqual(records[2]?.userHeadersView.slice(), userHeadersBytes)
  })

  it('is not kept once more when the dead letters themselves are carried and refused', async () => {
    const { broker } = await createBrokerWorld()
    const sink = createDeadLetters(broker)
    await sink.add(LETTER)
    await sink.add({ ...LETTER, streamName: DEAD_LETTER_STREAM, topicName: DEAD_LETTER_TOPIC, offset: 0n })
    assert.equal(broker.partition(DEAD_LETTER_STREAM, DEAD_LETTER_TOPIC, 0)?.nextOffset, 1n)
  })
})
