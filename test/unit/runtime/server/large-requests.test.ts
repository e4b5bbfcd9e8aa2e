import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ALL_PERMISSIONS } from '../../../../src/runtime/broker/permissions.ts'
import { Connection } from '../../../../src/runtime/server/connection.ts'
import { CODE } from '../../../../src/sdk/wire/codes.ts'
import type { Request } from '../../../../src/sdk/wire/commands/index.ts'
import { PROTOCOL_VERSION } from '../../../../src/sdk/wire/dialect.ts'
import { decodeReplyHead } from '../../../../src/sdk/wire/vsr/frame.ts'
import { writeCommand } from '../../../../src/sdk/wire/vsr/reply.ts'
import { Writer } from '../../../../src/sdk/wire/writer.ts'
import { batchOf } from '../../../support/broker-world.ts'
import { FakeTransport, openConnection } from '../../../support/connection-world.ts'
import { eventually } from '../../../support/eventually.ts'
import { frameOf, JOIN, LOGIN, PING, send } from '../../../support/server-world.ts'

describe('large requests', () => {
  const head = (sizeBytes: number) => {
    const bytes = Buffer.alloc(8)
    bytes.writeUInt32LE(sizeBytes - 4, 0)
    bytes.writeUInt32LE(CODE.sendMessages, 4)
    return bytes
  }

  test('wait unread while others take the budget', async () => {
    await using it = await openConnection(200_000)
    await it.ready()
    it.connection.receive(head(150_000))
    assert.equal(it.transport.isPaused, false)
    // The same budget, another connection.
    const second = new FakeTransport()
    const other = new Connection(it.server, second, () => undefined)
    other.receive(LOGIN)
    await eventually(() => second.writes.length === 1)
    other.receive(head(150_000))
    assert.equal(second.isPaused, true)
    it.connection.closed()
    await eventually(() => !second.isPaused)
    other.closed()
  })

  test('are answered with "try again" when their part does not come in time, and the connection goes on behind them', async () => {
    await using it = await openConnection(200_000)
    await it.ready()
    assert.equal(it.server.budget.take(200_000), true)
    const request = send('x'.repeat(150_000))
    it.connection.receive(request.subarray(0, 1000))
    assert.equal(it.transport.isPaused, true)
    it.sweepAfter(it.server.limits.roomTimeoutMs + 1)
    await eventually(() => it.transport.statuses().length === 1)
    assert.equal(it.transport.isPaused, false)
    it.connection.receive(request.subarray(1000, 100_000))
    it.connection.receive(Buffer.concat([request.subarray(100_000), PING]))
    assert.deepEqual(it.transport.statuses(), [4010, 0])
    assert.equal(it.world.log.partition(1)?.nextOffset, 0n)
    it.server.budget.give(200_000)
    it.connection.receive(request)
    await eventually(() => it.transport.statuses().length === 3)
    assert.deepEqual(it.transport.statuses(), [4010, 0, 0])
    assert.equal(it.server.budget.inUseBytes, 0)
  })

  test('go on when their part comes in the moment in which they would be refused', async () => {
    await using it = await openConnection(200_000)
    await it.ready()
    const second = new FakeTransport()
    const other = new Connection(it.server, second, () => undefined)
    other.receive(LOGIN)
    await eventually(() => second.writes.length === 1)
    it.connection.receive(head(150_000))
    it.world.clock.passMs(it.server.limits.stallTimeoutMs - it.server.limits.roomTimeoutMs)
    const request = send('x'.repeat(150_000))
    other.receive(request.subarray(0, 1000))
    it.world.clock.passMs(it.server.limits.roomTimeoutMs + 1)
    // One look at all connections, as the server's timer does it.
    for (const each of [it.connection, other]) each.sweep(it.world.clock.monotonicUs())
    assert.equal(it.transport.isDestroyed, true)
    await eventually(() => !second.isPaused)
    other.receive(request.subarray(1000))
    await eventually(() => second.statuses().length === 2)
    assert.deepEqual(second.statuses(), [0, 0])
    other.closed()
  })

  test('of the other generation are answered with its own number, by what has come of their head', async () => {
    await using it = await openConnection(200_000)
    const ask = (request: Request, requestNumber: bigint) => {
      const writer = new Writer()
      writeCommand(writer, { clientId: 9n, session: 1n, requestNumber }, request)
      return Buffer.from(writer.toBytes())
    }
    const credentials = { kind: 'password', username: 'iggy', password: 'iggy' } as const
    const version = { protocolVersion: PROTOCOL_VERSION, sdkName: 'test', sdkVersion: '0.11.0' }
    it.connection.receive(ask({ code: CODE.loginRegister, body: { ...version, credentials, context: '' } }, 0n))
    await eventually(() => it.transport.writes.length === 1)
    assert.equal(it.server.budget.take(200_000), true)
    const partitioning = { kind: 'partition', partitionId: 0 } as const
    const body = { stream: 's', topic: 't', partitioning, batch: batchOf([0n, 'x'.repeat(150_000)]) }
    const request = ask({ code: CODE.sendMessages, body }, 7n)
    it.connection.receive(request.subarray(0, 256))
    it.sweepAfter(it.server.limits.roomTimeoutMs + 1)
    await eventually(() => it.transport.writes.length === 2)
    const { status, requestNumber } = decodeReplyHead(it.transport.writes[1] ?? new Uint8Array(0))
    assert.deepEqual({ status, requestNumber }, { status: 58, requestNumber: 7n })
    it.connection.receive(Buffer.concat([request.subarray(256), ask({ code: CODE.ping, body: null }, 8n)]))
    assert.equal(decodeReplyHead(it.transport.writes[2] ?? new Uint8Array(0)).status, 0)
  })

  test('that come drop by drop are given up while others wait, and one over a slow link is not', async () => {
    for (const [bytesPerTurn, isAwaited, isCut] of [
      [1, true, true],
      [1, false, false],
      [70_000, true, false],
    ] as const) {
      await using it = await openConnection(200_000)
      await it.ready()
      const request = send('x'.repeat(150_000))
      it.connection.receive(request.subarray(0, 1000))
      const end = Math.min(request.length, 1000 + 5 * bytesPerTurn)
      const giveUp = isAwaited ? it.server.budget.wait(150_000, () => undefined) : () => undefined
      // A link that is gone for most of the time.
      for (let at = 1000; at < end; at += bytesPerTurn) {
        it.connection.receive(request.subarray(at, at + bytesPerTurn))
        for (let turn = 0; turn < 20; turn++) it.sweepAfter(1000)
      }
      assert.equal(it.transport.isDestroyed, isCut)
      giveUp()
    }
  })

  test('keep their part of the budget while they wait for room in the log', async () => {
    await using it = await openConnection(200_000)
    await it.ready()
    it.world.log.isRoomLeft = false
    it.connection.receive(send('x'.repeat(150_000)).subarray(0, 1000))
    it.connection.receive(send('x'.repeat(150_000)).subarray(1000))
    assert.ok(it.server.budget.inUseBytes > 150_000)
    it.world.clock.passMs(it.server.limits.roomTimeoutMs + 1)
    it.connection.sweep(it.world.clock.monotonicUs())
    await eventually(() => it.transport.statuses().length === 1)
    assert.equal(it.server.budget.inUseBytes, 0)
  })

  test('are sends: a command of that size is refused before its lists become objects, and the connection goes on', async () => {
    await using it = await openConnection()
    await it.ready()
    const rights = { readTopics: true, pollMessages: true, sendMessages: true }
    const topics = Array.from({ length: 40_000 }, (_, topicId) => ({
      ...rights,
      topicId,
      manageTopic: true,
      readTopic: true,
    }))
    const stream = { ...rights, streamId: 1, manageStream: true, readStream: true, manageTopics: true, topics }
    const permissions = { ...ALL_PERMISSIONS, streams: [stream] }
    const command = frameOf({ code: CODE.updatePermissions, body: { user: 1, permissions } })
    it.connection.receive(Buffer.concat([command, PING]))
    assert.deepEqual(it.transport.statuses(), [3, 0])
    assert.equal(it.transport.isEnded, false)
  })

  test('that nobody would carry out are refused by their head, and take nothing of the budget', async () => {
    await using it = await openConnection()
    await it.ready()
    const { broker, root } = it.world
    await broker.createUser(root, { username: 'nobody', password: 'nobody', isActive: true, permissions: null })
    const body = { username: 'nobody', password: 'nobody', version: '', context: '' }
    it.connection.receive(frameOf({ code: CODE.loginUser, body }))
    await eventually(() => it.transport.statuses().length === 1)
    const request = send('x'.repeat(150_000))
    it.connection.receive(request.subarray(0, 1000))
    assert.deepEqual(it.transport.statuses(), [0, 41])
    assert.equal(it.server.budget.inUseBytes, 0)
    it.connection.receive(Buffer.concat([request.subarray(1000), PING]))
    assert.deepEqual(it.transport.statuses(), [0, 41, 0])
  })

  test('are not begun for a client that is not logged in, and take nothing of the budget', async () => {
    for (const sizeBytes of [20_000, 150_000]) {
      await using it = await openConnection(200_000)
      it.connection.receive(head(sizeBytes))
      assert.equal(it.transport.isEnded, true)
      assert.deepEqual(it.transport.statuses(), [40])
      assert.equal(it.server.budget.inUseBytes, 0)
    }
  })

  test('of a session that ended are told so: clients log in again on it and repeat them', async () => {
    await using it = await openConnection()
    await it.ready()
    await it.world.broker.createGroup(it.world.root, 's', 't', 'g')
    it.connection.receive(JOIN)
    it.world.clock.passMs(3_600_000)
    await it.world.broker.maintain()
    it.connection.receive(send('x'.repeat(150_000)).subarray(0, 1000))
    assert.deepEqual(it.transport.statuses(), [0, 30])
    assert.equal(it.transport.isEnded, true)
  })
})
