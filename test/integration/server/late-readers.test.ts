import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../../../src/runtime/broker/index.ts'
import { writeRequestFrame } from '../../../src/sdk/wire/classic/frame.ts'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import type { Request } from '../../../src/sdk/wire/commands/index.ts'
import { encodeRecords } from '../../../src/sdk/wire/messages.ts'
import { Writer } from '../../../src/sdk/wire/writer.ts'
import { RawClient, startProtocolServer } from '../../support/protocol-server.ts'

const LOGIN = Buffer.from('1600000026000000046967677904696767790000000000000000', 'hex')
/** 30 polls of 400 messages of 1 KiB: 13 MB, more than the buffers of a socket hold. */
const LATE_MESSAGES = 400
const LATE_POLLS = 30

function frameOf(request: Request): Uint8Array {
  const writer = new Writer()
  writeRequestFrame(writer, request)
  return writer.toBytes()
}

function sendFrame(count: number): Uint8Array {
  const messages = Array.from({ length: count }, (_, i) => ({ originUs: BigInt(i), payload: Buffer.alloc(1024, i) }))
  const partitioning = { kind: 'partition', partitionId: 0 } as const
  return frameOf({
    code: CODE.sendMessages,
    body: { stream: 's', topic: 't', partitioning, batch: encodeRecords(messages) },
  })
}

function pollFrame(count: number, kind: 'first' | 'last' = 'first'): Uint8Array {
  const strategy = { kind }
  const consumer = { kind: 'consumer', id: 1 } as const
  const body = { consumer, stream: 's', topic: 't', partitionId: 0, strategy, count, autoCommit: false }
  return frameOf({ code: CODE.pollMessages, body })
}

test('connections that read late get every byte as it was, while others are served', async () => {
  await using running = await startProtocolServer()
  const root: Caller = { dialect: 'http', userId: 0, client: null }
  await running.broker.createStream(root, 's')
  await running.broker.createTopic(root, 's', { name: 't', partitionCount: 1, options: {} })
  using writer = await RawClient.connect(running.listener.port)
  writer.write(Buffer.concat([LOGIN, sendFrame(LATE_MESSAGES)]))
  for (let replies = 0; replies < 2; replies++) assert.equal((await writer.readClassic()).status, 0)
  writer.write(pollFrame(LATE_MESSAGES))
  const { frame: expected } = await writer.readClassic()

  using late = await RawClient.connect(running.listener.port)
  late.socket.pause()
  late.write(LOGIN)
  for (let polls = 0; polls < LATE_POLLS; polls++) late.write(pollFrame(LATE_MESSAGES))
  // More than socket buffers take: the server waits for this peer, and for it alone.
  for (let polls = 0; polls < 50; polls++) {
    writer.write(pollFrame(LATE_MESSAGES - 1, 'last'))
    assert.equal((await writer.readClassic()).status, 0)
  }
  late.socket.resume()
  assert.equal((await late.readClassic()).status, 0)
  for (let polls = 0; polls < LATE_POLLS; polls++) assert.deepEqual((await late.readClassic()).frame, expected)
})
