import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ByteSession, ByteTransport, StreamCarrier } from '../../../../src/runtime/server/byte-session.ts'
import { MAX_LARGE_ANSWERS, MAX_REFUSED_STREAMS } from '../../../../src/runtime/server/defaults.ts'
import type { ServerContext } from '../../../../src/runtime/server/server-context.ts'
import { STREAM_CLIENT_CODES, StreamClient } from '../../../../src/runtime/server/stream-client.ts'
import { CODE, OPERATION } from '../../../../src/sdk/wire/codes.ts'
import { encodeCommand, type Request } from '../../../../src/sdk/wire/commands/index.ts'
import { PROTOCOL_VERSION } from '../../../../src/sdk/wire/dialect.ts'
import { writeRequest } from '../../../../src/sdk/wire/vsr/frame.ts'
import { Writer } from '../../../../src/sdk/wire/writer.ts'
import type { BrokerWorld } from '../../../support/broker-world.ts'
import { eventually } from '../../../support/eventually.ts'
import { createServerWorld, frameOf, JOIN, LOGIN, PING, POLL, send } from '../../../support/server-world.ts'

class FakeStream implements ByteTransport {
  readonly kind = 'quic'
  readonly address = '127.0.0.1:5'
  readonly writes: Buffer[] = []
  session: ByteSession | null = null
  isSlow = false
  unsentBytes = 0
  isPaused = false
  outcome: 'open' | 'ended' | 'reset' = 'open'

  write(view: Uint8Array): boolean {
    this.writes.push(Buffer.from(view))
    if (this.isSlow) this.unsentBytes += view.length
    return !this.isSlow
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  end(): void {
    this.outcome = 'ended'
  }

  destroy(): void {
    this.outcome = 'reset'
  }

  /** What the peer reads up to the end. */
  get response(): Buffer {
    return Buffer.concat(this.writes)
  }

  get status(): number {
    return this.response.readUInt32LE(0)
  }
}

class FakeCarrier implements StreamCarrier {
  readonly address = '127.0.0.1:5'
  closedWith: number | null = null
  onClosed = () => {}

