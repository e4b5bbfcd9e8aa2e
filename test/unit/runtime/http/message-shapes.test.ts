import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { sendBody } from '../../../../src/runtime/http/message-shapes.ts'

const BALANCED = { kind: 'balanced', value: '' }
const send = (message: object, partitioning: object = BALANCED) => sendBody({ partitioning, messages: [message] }, '')
const idOf = (id: unknown): bigint | undefined => send({ payload: 'YQ==', id }).messages[0]?.id

test('ids are numbers of 64 bits, decimal text of 128, or hex with or without dashes', () => {
  assert.equal(idOf(42), 42n)
  assert.equal(idOf(18446744073709551615n), 18446744073709551615n)
  assert.equal(idOf('340282366920938463463374607431768211455'), 340282366920938463463374607431768211455n)
  assert.equal(idOf('550e8400-e29b-41d4-a716-446655440000'), 0x550e8400e29b41d4a716446655440000n)
  assert.equal(idOf('550E8400E29B41D4A716446655440000'), 0x550e8400e29b41d4a716446655440000n)
  assert.equal(idOf('12345678901234567890123456789012'), 12345678901234567890123456789012n)
  for (const id of [undefined, null, 0, '0']) assert.equal(idOf(id), 0n)
  for (const id of [-1, 1.5, 18446744073709551616n, 'xyz', '', '340282366920938463463374607431768211456', {}])
    assert.throws(() => idOf(id), /Invalid message ID/)
})

test('headers are sorted by key, the last of equal keys counts, and odd lengths are kept', () => {
  const header = (key: string, value: string, kind = 'string') => ({
    key: { kind: 'string', value: Buffer.from(key).toString('base64') },
    value: { kind, value: Buffer.from(value).toString('base64') },
  })
  const [message] = send({
    payload: 'YQ==',
    user_headers: [header('b', '1'), header('a', '2', 'int32'), header('b', '3')],
  }).messages
  assert.equal(
    Buffer.from(message?.headersBytes ?? []).toString('latin1'),
    '\x02\x01\0\0\0a\x06\x01\0\0\x002\x02\x01\0\0\0b\x02\x01\0\0\x003',
  )
  assert.equal(send({ payload: 'YQ==', user_headers: 'anVuaw==' }).messages[0]?.headersBytes.length, 4)
  for (const user_headers of [undefined, null, []])
    assert.equal(send({ payload: 'YQ==', user_headers }).messages[0]?.headersBytes.length, 0)
  assert.throws(() => send({ payload: 'YQ==', user_headers: { k: {} } }), /expected a sequence/)
})

test('partitioning takes the name that guides use, and refuses lengths that cannot be', () => {
  const codeOf = (kind: string, value: string): string => {
    try {
      send({ payload: 'YQ==' }, { kind, value })
      return 'taken'
    } catch (error) {
      assert.ok(error instanceof EdgeError)
      return error.code
    }
  }
  for (const kind of ['messages_key', 'message_key'])
    assert.equal(send({ payload: 'YQ==' }, { kind, value: 'YQ==' }).partitioning.kind, 'key')
  assert.deepEqual(send({ payload: 'YQ==' }, { kind: 'partition_id', value: 'AQAAAA==' }).partitioning, {
    kind: 'partition',
    partitionId: 1,
  })
  assert.equal(codeOf('messages_key', ''), 'EDGE_KEY_LENGTH_INVALID')
  assert.equal(codeOf('messages_key', Buffer.alloc(256).toString('base64')), 'EDGE_KEY_LENGTH_INVALID')
  assert.equal(codeOf('messages_key', Buffer.alloc(255).toString('base64')), 'taken')
  assert.equal(codeOf('partition_id', 'AAAA'), 'EDGE_COMMAND_MALFORMED')
  assert.throws(() => send({ payload: 'YQ==' }, { kind: 'zzz', value: '' }), /unknown variant `zzz`/)
  assert.throws(() => send({ payload: 'YQ==' }, { kind: 'balanced' }), /missing field `value`/)
})

test('payloads must be there, not empty, and base64', () => {
  for (const message of [{}, { payload: null }, { payload: '' }, { payload: 'YQ' }, { payload: 1 }])
    assert.throws(() => send(message))
})
