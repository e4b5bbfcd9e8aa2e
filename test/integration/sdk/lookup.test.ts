/** Name servers as they are met in the field: one that drops a kind of question, one that drops all. */
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { askNameServers } from '../../../src/sdk/transport/lookup.ts'

const HEADER_SIZE = 12
const IPV4 = 1
const IPV6 = 28
const RECORDS: Readonly<Record<number, Uint8Array>> = {
  [IPV4]: Uint8Array.of(192, 0, 2, 1),
  [IPV6]: Uint8Array.of(0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
}

/** @returns its address; it answers questions of these types alone, for any name. */
async function nameServer(context: TestContext, answered: readonly number[]): Promise<string> {
  const socket = createSocket('udp4')
  socket.on('message', (question, { port, address }) => {
    const typeAt = question.indexOf(0, HEADER_SIZE) + 1
    const type = question.readUInt16BE(typeAt)
    const data = RECORDS[type]
    if (data === undefined || !answered.includes(type)) return
    const head = Uint8Array.of(...question.subarray(0, 2), 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0)
    const record = Uint8Array.of(0xc0, HEADER_SIZE, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length, ...data)
    socket.send([head, question.subarray(HEADER_SIZE, typeAt + 4), record], port, address)
  })
  await once(socket.bind(0, '127.0.0.1'), 'listening')
  context.after(() => socket.close())
  return `127.0.0.1:${socket.address().port}`
}

const NEVER = new AbortController().signal
const FOUR = { address: '192.0.2.1', family: 4 }
const SIX = { address: '2001:db8::1', family: 6 }

test('addresses of both families are given', async (context) => {
  const server = await nameServer(context, [IPV4, IPV6])
  assert.deepEqual(await askNameServers('central.example', NEVER, [server]), [SIX, FOUR])
})

for (const [dropped, answered, found] of [
  ['IPv6', IPV4, FOUR],
  ['IPv4', IPV6, SIX],
] as const) {
  test(`a name server that drops questions for ${dropped} holds nobody up`, async (context) => {
    const server = await nameServer(context, [answered])
    const startMs = performance.now()
    assert.deepEqual(await askNameServers('central.example', NEVER, [server]), [found])
    // A question that is dropped times out after two seconds, and is then asked again.
    assert.ok(performance.now() - startMs < 1900)
  })
}

test('a name server that drops everything is waited for until the lookup is called off', async (context) => {
  const server = await nameServer(context, [])
  const stop = new AbortController()
  const asking = askNameServers('central.example', stop.signal, [server])
  setImmediate(() => stop.abort())
  await assert.rejects(asking, { code: 'ECANCELLED' })
})
