import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatHeaders, parseHeaders } from '../../../../src/runtime/cli/header-text.ts'
import { formatMessageLine, parseMessageLine } from '../../../../src/runtime/cli/message-line.ts'
import { headerScalarOf } from '../../../../src/sdk/wire/header-values.ts'

test('headers of every kind go there and back', () => {
  const text = 'a:string:x:y,b:bool:true,c:int8:-128,d:uint64:18446744073709551615,e:float64:1.5,f:raw:00ff,g:int128:-1'
  const headers = parseHeaders([text])
  assert.equal(formatHeaders(headers), text)
  assert.equal(headerScalarOf(headers[3]?.value ?? assert.fail()), 18446744073709551615n)
})

for (const [text, expected] of [
  ['key', /expected key:kind:value/],
  ['k:colour:red', /kind one of raw, string/],
  ['k:int8:300', /300 does not fit int8/],
  ['k:uint8:-1', /expected a value of uint8/],
  ['k:bool:yes', /expected a value of bool/],
] as const) {
  test(`the header ${text} is refused and says why`, () => assert.throws(() => parseHeaders([text]), expected))
}

test('a message goes to a line and back with every digit and byte', () => {
  const message = {
    stream: 's',
    topic: 't',
    partition: 3,
    offset: 2n ** 63n,
    id: 2n ** 128n - 1n,
    timestampUs: 1_700_000_000_000_001n,
    originUs: 1_700_000_000_000_000n,
    headersBytes: Uint8Array.of(1, 2),
    payload: Uint8Array.of(0, 255, 10),
  }
  const line = formatMessageLine(message)
  assert.ok(!line.includes('\n'))
  const { payload, headersBytes, id, originUs } = message
  assert.deepEqual(parseMessageLine(line, 1), { payload, headersBytes, id, originUs })
})

test('a line needs a payload and nothing else; a bad one is named by its number', () => {
  assert.deepEqual(parseMessageLine('{"payload":"aGk="}', 1).payload, Uint8Array.from(Buffer.from('hi')))
  for (const line of ['{}', 'text', '{"payload":"%"}', '{"payload":"","id":"x"}', 'null'])
    assert.throws(() => parseMessageLine(line, 7), { code: 'EDGE_READING_INVALID', message: /line 7/ })
})
