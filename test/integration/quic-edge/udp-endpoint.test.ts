/** The socket of our engine with connections that only record: whose datagrams they get, when they flush, when time passes. */
import assert from 'node:assert/strict'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { silentLogger } from '../../../src/logger.ts'
import type {
  CloseInfo,
  ConnectionHost,
  EngineConnection,
  PeerAddress,
} from '../../../src/quic-edge/engine/connection/api.ts'
import { EndpointSecrets } from '../../../src/quic-edge/engine/endpoint/endpoint-secrets.ts'
import { Router } from '../../../src/quic-edge/engine/endpoint/router.ts'
import {
  type Entry,
  MAX_CLOSED_CONNECTIONS,
  UdpEndpoint,
  type UdpEndpointOptions,
} from '../../../src/quic-edge/engine/endpoint/udp-endpoint.ts'
import { writeLongHeader } from '../../../src/quic-edge/engine/wire/packet-header.ts'
import { Writer } from '../../../src/quic-edge/engine/wire/writer.ts'
import { eventually } from '../../support/eventually.ts'

const OUR_ID = Uint8Array.of(1, 1, 2, 3, 5, 8, 13, 21)

/** Answers each datagram with its size, and one more byte for each tick. */
class RecordingConnection {
  hasAuthenticated = true
  isConnected = false
  isFinished = false
  closeInfo: CloseInfo | undefined
  deadlineMs = Infinity
  readonly received: string[] = []
  readonly host: ConnectionHost
  peer: PeerAddress
  flushCount = 0
  ticks: number[] = []
  waiting = 0
  stats = { receivedPackets: 0, sentPackets: 0, lostPackets: 0 }

  constructor(host: ConnectionHost, peer: PeerAddress) {
    this.host = host
    this.peer = peer
    host.connectionIdAdded(OUR_ID)
  }

  receive(datagram: Uint8Array, from: PeerAddress): void {
    this.received.push(from.key)
    this.stats.receivedPackets++
    this.peer = from
    this.waiting = datagram.length
  }

  flush(_nowMs: number, send: (bytes: Uint8Array, to: PeerAddress) => void): boolean {
    this.flushCount++
    if (this.waiting > 0) this.stats.sentPackets++
    if (this.waiting > 0) send(new Uint8Array(this.waiting), this.peer)
    this.waiting = 0
    return false
  }

  tick(nowMs: number): void {
    this.ticks.push(nowMs)
    this.deadlineMs = Infinity
  }
}

interface Rig {
  readonly endpoint: UdpEndpoint
  readonly options: UdpEndpointOptions
  readonly router: Router<Entry>
  readonly connections: RecordingConnection[]
  readonly forgotten: EngineConnection[]
  authenticates: boolean
}

async function open(context: TestContext, host = '127.0.0.1'): Promise<Rig> {
  const secrets = new EndpointSecrets(OUR_ID, OUR_ID)
  const limits = { maxHandshakes: 1000, retryAboveHandshakes: 1000, maxResetsPerSecond: 10 }
  const router = new Router<Entry>({
    limits,
    secrets,
    random: (size) => new Uint8Array(size).fill(7),
    isSealed: () => true,
    admit: () => true,
  })
  const rig = {
    router,
    connections: [] as RecordingConnection[],
    forgotten: [] as EngineConnection[],
    authenticates: true,
  }
  const options: UdpEndpointOptions = {
    host,
    port: 0,
    reusePort: false,
    router,
    logger: silentLogger,
    nowMs: () => performance.now(),
    accept(_acceptance, peer, connectionHost) {
      const connection = new RecordingConnection(connectionHost, peer)
      connection.hasAuthenticated = rig.authenticates
      rig.connections.push(connection)
      return connection as unknown as EngineConnection
    },
    forgotten: (connection) => rig.forgotten.push(connection),
    resetToken: (idView) => secrets.resetToken(idView),
  }
  const endpoint = await UdpEndpoint.open(options)
  context.after(() => endpoint.close())
  return Object.assign(rig, { endpoint, options })
}

async function client(context: TestContext, type: 'udp4' | 'udp6' = 'udp4'): Promise<Socket> {
  const socket = createSocket(type)
  socket.bind(0, type === 'udp4' ? '127.0.0.1' : '::1')
  await once(socket, 'listening')
  context.after(() => socket.close())
  return socket
}

function initial(number = 9): Uint8Array {
  const datagram = new Uint8Array(1200)
  const destinationId = new Uint8Array(8).fill(9)
  new DataView(destinationId.buffer).setUint32(0, number)
  writeLongHeader(new Writer(datagram), { type: 0, destinationId, sourceId: OUR_ID, packetNumberSize: 2 })
  return datagram
}

function short(size: number): Uint8Array {
  const datagram = new Uint8Array(size)
  datagram[0] = 0x40
  datagram.set(OUR_ID, 1)
  return datagram
}

/** @returns the size of the answer. */
async function ask(socket: Socket, endpoint: UdpEndpoint, datagram: Uint8Array, host = '127.0.0.1'): Promise<number> {
  const answered = once(socket, 'message')
  socket.send(datagram, endpoint.port, host)
  const [answer] = (await answered) as [Buffer]
  return answer.length
}

