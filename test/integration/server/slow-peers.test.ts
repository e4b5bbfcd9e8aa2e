/** Peers that take a large answer steadily, but slowly, on every carrier: real sockets, and a clock that the test moves. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { startPlainQuic, startQuicEdge } from '../../../src/quic-edge/index.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { serveIggyClients, serveIggySessions } from '../../../src/runtime/iggy-sessions.ts'
import { listenWebsocket } from '../../../src/runtime/server/index.ts'
import { dialWebTransport } from '../../../src/sdk/index.ts'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import { batchOf } from '../../support/broker-world.ts'
import { eventually } from '../../support/eventually.ts'
import { brokerSettings, startProtocolServer, type TestServer } from '../../support/protocol-server.ts'
import { UdpQuicClient } from '../../support/quic/udp-client.ts'
import { frameOf, LOGIN } from '../../support/server-world.ts'

/** More than what lies in the buffers between server and peer, so that the server sees how it is taken. */
const MESSAGES = 30
const PART_BYTES = 4_000_000
const LOGIN_ANSWER_BYTES = 12
/** A little less than the time in which a peer that takes nothing is given up. */
const STEP_US = 25_000_000
const HOST = '127.0.0.1'

/** Reads as much as it is told to. */
class SlowReader {
  takenBytes = 0
  isClosed = false
  private goalBytes = 0
  private readonly flow: { pause(): void; resume(): void }

  constructor(flow: { pause(): void; resume(): void }) {
    this.flow = flow
    flow.pause()
  }

  data(bytes: Uint8Array): void {
    this.takenBytes += bytes.length
    if (this.takenBytes >= this.goalBytes) this.flow.pause()
  }

  takeAll(): void {
    this.goalBytes = Number.POSITIVE_INFINITY
    this.flow.resume()
  }

  async take(sizeBytes: number): Promise<void> {
    this.goalBytes = this.takenBytes + sizeBytes
    this.flow.resume()
    await eventually(
      () => this.isClosed || this.takenBytes >= this.goalBytes,
      () => `${this.takenBytes} of ${this.goalBytes} bytes`,
    )
    assert.equal(this.isClosed, false, `cut off after ${this.takenBytes} bytes`)
  }
}

interface Rig {
  readonly running: TestServer
  readonly directory: string
  readonly tls: { certificatePem: string; privateKeyPem: string }
}

function readerOf(socket: Socket): SlowReader {
  const reader = new SlowReader(socket)
  socket.on('data', (bytes: Buffer) => reader.data(bytes))
  socket.on('close', () => {
    reader.isClosed = true
  })
  socket.on('error', () => {}) // told by its close
  return reader
}

/** Logs in, asks, and leaves the answers unread. */
type Open = (context: TestContext, rig: Rig, poll: Uint8Array) => Promise<SlowReader>

async function overTcp(context: TestContext, { running }: Rig, poll: Uint8Array): Promise<SlowReader> {
  const socket = connect(running.listener.port, HOST)
  context.after(() => socket.destroy())
  socket.write(Buffer.concat([LOGIN, poll]))
  const reader = readerOf(socket)
  await reader.take(LOGIN_ANSWER_BYTES)
  return reader
}

async function overTls(context: TestContext, { running, tls }: Rig, poll: Uint8Array): Promise<SlowReader> {
  const socket = connectTls({
    host: HOST,
    port: running.listener.port,
    ca: tls.certificatePem,
    servername: 'localhost',
  })
  context.after(() => socket.destroy())
  await once(socket, 'secureConnect')
  socket.write(Buffer.concat([LOGIN, poll]))
  const reader = readerOf(socket)
  await reader.take(LOGIN_ANSWER_BYTES)
  return reader
}

