import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Connection } from '../../../../src/runtime/server/connection.ts'
import { MAX_SENDS_IN_FLIGHT } from '../../../../src/runtime/server/defaults.ts'
import { CODE } from '../../../../src/sdk/wire/codes.ts'
import { batchOf } from '../../../support/broker-world.ts'
import { FakeTransport, openConnection } from '../../../support/connection-world.ts'
import { eventually } from '../../../support/eventually.ts'
import { frameOf, JOIN, PING, POLL, send } from '../../../support/server-world.ts'

const STREAMS = frameOf({ code: CODE.getStreams, body: null })

describe('replies', () => {
  test('of one turn leave in one write, in the order of the requests', async () => {
    await using it = await openConnection()
    await it.ready()
    it.connection.receive(Buffer.concat([PING, STREAMS, PING]))
    assert.equal(it.transport.writes.length, 1)
    assert.deepEqual(it.transport.statuses(), [0, 0, 0])
  })

  test('keep their order when the one before takes its time', async () => {
    await using it = await openConnection()
    await it.ready()
    const create = (name: string) => frameOf({ code: CODE.createStream, body: { name, options: [] } })
    it.connection.receive(Buffer.concat([create('x'), create('x'), PING]))
    await eventually(() => it.transport.statuses().length === 3)
    assert.deepEqual(it.transport.statuses(), [0, 1012, 0])
  })

  test('to large polls leave part by part, in order, also to a peer that takes none', async () => {
    await using it = await openConnection()
    await it.ready()
    it.connection.receive(Buffer.concat(Array.from({ length: 5 }, () => send('x'.repeat(100_000)))))
    await eventually(() => it.transport.statuses().length === 5)
    it.transport.writes.length = 0
    it.connection.receive(POLL)
    const whole = Buffer.concat(it.transport.writes)
    assert.equal(whole.length, 8 + 16 + 5 * 100_064)
    assert.ok(it.transport.writes.length > 2)
    it.transport.writes.length = 0
    it.transport.isSlow = true
    it.connection.receive(POLL)
    it.transport.isSlow = false
    it.connection.drained()
    await eventually(() => it.transport.writes.reduce((sum, { length }) => sum + length, 0) === whole.length)
    assert.deepEqual(Buffer.concat(it.transport.writes), whole)
  })

  test('to what is refused come behind those to sends that wait for the disk', async () => {
    const tooLong = Buffer.from('ffffff7f65000000', 'hex')
    const noCommand = Buffer.from('04000000ffff0000', 'hex')
    for (const [refused, end] of [
      [noCommand, false],
      [tooLong, true],
    ] as const) {
      await using it = await openConnection()
      await it.ready()
      it.world.log.holdSyncs = true
      it.connection.receive(Buffer.concat([send(), send(), refused]))
      assert.deepEqual(it.transport.statuses(), [])
      it.world.log.syncNow()
      await eventually(() => it.transport.statuses().length === 3)
      assert.deepEqual(it.transport.statuses(), [0, 0, 3])
      assert.equal(it.transport.isEnded, end)
    }
  })

  test('to a send that is refused without the log come behind those to the sends before it', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.holdSyncs = true
    await it.world.broker.createGroup(it.world.root, 's', 't', 'g')
    it.connection.receive(JOIN)
    it.transport.writes.length = 0
    it.connection.receive(Buffer.concat([send(), send()]))
    it.world.clock.passMs(36_001)
    await it.world.broker.maintain()
    it.connection.receive(send())
    assert.deepEqual(it.transport.statuses(), [])
    it.world.log.syncNow()
    await eventually(() => it.transport.statuses().length === 3)
    assert.deepEqual(it.transport.statuses(), [0, 0, 30])
    assert.equal(it.transport.isEnded, true)
  })

  test('to sends that one sync settles leave together', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.holdSyncs = true
    it.connection.receive(Buffer.concat([send(), send(), send()]))
    assert.equal(it.transport.writes.length, 0)
    it.world.log.syncNow()
    await eventually(() => it.transport.writes.length > 0)
    assert.equal(it.transport.writes.length, 1)
    assert.deepEqual(it.transport.statuses(), [0, 0, 0])
  })

  test('to other commands wait for the sends before them', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.holdSyncs = true
    it.connection.receive(Buffer.concat([send(), STREAMS]))
    assert.equal(it.transport.writes.length, 0)
    it.world.log.syncNow()
    await eventually(() => it.transport.statuses().length === 2)
  })

  test('to a send that is refused come behind the sends that are not answered yet', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.holdSyncs = true
    const refused = frameOf({
      code: CODE.sendMessages,
      body: { stream: 's', topic: 'none', partitioning: { kind: 'balanced' }, batch: batchOf([0n, 'a']) },
    })
    it.connection.receive(Buffer.concat([send(), refused, send()]))
    assert.deepEqual(it.transport.statuses(), [])
    it.world.log.syncNow()
    await eventually(() => it.transport.statuses().length === 3)
    assert.deepEqual(it.transport.statuses(), [0, 2010, 0])
  })
})

