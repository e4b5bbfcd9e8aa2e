/** A server of the older generation, which answers a poll with all it was asked for, however much that is. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { connect } from '../../../src/sdk/index.ts'
import {
  classicRequestShape,
  decodeRequestFrame,
  MAX_CLASSIC_FRAME_BYTES,
  writeReplyFrame,
} from '../../../src/sdk/wire/classic/frame.ts'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import { decodeCommand } from '../../../src/sdk/wire/commands/index.ts'
import { FrameAssembler } from '../../../src/sdk/wire/frame-assembler.ts'
import { encodeRecords } from '../../../src/sdk/wire/messages.ts'
import { Writer } from '../../../src/sdk/wire/writer.ts'

const MESSAGE_COUNT = 12
/** What fits into the largest answer; of more the head is sent, and that is as far as a client reads. */
const FITTING_COUNT = 7

/** @returns its port, and the counts of all polls. */
async function serve(context: TestContext): Promise<{ port: number; counts: number[] }> {
  const counts: number[] = []
  const server = createServer((socket) => {
    const frames = new FrameAssembler(classicRequestShape)
    socket.on('error', () => {})
    socket.on('data', (bytes: Buffer) => {
      frames.push(bytes)
      for (let frame = frames.next(); frame !== undefined; frame = frames.next()) answer(socket, frame, counts)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => server.close())
  return { port: (server.address() as AddressInfo).port, counts }
}

function answer(socket: Socket, frame: Uint8Array, counts: number[]): void {
  const { code, payloadView } = decodeRequestFrame(frame)
  const request = decodeCommand('classic', code, payloadView)
  const writer = new Writer()
  if (request.code === CODE.loginUser) {
    writeReplyFrame(writer, CODE.loginUser, { userId: 0 })
  } else if (request.code === CODE.pollMessages) {
    const { count, strategy } = request.body
    counts.push(count)
    if (count > FITTING_COUNT) {
      writer.u32(0)
      writer.u32(MAX_CLASSIC_FRAME_BYTES + 1)
    } else {
      writeReplyFrame(writer, CODE.pollMessages, polled(strategy.kind === 'offset' ? strategy.offset : 0n, count))
    }
  } else {
    // Nothing is stored.
    writer.zeros(8)
  }
  socket.write(writer.toBytes())
}

function polled(baseOffset: bigint, most: number) {
  const count = Math.min(most, MESSAGE_COUNT - Number(baseOffset))
  const head = { partitionId: 0, currentOffset: BigInt(MESSAGE_COUNT - 1), messageCount: count }
  if (count === 0) return { ...head, batches: [] }
  const batch = encodeRecords(Array.from({ length: count }, () => ({ payload: new Uint8Array(2 ** 22), originUs: 1n })))
  const stored = { baseOffset, appendTimeUs: 1n, idSeed: 1n, skip: 0, take: count, isClockTrusted: true }
  return { ...head, batches: [{ ...batch, ...stored }] }
}

test('a consumer whose poll would be answered with more than it takes asks for fewer messages', async (context) => {
  const { port, counts } = await serve(context)
  const client = await connect(
    `iggy://iggy:iggy@127.0.0.1:${port}?generation=classic&heartbeat_interval=1h&reconnection_interval=10ms`,
  )
  context.after(() => client.close())
  const offsets: bigint[] = []
  for await (const { offset } of client.consumer({ stream: 0, topic: 0, partitionId: 0, batchCount: 20 })) {
    offsets.push(offset)
    if (offsets.length === MESSAGE_COUNT) break
  }
  assert.deepEqual(
    offsets,
    Array.from({ length: MESSAGE_COUNT }, (_, at) => BigInt(at)),
  )
  assert.deepEqual(counts, [20, 10, 5, 7])
  assert.ok(
    counts.slice(2).every((count) => count <= FITTING_COUNT),
    String(counts),
  )
})