async function overWebsocket(context: TestContext, { running }: Rig, poll: Uint8Array): Promise<SlowReader> {
  const accept = running.server.acceptByteSession.bind(running.server)
  const listener = await listenWebsocket({ host: HOST, port: 0, maxConnections: 9, logger: silentLogger, accept })
  context.after(() => listener.close())
  const socket = connect(listener.port, HOST)
  context.after(() => socket.destroy())
  socket.write(
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  await once(socket, 'data')
  // Masked with zeros.
  for (const request of [LOGIN, poll]) {
    socket.write(Buffer.concat([Buffer.from([0x82, 0x80 | request.length, 0, 0, 0, 0]), request]))
  }
  const reader = readerOf(socket)
  await reader.take(LOGIN_ANSWER_BYTES)
  return reader
}

const overWebTransport =
  (carrier: 'quic' | 'http2'): Open =>
  async (context, { running, directory }, poll) => {
    const certificate = { type: 'self-signed', directory } as const
    const edge = await startQuicEdge(
      { host: HOST, port: 0, certificate, hasTcpFallback: carrier === 'http2' },
      { paths: { '/iggy': serveIggySessions(running.server) } },
    )
    context.after(() => edge.close({ graceMs: 100 }))
    const { sha256: certificateHash } = edge.certificate
    const where = { host: HOST, port: edge.port, path: '/iggy', certificateHash, connectTimeoutMs: 5000, carrier }
    let reader: SlowReader | null = null
    const events = {
      data: (bytes: Uint8Array) => reader?.data(bytes),
      drained() {},
      closed() {
        if (reader !== null) reader.isClosed = true
      },
    }
    const session = await dialWebTransport(where, events, new AbortController().signal)
    context.after(() => session.abort())
    reader = new SlowReader(session)
    session.write(new Uint8Array(Buffer.concat([LOGIN, poll])))
    await reader.take(LOGIN_ANSWER_BYTES)
    return reader
  }

async function overQuic(context: TestContext, { running, directory }: Rig, poll: Uint8Array): Promise<SlowReader> {
  const certificate = { type: 'self-signed', directory } as const
  const edge = await startPlainQuic(
    { host: HOST, port: 0, certificate, retry: 'auto' },
    serveIggyClients(running.server),
  )
  context.after(() => edge.close({ graceMs: 100 }))
  const client = await UdpQuicClient.connect({ address: `${HOST}:${edge.port}` })
  context.after(() => client[Symbol.asyncDispose]())
  await client.request(LOGIN)
  const stream = client.open()
  let isPaused = true
  const read = () => {
    while (!isPaused) {
      const bytes = stream.read()
      if (bytes === null) return
      reader.data(bytes)
      stream.grant(bytes.length)
    }
  }
  const reader = new SlowReader({
    pause() {
      isPaused = true
    },
    resume() {
      isPaused = false
      read()
    },
  })
  stream.onData = read
  stream.onReset = () => {
    reader.isClosed = true
  }
  stream.write(new Uint8Array(poll))
  stream.end()
  return reader
}

const CARRIERS: Readonly<Record<string, Open>> = {
  TCP: overTcp,
  TLS: overTls,
  WebSocket: overWebsocket,
  'plain QUIC': overQuic,
  'WebTransport over QUIC': overWebTransport('quic'),
  'WebTransport over HTTP/2': overWebTransport('http2'),
}

for (const [name, open] of Object.entries(CARRIERS)) {
  test(`over ${name} a large answer that is taken slowly arrives, and one that is not taken is given up`, async (context) => {
    const directory = mkdtempSync(join(tmpdir(), 'edge-slow-'))
    context.after(() => rmSync(directory, { recursive: true }))
    let nowUs = 0
    const clock = { wallUs: () => systemClock.wallUs(), monotonicUs: () => nowUs }
    const { broker } = brokerSettings()
    const tls = await loadCertificate({ type: 'self-signed', directory }, systemClock)
    const running = await startProtocolServer({
      clock,
      broker: { broker: { ...broker, max_poll_size: 32 * 1024 * 1024 } },
      ...(name === 'TLS' ? { tls: { ...tls, isRequired: true } } : {}),
    })
    context.after(() => running[Symbol.asyncDispose]())
    const root = { dialect: 'classic', userId: 0, client: null } as const
    await running.broker.createStream(root, 's')
    await running.broker.createTopic(root, 's', { name: 't', partitionCount: 1, options: {} })
    const text = 'x'.repeat(1_000_000)
    for (let index = 0; index < MESSAGES; index++) {
      const partition = { kind: 'partition', partitionId: 0 } as const
      running.broker.send(root, 's', 't', partition, batchOf([0n, text]), { settled() {} })
    }
    const consumer = { kind: 'consumer', id: 1 } as const
    const from = { consumer, stream: 's', topic: 't', partitionId: 0, strategy: { kind: 'first' } } as const
    const poll = frameOf({ code: CODE.pollMessages, body: { ...from, count: 1000, autoCommit: false } })
    const reader = await open(context, { running, directory, tls }, poll)
    const sweep = () => {
      nowUs += STEP_US
      running.server.sweep()
    }
    const isLeft = () => MESSAGES * text.length - reader.takenBytes > 3 * PART_BYTES
    for (sweep(); isLeft(); sweep()) {
      // What it was given before reads on all the same.
      assert.equal(running.server.connectionCount, 1, 'it was given up')
      await reader.take(PART_BYTES)
    }
    for (let turn = 0; turn < 5; turn++) sweep()
    reader.takeAll()
    await eventually(
      () => reader.isClosed || reader.takenBytes > MESSAGES * text.length,
      () => `${reader.takenBytes} bytes`,
    )
    assert.ok(reader.isClosed)
  })
}