describe('a busy log', () => {
  test('stops the reading of who sends, and goes on when there is room', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.isRoomLeft = false
    it.connection.receive(send('waits'))
    assert.equal(it.world.log.partition(1)?.nextOffset, 0n)
    it.connection.receive(Buffer.concat([Buffer.alloc(0), ...Array.from({ length: 900 }, () => send('more'))]))
    assert.equal(it.transport.isPaused, true)
    it.world.log.makeRoom()
    await eventually(() => it.world.log.partition(1)?.nextOffset === 901n)
    await eventually(() => it.transport.statuses().length === 901)
    assert.equal(it.transport.isPaused, false)
  })

  test('is named in the answer when room does not come in time', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.isRoomLeft = false
    it.connection.receive(send())
    it.world.clock.passMs(10_001)
    it.connection.sweep(it.world.clock.monotonicUs())
    await eventually(() => it.transport.statuses().length === 1)
    assert.deepEqual(it.transport.statuses(), [4010])
  })

  test('is named also to who is woken again and again while others are faster', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.isRoomLeft = false
    it.connection.receive(send())
    for (let second = 0; second < 10; second++) {
      it.sweepAfter(1000)
      it.world.log.makeRoom(false)
    }
    assert.deepEqual(it.transport.statuses(), [])
    it.sweepAfter(1000)
    await eventually(() => it.transport.statuses().length === 1)
    assert.deepEqual(it.transport.statuses(), [4010])
  })

  test('that takes nothing at all is asked for its reason', async (context) => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.isRoomLeft = false
    it.world.log.isWritable = false
    const partition = it.world.log.partition(1)
    assert.ok(partition)
    const { mock } = context.mock.method(partition, 'append')
    it.connection.receive(send())
    it.world.clock.passMs(10_001)
    it.connection.sweep(it.world.clock.monotonicUs())
    await eventually(() => it.transport.statuses().length === 1)
    assert.equal(mock.callCount(), 1)
    assert.equal((mock.calls[0]?.error as { code?: string } | undefined)?.code, 'EDGE_APPEND_FAILED')
  })

  test('holds a bounded number of sends of one connection', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.holdSyncs = true
    it.connection.receive(Buffer.concat(Array.from({ length: MAX_SENDS_IN_FLIGHT + 10 }, () => send())))
    assert.equal(it.world.log.partition(1)?.nextOffset, BigInt(MAX_SENDS_IN_FLIGHT))
    it.world.log.holdSyncs = false
    it.world.log.syncNow()
    await eventually(() => it.transport.statuses().length === MAX_SENDS_IN_FLIGHT + 10)
  })
})

describe('a slow peer', () => {
  test('gets no more than it takes, and its requests wait', async () => {
    await using it = await openConnection()
    await it.ready()
    it.transport.isSlow = true
    it.connection.receive(PING)
    it.connection.receive(PING)
    it.connection.receive(PING)
    assert.equal(it.transport.writes.length, 1)
    it.transport.isSlow = false
    it.connection.drained()
    assert.deepEqual(it.transport.statuses(), [0, 0, 0])
  })

  test('finds its replies unchanged however late it takes them, and others are served meanwhile', async () => {
    await using it = await openConnection()
    await it.ready()
    it.transport.isSlow = true
    it.connection.receive(STREAMS)
    const { backlog } = it.transport
    assert.ok(backlog !== null)
    const other = new FakeTransport()
    const connection = new Connection(it.server, other, () => undefined)
    for (let turn = 0; turn < 3; turn++) connection.receive(PING)
    assert.deepEqual(other.statuses(), [0, 0, 0])
    assert.deepEqual(Buffer.from(backlog.view), backlog.bytes)
    connection.closed()
  })

  test('gets the answers to its last sends behind what it has not taken', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.holdSyncs = true
    it.connection.receive(send())
    it.transport.isSlow = true
    it.connection.receive(PING)
    it.world.log.holdSyncs = false
    it.world.log.syncNow()
    await eventually(() => it.transport.writes.length > 0)
    it.connection.receive(PING)
    it.transport.isSlow = false
    it.connection.drained()
    await eventually(() => it.transport.statuses().length === 3)
    assert.deepEqual(it.transport.statuses(), [0, 0, 0])
  })

  test('is given up when it takes nothing for too long, and not while it takes a little', async () => {
    await using it = await openConnection()
    await it.ready()
    it.transport.isSlow = true
    it.connection.receive(STREAMS)
    for (let turn = 0; turn < 10; turn++) {
      it.transport.unsentBytes--
      it.sweepAfter(20_000)
      assert.equal(it.transport.isDestroyed, false)
    }
    it.sweepAfter(30_001)
    assert.equal(it.transport.isDestroyed, true)
  })

  test('that sends on meanwhile without taking anything is given up, too', async () => {
    await using it = await openConnection()
    await it.ready()
    it.transport.isSlow = true
    it.connection.receive(STREAMS)
    it.sweepAfter(1)
    for (let turn = 0; turn < 2; turn++) {
      it.connection.receive(PING)
      it.sweepAfter(15_001)
    }
    assert.equal(it.transport.isDestroyed, true)
  })

  test('is given up when it is silent and its last answer is not acknowledged; one that has it is asked once', async (context) => {
    for (const unacknowledgedBytes of [8, 0, null]) {
      await using it = await openConnection()
      await it.ready()
      const ask = context.mock.fn(() => unacknowledgedBytes)
      it.transport.unacknowledgedBytes = ask
      it.connection.receive(PING)
      for (let second = 0; second < 125; second++) it.sweepAfter(1000)
      assert.equal(it.transport.isDestroyed, unacknowledgedBytes === 8)
      if (unacknowledgedBytes !== 8) assert.equal(ask.mock.callCount(), 1)
    }
  })

  test('keeps its place in a group while it takes a large answer, and while it sends a large request', async () => {
    await using it = await openConnection()
    await it.ready()
    await it.world.broker.createGroup(it.world.root, 's', 't', 'g')
    it.connection.receive(JOIN)
    const isMember = () => it.world.broker.group(it.world.root, 's', 't', 'g')?.members.length === 1
    it.transport.isSlow = true
    it.connection.receive(STREAMS)
    for (let turn = 0; turn < 4; turn++) {
      it.transport.unsentBytes--
      it.sweepAfter(20_000)
      await it.world.broker.maintain()
      assert.ok(isMember(), `after ${turn} turns of taking`)
    }
    it.transport.isSlow = false
    it.transport.unsentBytes = 0
    it.connection.drained()
    const request = send('x'.repeat(50_000))
    for (let at = 0; at < request.length; at += 10_000) {
      it.connection.receive(request.subarray(at, at + 10_000))
      it.sweepAfter(20_000)
      await it.world.broker.maintain()
      assert.ok(isMember(), `after ${at} bytes of a request`)
    }
    it.sweepAfter(37_000)
    await it.world.broker.maintain()
    assert.ok(!isMember())
  })
})