  close(code: number): void {
    this.closedWith ??= code
    this.onClosed()
  }
}

const ME = frameOf({ code: CODE.getMe, body: null })

const REGISTER: Request = {
  code: CODE.loginRegister,
  body: {
    protocolVersion: PROTOCOL_VERSION,
    sdkName: 'test',
    sdkVersion: '0.11.0',
    credentials: { kind: 'password', username: 'iggy', password: 'iggy' },
    context: '',
  },
}

function vsrFrame(operation: number, request: Request): Buffer {
  const writer = new Writer()
  const { code } = request
  const head = { release: 0, clientId: 9n, requestChecksum: 0n, session: 0n, requestNumber: 0n, operation, code }
  writeRequest(writer, head, (body) => encodeCommand('vsr', request, body))
  return Buffer.from(writer.toBytes())
}

interface World extends AsyncDisposable {
  readonly world: BrokerWorld
  readonly carrier: FakeCarrier
  readonly client: StreamClient
  readonly server: ServerContext
  /** A stream with these bytes and, unless told otherwise, its end. */
  stream(bytes: Uint8Array, options?: { isOpen?: boolean; isSlow?: boolean }): FakeStream
  /** Logged in, with a stream and a topic. */
  ready(): Promise<void>
}

async function connect(): Promise<World> {
  const { world, server, createTopic } = await createServerWorld()
  const carrier = new FakeCarrier()
  const client = new StreamClient(server, carrier, () => {})
  carrier.onClosed = () => client.closed()
  const stream: World['stream'] = (bytes, { isOpen = false, isSlow = false } = {}) => {
    const transport = new FakeStream()
    transport.isSlow = isSlow
    transport.session = client.accept(transport)
    transport.session?.receive(bytes)
    if (!isOpen) transport.session?.ended()
    return transport
  }
  return {
    world,
    carrier,
    client,
    server,
    stream,
    async ready() {
      await createTopic()
      const login = stream(LOGIN)
      await eventually(() => login.outcome === 'ended')
      login.session?.closed()
    },
    async [Symbol.asyncDispose]() {
      client.closed()
      await world[Symbol.asyncDispose]()
    },
  }
}

describe('each stream', () => {
  test('carries one request and gets one response and the end', async () => {
    await using it = await connect()
    await it.ready()
    const stream = it.stream(PING)
    assert.equal(stream.outcome, 'ended')
    assert.equal(stream.response.toString('hex'), '0000000000000000')
  })

  test('is answered before its end is there, and what comes behind the request is not looked at', async () => {
    await using it = await connect()
    const stream = it.stream(Buffer.concat([PING, PING]), { isOpen: true })
    assert.equal(stream.response.length, 8)
    assert.equal(stream.outcome, 'ended')
  })

  test('acts for the user that another stream of the connection has logged in', async () => {
    await using it = await connect()
    assert.equal(it.stream(ME).status, 40)
    await it.ready()
    assert.equal(it.stream(ME).status, 0)
    assert.equal([...it.world.broker.clients(it.world.root)].length, 1)
  })

  test('with a length that cannot be is reset without a response, and the connection lives on', async () => {
    await using it = await connect()
    for (const broken of ['0300000001000000', '00000000c9000000', 'ffffffff01000000', '0400']) {
      const stream = it.stream(Buffer.from(broken, 'hex'))
      assert.equal(stream.outcome, 'reset', broken)
      assert.equal(stream.response.length, 0, broken)
    }
    const short = it.stream(LOGIN.subarray(0, 20))
    assert.equal(short.outcome, 'reset')
    assert.equal(it.stream(PING).status, 0)
    const later = it.stream(Buffer.from('0300000001000000', 'hex'))
    assert.equal(later.outcome, 'reset')
    assert.equal(it.carrier.closedWith, null)
  })

  test('may take its time for the first bytes: what they were in may be lost and sent again', async (context) => {
    await using it = await connect()
    context.mock.timers.enable({ apis: ['setTimeout'] })
    const stream = it.stream(PING.subarray(0, 4), { isOpen: true })
    context.mock.timers.tick(5000)
    stream.session?.receive(PING.subarray(4))
    assert.equal(stream.response.length, 8)
    context.mock.timers.reset()
  })

  test('that brings nothing for too long is reset', async () => {
    await using it = await connect()
    const stream = it.stream(PING.subarray(0, 3), { isOpen: true })
    it.world.clock.passMs(30_001)
    it.client.sweep(it.world.clock.monotonicUs())
    assert.equal(stream.outcome, 'reset')
  })

  test('keeps its response until a slow peer has taken it', async () => {
    await using it = await connect()
    await it.ready()
    const stream = it.stream(ME, { isSlow: true })
    for (let turn = 0; turn < 5; turn++) {
      stream.unsentBytes--
      it.world.clock.passMs(20_000)
      it.client.sweep(it.world.clock.monotonicUs())
      assert.equal(stream.outcome, 'ended')
    }
    it.world.clock.passMs(30_001)
    it.client.sweep(it.world.clock.monotonicUs())
    assert.equal(stream.outcome, 'reset')
  })
})

describe('streams of one connection', () => {
  test('are served side by side: sends wait for the same sync, others pass them', async () => {
    await using it = await connect()
    await it.ready()
    it.world.log.holdSyncs = true
    const sends = [it.stream(send('a')), it.stream(send('b')), it.stream(send('c'))]
    assert.equal(it.world.log.partition(1)?.nextOffset, 3n)
    assert.equal(it.stream(PING).outcome, 'ended')
    assert.ok(sends.every((each) => each.response.length === 0))
    it.world.log.syncNow()
    await eventually(() => sends.every((each) => each.outcome === 'ended'))
    assert.deepEqual(
      sends.map((each) => each.status),
      [0, 0, 0],
    )
  })

  test('of a VSR client are carried out one after another', async () => {
    await using it = await connect()
    const register = it.stream(vsrFrame(OPERATION.register, REGISTER))
    const streams = it.stream(vsrFrame(OPERATION.nonReplicated, { code: CODE.getStreams, body: null }))
    assert.equal(streams.response.length, 0)
    await eventually(() => streams.outcome === 'ended')
    assert.equal(register.outcome, 'ended')
    // Before the login was answered it would have been refused with 40.
    assert.equal(streams.response.readUInt32LE(216), 0)
  })

  test('speak the generation of the first one', async () => {
    await using it = await connect()
    await it.ready()
    const stream = it.stream(vsrFrame(OPERATION.nonReplicated, { code: CODE.ping, body: null }))
    assert.equal(stream.outcome, 'reset')
    assert.equal(stream.response.length, 0)
  })

  test('wait while the peer takes no replies, and go on when it does', async () => {
    await using it = await connect()
    await it.ready()
    for (let i = 0; i < 5; i++) {
      const sent = it.stream(send('x'.repeat(900_000)))
      await eventually(() => sent.outcome === 'ended')
    }
    const slow = it.stream(POLL, { isSlow: true })
    assert.ok(slow.response.length > 4_000_000)
    const waiting = it.stream(ME)
    assert.equal(waiting.outcome, 'open')
    slow.session?.drained()
    await eventually(() => waiting.outcome === 'ended')
  })

  test('keep no share of the budget while their peer takes replies drop by drop', async () => {
    await using it = await connect()
    await it.ready()
    for (let i = 0; i < 5; i++) {
      const sent = it.stream(send('x'.repeat(900_000)))
      await eventually(() => sent.outcome === 'ended')
    }
    const slow = it.stream(POLL, { isSlow: true })
    const request = send('x'.repeat(900_000))
    const waiting = it.stream(request.subarray(0, 1000), { isOpen: true })
    waiting.session?.receive(request.subarray(1000))
    assert.ok(it.server.budget.inUseBytes > 900_000)
    for (let turn = 0; turn < 11; turn++) {
      slow.unsentBytes--
      it.world.clock.passMs(1000)
      it.client.sweep(it.world.clock.monotonicUs())
    }
    await eventually(() => waiting.outcome === 'ended')
    assert.equal(waiting.status, 4010)
    assert.equal(it.server.budget.inUseBytes, 0)
  })
})

test('of streams that are gone nothing waits, whatever they waited for', async () => {
  await using it = await connect()
  await it.ready()
  it.world.log.isRoomLeft = false
  const { room } = it.server
  for (let i = 0; i < 100; i++) {
    const stream = it.stream(send())
    assert.equal(stream.response.length, 0)
    stream.session?.closed()
  }
  assert.equal(room.size, 0)
  const waiting = it.stream(send())
  assert.equal(room.size, 1)
  it.world.log.makeRoom()
  await eventually(() => waiting.outcome === 'ended')
  assert.equal(waiting.status, 0)

  test('with polls that are read for go on a few at a time, also where the client gives them up meanwhile', async () => {
    await using it = await connect()
    await it.ready()
    const answers: (() => void)[] = []
    it.world.broker.poll = () =>
      new Promise((resolve) => {
        answers.push(() => resolve({ partitionId: 0, currentOffset: 0n, messageCount: 0, batches: [] }))
      })
    const polls = Array.from({ length: 10 }, () => it.stream(POLL))
    assert.equal(answers.length, MAX_LARGE_ANSWERS)
    const other = it.stream(ME)
    await eventually(() => other.outcome === 'ended')
    for (const poll of polls.slice(0, -1)) poll.session?.closed()
    const last = polls.at(-1)
    await eventually(() => last?.outcome === 'open')
    assert.equal(answers.length, MAX_LARGE_ANSWERS, 'those are still read for')
    answers[0]?.()
    await eventually(() => answers.length > MAX_LARGE_ANSWERS)
    answers.at(-1)?.()
    await eventually(() => last?.outcome === 'ended')
    assert.equal(answers.length, MAX_LARGE_ANSWERS + 1, 'nobody reads for the others')
  })
})

describe('the connection', () => {
  test('is closed when its streams bring no requests', async () => {
    await using it = await connect()
    for (let i = 0; i < MAX_REFUSED_STREAMS; i++) it.stream(Buffer.from('474554202f', 'hex'))
    await eventually(() => it.carrier.closedWith !== null)
    assert.equal(it.carrier.closedWith, STREAM_CLIENT_CODES.protocolViolation)
    assert.equal(it.client.accept(new FakeStream()), null)
  })

  test('is closed when it asks for nothing', async () => {
    await using it = await connect()
    it.world.clock.passMs(30_001)
    it.client.sweep(it.world.clock.monotonicUs())
    await eventually(() => it.carrier.closedWith === STREAM_CLIENT_CODES.protocolViolation)
  })

  test('takes its client along', async () => {
    await using it = await connect()
    await it.ready()
    await it.world.broker.createGroup(it.world.root, 's', 't', 'g')
    it.stream(JOIN)
    assert.equal(it.world.broker.group(it.world.root, 's', 't', 'g')?.members.length, 1)
    it.client.closed()
    assert.equal(it.world.broker.group(it.world.root, 's', 't', 'g')?.members.length, 0)
    assert.equal([...it.world.broker.clients(it.world.root)].length, 0)
  })

  test('is closed when its client is evicted, once what is being answered has arrived', async () => {
    await using it = await connect()
    await it.ready()
    const { broker, root } = it.world
    await broker.createUser(root, { username: 'other', password: 'secret', isActive: true, permissions: null })
    const login = it.stream(
      frameOf({ code: CODE.loginUser, body: { username: 'other', password: 'secret', version: '', context: '' } }),
    )
    await eventually(() => login.outcome === 'ended')
    await broker.deleteUser(root, 'other')
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(it.carrier.closedWith, null)
    login.session?.closed()
    await eventually(() => it.carrier.closedWith === STREAM_CLIENT_CODES.authFailed)
  })

  test('is closed when a member was silent for too long', async () => {
    await using it = await connect()
    await it.ready()
    await it.world.broker.createGroup(it.world.root, 's', 't', 'g')
    const join = it.stream(JOIN)
    join.session?.closed()
    it.world.clock.passMs(36_001)
    await it.world.broker.maintain()
    await eventually(() => it.carrier.closedWith === STREAM_CLIENT_CODES.authFailed)
  })

  test('ends with the server: open requests are answered, others reset', async () => {
    await using it = await connect()
    await it.ready()
    it.world.log.holdSyncs = true
    const sent = it.stream(send())
    const half = it.stream(PING.subarray(0, 4), { isOpen: true })
    it.client.close()
    assert.equal(half.outcome, 'reset')
    assert.equal(it.client.accept(new FakeStream()), null)
    it.world.log.syncNow()
    await eventually(() => sent.outcome === 'ended')
    assert.equal(it.carrier.closedWith, null)
    sent.session?.closed()
    await eventually(() => it.carrier.closedWith === STREAM_CLIENT_CODES.shutdown)
  })
})