function only(rig: Rig): RecordingConnection {
  assert.equal(rig.connections.length, 1)
  return rig.connections[0] ?? assert.fail()
}

test('a connection gets its datagrams by its id, from wherever they come, and its answers go back there', async (context) => {
  const rig = await open(context)
  const [first, second] = [await client(context), await client(context)]
  assert.equal(await ask(first, rig.endpoint, initial()), 1200)
  assert.equal(await ask(first, rig.endpoint, short(40)), 40)
  assert.equal(await ask(second, rig.endpoint, short(41)), 41)
  const keys = [first, first, second].map((socket) => `127.0.0.1|${socket.address().port}`)
  assert.deepEqual(only(rig).received, keys)
})

test('over IPv6 too', async (context) => {
  const rig = await open(context, '::1')
  const socket = await client(context, 'udp6')
  assert.equal(await ask(socket, rig.endpoint, initial(), '::1'), 1200)
  assert.equal(only(rig).peer.address, '::1')
})

test('what does not authenticate leaves nothing behind', async (context) => {
  const rig = await open(context)
  const socket = await client(context)
  rig.authenticates = false
  socket.send(initial(), rig.endpoint.port, '127.0.0.1')
  await eventually(() => rig.forgotten.length === 1, 'it is forgotten')
  assert.equal(rig.router.connectionCount, 0)
})

test('many wakes of one turn are one flush', async (context) => {
  const rig = await open(context)
  const socket = await client(context)
  await ask(socket, rig.endpoint, initial())
  const connection = only(rig)
  const before = connection.flushCount
  for (let i = 0; i < 5; i++) connection.host.wake()
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  assert.equal(connection.flushCount, before + 1)
})

test('time passes when a deadline is due, also one that moved, and not before', async (context) => {
  const rig = await open(context)
  const socket = await client(context)
  await ask(socket, rig.endpoint, initial())
  const connection = only(rig)
  const begun = performance.now()
  connection.deadlineMs = begun + 250
  connection.host.wake()
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  connection.deadlineMs = begun + 300
  connection.host.wake()
  await eventually(() => connection.ticks.length > 0, 'the tick')
  assert.equal(connection.ticks.length, 1)
  assert.ok((connection.ticks[0] ?? 0) >= begun + 299)
})

test('a connection that is over is forgotten, and its peer told that it is gone', async (context) => {
  const rig = await open(context)
  const socket = await client(context)
  await ask(socket, rig.endpoint, initial())
  only(rig).isFinished = true
  only(rig).host.wake()
  await eventually(() => rig.router.connectionCount === 0, 'it is forgotten')
  assert.equal(rig.forgotten.length, 1)
  assert.equal(await ask(socket, rig.endpoint, short(40)), 39)
})

test('of connections that are closed only so many wait for late packets', async (context) => {
  const rig = await open(context)
  const socket = await client(context)
  const count = MAX_CLOSED_CONNECTIONS + 20
  for (let number = 0; number < count; number++) {
    await ask(socket, rig.endpoint, initial(number))
    const connection = rig.connections.at(-1) ?? assert.fail()
    connection.deadlineMs = performance.now() + 60_000
    connection.closeInfo = { code: 0, reason: '', isApplication: true, isLocal: false }
    connection.host.wake()
  }
  await eventually(() => rig.router.connectionCount <= MAX_CLOSED_CONNECTIONS, 'the oldest to be forgotten')
  assert.deepEqual(rig.forgotten, rig.connections.slice(0, 20))
  rig.connections[0]?.host.wake()
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  assert.equal(rig.forgotten.length, 20, 'what is forgotten stays so')
})

test('what came and went is counted, also of connections that are forgotten', async (context) => {
  const rig = await open(context)
  const socket = await client(context)
  await ask(socket, rig.endpoint, initial())
  await ask(socket, rig.endpoint, short(40))
  only(rig).stats.lostPackets = 5
  const counts = { receivedPackets: 2, sentPackets: 2, lostPackets: 5, strayDatagrams: 0, unsentDatagrams: 0 }
  assert.deepEqual(rig.endpoint.traffic, counts)
  only(rig).isFinished = true
  only(rig).host.wake()
  await eventually(() => rig.router.connectionCount === 0, 'it is forgotten')
  socket.send(new Uint8Array(5), rig.endpoint.port, '127.0.0.1')
  await eventually(() => rig.endpoint.traffic.strayDatagrams === 1, "a datagram that is nobody's")
  assert.deepEqual(rig.endpoint.traffic, { ...counts, strayDatagrams: 1 })
})

test('a handshake counts until it is through', async (context) => {
  const rig = await open(context)
  const socket = await client(context)
  await ask(socket, rig.endpoint, initial())
  assert.equal(rig.router.handshakeCount, 1)
  only(rig).isConnected = true
  await ask(socket, rig.endpoint, short(40))
  assert.equal(rig.router.handshakeCount, 0)
})

test('a port that is taken, and a host that is none, are told', async (context) => {
  const { endpoint, options } = await open(context)
  await assert.rejects(UdpEndpoint.open({ ...options, port: endpoint.port }), { code: 'EDGE_ADDRESS_IN_USE' })
  await assert.rejects(UdpEndpoint.open({ ...options, host: 'no.such.host.invalid' }), { code: 'EDGE_IO' })
})