describe('what peers leave unread', () => {
  test('is counted while they do, all parts of it, also when they go away', async (context) => {
    await using it = await openConnection()
    await it.ready()
    it.connection.receive(Buffer.concat(Array.from({ length: 5 }, () => send('x'.repeat(100_000)))))
    await eventually(() => it.transport.statuses().length === 5)
    let leftBytes = 0
    context.mock.method(it.world.broker, 'answersLeft', (changeBytes: number) => {
      leftBytes += changeBytes
    })
    it.transport.isSlow = true
    it.connection.receive(POLL)
    await eventually(() => leftBytes > 500_000)
    it.transport.isSlow = false
    it.connection.drained()
    assert.equal(leftBytes, 0)
    it.transport.isSlow = true
    it.connection.receive(POLL)
    await eventually(() => leftBytes > 500_000)
    it.connection.closed()
    assert.equal(leftBytes, 0)
  })
})

describe('time limits', () => {
  test('a connection that asks for nothing is ended', async () => {
    await using it = await openConnection()
    it.world.clock.passMs(30_001)
    it.connection.sweep(it.world.clock.monotonicUs())
    assert.equal(it.transport.isDestroyed, true)
  })

  test('a request that stops in the middle is given up, an idle client is not', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.clock.passMs(3_600_000)
    it.connection.sweep(it.world.clock.monotonicUs())
    assert.equal(it.transport.isDestroyed, false)
    it.connection.receive(PING.subarray(0, 5))
    it.world.clock.passMs(30_001)
    it.connection.sweep(it.world.clock.monotonicUs())
    assert.equal(it.transport.isDestroyed, true)
  })
})

describe('the end', () => {
  test('of what the peer sends leaves its requests answered', async () => {
    await using it = await openConnection()
    await it.ready()
    it.world.log.holdSyncs = true
    it.connection.receive(send())
    it.connection.ended()
    assert.equal(it.transport.isEnded, false)
    it.world.log.syncNow()
    await eventually(() => it.transport.isEnded)
    assert.deepEqual(it.transport.statuses(), [0])
  })

  test('leaves all groups', async () => {
    await using it = await openConnection()
    await it.ready()
    await it.world.broker.createGroup(it.world.root, 's', 't', 'g')
    it.connection.receive(JOIN)
    assert.equal(it.world.broker.group(it.world.root, 's', 't', 'g')?.members.length, 1)
    it.connection.closed()
    assert.equal(it.world.broker.group(it.world.root, 's', 't', 'g')?.members.length, 0)
  })

  test('of a stale classic session is told by the next answer, then the connection ends', async () => {
    await using it = await openConnection()
    await it.ready()
    await it.world.broker.createGroup(it.world.root, 's', 't', 'g')
    it.connection.receive(JOIN)
    it.world.clock.passMs(36_001)
    await it.world.broker.maintain()
    it.connection.receive(PING)
    it.connection.receive(STREAMS)
    assert.deepEqual(it.transport.statuses(), [0, 0, 30])
    assert.equal(it.transport.isEnded, true)
  })
})
