/** Plain QUIC over real sockets, against the test half of the engine: sessions, limits, addresses, the end. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { silentLogger } from '../../../src/logger.ts'
import {
  type PathHandler,
  type PlainQuicOptions,
  plainLimitsOf,
  type QuicEdge,
  type QuicSession,
  type QuicStream,
  type SessionLimits,
  startPlainQuic,
} from '../../../src/quic-edge/index.ts'
import { eventually } from '../../support/eventually.ts'
import { UdpQuicClient, within } from '../../support/quic/udp-client.ts'

const MIB = 1024 * 1024

interface Rig {
  readonly edge: QuicEdge
  readonly sessions: QuicSession[]
  /** Codes that sessions ended with. */
  readonly ends: number[]
  connect(options?: Partial<Parameters<typeof UdpQuicClient.connect>[0]>): Promise<UdpQuicClient>
}

interface RigOptions {
  readonly limits?: Partial<SessionLimits>
  readonly options?: Partial<PlainQuicOptions>
  /** Instead of an echo. */
  readonly streamOpened?: (
    stream: QuicStream,
  ) => ReturnType<NonNullable<ReturnType<PathHandler['opened']>>['streamOpened']>
  /** Ends each session as it begins. */
  readonly refusal?: number
}

async function open(
  context: TestContext,
  { limits, options, streamOpened = echo, refusal }: RigOptions = {},
): Promise<Rig> {
  const directory = mkdtempSync(join(tmpdir(), 'edge-quic-'))
  const sessions: QuicSession[] = []
  const ends: number[] = []
  const edge = await startPlainQuic(
    {
      host: '127.0.0.1',
      port: 0,
      certificate: { type: 'self-signed', directory },
      limits: { ...plainLimitsOf(), ...limits },
      retry: 'auto',
      ...options,
    },
    {
      opened(session) {
        sessions.push(session)
        if (refusal !== undefined) {
          session.close(refusal, 'refused')
          return null
        }
        return { streamOpened, datagram() {}, closed: (code) => void ends.push(code) }
      },
    },
  )
  context.after(async () => {
    await edge.close({ graceMs: 100 })
    rmSync(directory, { recursive: true })
  })
  const address = edge.host.includes(':') ? `[${edge.host}]:${edge.port}` : `${edge.host}:${edge.port}`
  return {
    edge,
    sessions,
    ends,
    async connect(more = {}) {
      const client = await UdpQuicClient.connect({ address, ...more })
      context.after(() => client[Symbol.asyncDispose]())
      return client
    },
  }
}

function echo(stream: QuicStream) {
  return {
    data(bytesView: Uint8Array) {
      stream.write(Uint8Array.from(bytesView))
      stream.grant(bytesView.length)
    },
    ended: () => stream.end(),
    drained() {},
    closed() {},
  }
}

const silent = () => ({ data() {}, ended() {}, drained() {}, closed() {} })

function pattern(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, at) => (at * 31) % 251)
}

test('bytes come back unchanged, small and large, on many streams at once', async (context) => {
  const rig = await open(context)
  const client = await rig.connect()
  for (const size of [1, 200, 3 * MIB]) {
    const { bytes } = await client.request(pattern(size))
    assert.ok(bytes.equals(pattern(size)), `${size} bytes`)
  }
  const responses = await Promise.all(
    Array.from({ length: 60 }, (_, at) => client.request(new Uint8Array(5000).fill(at))),
  )
  assert.ok(responses.every(({ bytes }, at) => bytes.equals(Buffer.alloc(5000, at))))
})

test('a session knows its peer, counts its bytes and has neither datagrams nor a path', async (context) => {
  const rig = await open(context)
  const client = await rig.connect()
  await client.request(pattern(5000))
  const [session] = rig.sessions
  assert.match(session?.peer ?? '', /^127\.0\.0\.1:\d+$/)
  assert.equal(session?.path, '')
  assert.equal(session?.sendDatagram(new Uint8Array(1)), 'dropped')
  assert.ok((session?.stats().bytesIn ?? 0) > 5000)
  const traffic = rig.edge.traffic() ?? assert.fail()
  assert.deepEqual([traffic.openConnections, traffic.acceptedConnections, traffic.failedHandshakes], [1, 1, 0])
  assert.ok(traffic.receivedPackets > 5 && traffic.sentPackets > 5)
})

test('over IPv6 it is the same, and its peer is told with brackets', async (context) => {
  const rig = await open(context, { options: { host: '::1' } })
  const client = await rig.connect()
  assert.equal((await client.request(pattern(100))).bytes.length, 100)
  assert.match(rig.sessions[0]?.peer ?? '', /^\[::1\]:\d+$/)
})

test('with retry always, each client proves its address first', async (context) => {
  const rig = await open(context, { options: { retry: 'always' } })
  for (let i = 0; i < 3; i++) {
    const client = await rig.connect()
    assert.equal(client.retryCount, 1)
    assert.equal((await client.request(pattern(100))).bytes.length, 100)
  }
})

test('a client whose hello spans two packets, with a share that nobody here speaks, is served', async (context) => {
  const rig = await open(context)
  const hybrid = { group: 0x11ec, publicBytes: new Uint8Array(1216) }
  const client = await rig.connect({ tls: { foreignShares: [hybrid] } })
  assert.equal((await client.request(pattern(100))).bytes.length, 100)
})

test('connections above the limit, and above that of one address, are refused at once', async (context) => {
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (event: string) => void warnings.push(event) }
  const total = await open(context, { limits: { maxSessions: 1 }, options: { logger } })
  const first = await total.connect()
  await assert.rejects(total.connect(), /closed with 0x2/)
  first.connection.close(0, '')
  await eventually(() => total.edge.sessionCount === 0, 'the first to be gone')
  await total.connect()
  assert.equal(total.edge.refusedCount, 1)
  assert.deepEqual(warnings, ['quic.connection.over_limit'])
  const perPeer = await open(context, { limits: { maxSessionsPerPeer: 2 } })
  await perPeer.connect()
  await perPeer.connect()
  await assert.rejects(perPeer.connect(), /closed with 0x2/)
})

test('a session that its handler refuses within the call counts no longer', async (context) => {
  const rig = await open(context, { refusal: 7 })
  const client = await rig.connect()
  assert.equal((await within(client.closed, 'the refusal')).code, 7)
  assert.equal(rig.edge.sessionCount, 0)
})

test('a handshake that failed counts for its address as long as anything is kept of it', async (context) => {
  const rig = await open(context, { limits: { maxSessionsPerPeer: 2 } })
  for (let count = 0; count < 2; count++) {
    await assert.rejects(rig.connect({ tls: { signatureSchemes: [0x0401] } }), /closed with 0x128/)
  }
  await assert.rejects(rig.connect(), /closed with 0x2/)
  const traffic = rig.edge.traffic()
  assert.equal(traffic?.failedHandshakes, 2)
  assert.equal(traffic?.refusedConnections.limit, 1)
})

test('what nobody grants back stays within the window, and goes on when it is granted', async (context) => {
  let receivedBytes = 0
  let opened: QuicStream | undefined
  const rig = await open(context, {
    limits: { maxUnreadBytesPerSession: 128 * 1024 },
    streamOpened(stream) {
      opened = stream
      return {
        ...silent(),
        data(bytesView) {
          receivedBytes += bytesView.length
        },
      }
    },
  })
  const client = await rig.connect()
  const stream = client.open()
  stream.write(pattern(MIB))
  stream.end()
  await eventually(() => receivedBytes === 64 * 1024, 'a stream may take half of the window')
  const held = opened
  client.open().write(pattern(10))
  await eventually(() => opened !== held, 'another stream')
  assert.equal(receivedBytes, 64 * 1024 + 10, 'that one comes through, and no more of the first')
  const timer = setInterval(() => held?.grant(64 * 1024), 1)
  await eventually(() => receivedBytes === MIB + 10, 'all of it')
  clearInterval(timer)
})

test('a stream that its handler does not take, or gives up, is reset, and the session lives on', async (context) => {
  let count = 0
  const rig = await open(context, {
    streamOpened(stream) {
      count++
      if (count === 1) return null
      if (count > 2) return echo(stream)
      return { ...silent(), ended: () => stream.reset(77) }
    },
  })
  const client = await rig.connect()
  assert.equal((await client.request(pattern(10))).resetCode, 15)
  assert.equal((await client.request(pattern(10))).resetCode, 77)
  assert.equal((await client.request(pattern(10))).bytes.length, 10)
})

test('a stream that the client gives up is over for its handler', async (context) => {
  const errors: (string | undefined)[] = []
  const rig = await open(context, {
    streamOpened: () => ({ ...silent(), closed: (error) => void errors.push(error?.code) }),
  })
  const client = await rig.connect()
  for (const giveUp of ['reset', 'stopSending'] as const) {
    const stream = client.open()
    stream.write(pattern(10))
    await eventually(() => (rig.sessions[0]?.stats().streamCount ?? 0) > 0, 'the stream')
    stream[giveUp](5)
    await eventually(() => errors.length > 0, 'its end')
    assert.equal(errors.pop(), 'EDGE_CONNECTION_LOST')
  }
})

test('a client that goes on from another port keeps its session', async (context) => {
  const rig = await open(context)
  const client = await rig.connect()
  await client.request(pattern(10))
  await client.rebind()
  assert.equal((await client.request(pattern(200_000))).bytes.length, 200_000)
  assert.equal(rig.sessions.length, 1)
})

test('a client that vanishes is forgotten after its idle timeout, one that is only idle is not', async (context) => {
  const rig = await open(context, { limits: { idleTimeoutMs: 1000, pingIntervalMs: 200 } })
  const idle = await rig.connect()
  const vanished = await rig.connect()
  await vanished.request(pattern(10))
  vanished.vanish()
  await eventually(() => rig.ends.length === 1, 'the end of one')
  assert.equal((await idle.request(pattern(10))).bytes.length, 10)
  assert.equal(rig.edge.sessionCount, 1)
})

test('bytes of a stream whose first one never comes are not held for ever', async (context) => {
  const rig = await open(context, { limits: { pauseTimeoutMs: 50 } })
  const client = await rig.connect()
  await client.request(pattern(10))
  const stream = client.open()
  const isGivenUp = new Promise<number>((resolve) => {
    stream.onStop = resolve
  })
  // Of five datagrams the first is lost, and all that would make up for it.
  client.isLost = (index) => index === 0 || index > 4
  stream.write(pattern(5000))
  assert.equal(await within(isGivenUp, 'the end of the stream'), 15)
  assert.equal(rig.edge.sessionCount, 1)
})

test('the end lets what is under way finish, refuses what is new, and is told with its code', async (context) => {
  let opened: QuicStream | undefined
  const rig = await open(context, {
    streamOpened(stream) {
      opened = stream
      return silent()
    },
  })
  const client = await rig.connect()
  const idle = await rig.connect()
  const pending = client.request(pattern(10))
  await eventually(() => opened !== undefined, 'the request')
  const closed = rig.edge.close({ code: 0x1003, graceMs: 5000 })
  assert.equal((await within(idle.closed, 'the idle one')).code, 0x1003)
  assert.equal((await client.request(pattern(10))).resetCode, 18)
  opened?.write(pattern(20))
  opened?.end()
  assert.equal((await pending).bytes.length, 20)
  const info = await within(client.closed, 'the other')
  assert.deepEqual([info.code, info.isApplication, info.isLocal], [0x1003, true, false])
  await closed
  await assert.rejects(
    UdpQuicClient.connect({ address: `127.0.0.1:${rig.edge.port}`, limits: { handshakeTimeoutMs: 300 } }),
  )
})

test('the end does not wait for ever', async (context) => {
  const rig = await open(context, { streamOpened: silent })
  const client = await rig.connect()
  client.request(pattern(10)).catch(() => {})
  await eventually(() => rig.sessions[0]?.stats().streamCount === 1, 'the request')
  await within(rig.edge.close({ code: 0x1003, graceMs: 100 }), 'the end')
  assert.equal((await within(client.closed, 'the client')).code, 0x1003)
})

test('after a restart on the same port, a client of before is told at once that its connection is gone', async (context) => {
  const rig = await open(context)
  const directory = mkdtempSync(join(tmpdir(), 'edge-quic-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const options: PlainQuicOptions = {
    host: '127.0.0.1',
    port: 0,
    certificate: { type: 'self-signed', directory },
    retry: 'auto',
    edgeIdBytes: pattern(16),
  }
  const handler: PathHandler = { opened: () => ({ streamOpened: echo, datagram() {}, closed() {} }) }
  const first = await startPlainQuic(options, handler)
  const client = await rig.connect({ address: `127.0.0.1:${first.port}` })
  await client.request(pattern(10))
  // Its word does not reach the client, as if it had been killed.
  client.isDeaf = true
  await first.close({ graceMs: 0 })
  const second = await startPlainQuic({ ...options, port: first.port }, handler)
  context.after(() => second.close())
  client.isDeaf = false
  client.request(pattern(10)).catch(() => {})
  const info = await within(client.closed, 'the reset')
  assert.equal(info.isLocal, false)
})

test('another edge with the same private key cannot end the connections of the first', async (context) => {
  const rig = await open(context)
  const directory = mkdtempSync(join(tmpdir(), 'edge-quic-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const other = async (edgeIdBytes: Uint8Array) => {
    const certificate = { type: 'self-signed', directory } as const
    const options = { host: '127.0.0.1', port: 0, certificate, retry: 'auto', edgeIdBytes } as const
    const edge = await startPlainQuic(options, { opened: () => ({ streamOpened: echo, datagram() {}, closed() {} }) })
    context.after(() => edge.close({ graceMs: 0 }))
    return edge
  }
  const [first, second] = [await other(pattern(16)), await other(pattern(15))]
  assert.equal(first.certificate.keySha256, second.certificate.keySha256)
  const client = await rig.connect({ address: `127.0.0.1:${first.port}` })
  await client.request(pattern(10))
  // Somebody on the way sends a packet of the client to the other edge, and its answer to the client.
  client.copyPort = second.port
  assert.equal((await client.request(pattern(10))).bytes.length, 10)
  await eventually(() => client.copyAnswerCount > 0, 'an answer of the other edge')
  assert.equal(client.connection.closeInfo, undefined)
})

test('a port that is taken, and a certificate that is none, are told', async (context) => {
  const { edge } = await open(context)
  await assert.rejects(open(context, { options: { port: edge.port } }), { code: 'EDGE_ADDRESS_IN_USE' })
  const certificate = { type: 'files', certificateFile: '/nowhere.pem', privateKeyFile: '/nowhere.pem' } as const
  await assert.rejects(open(context, { options: { certificate } }), { code: 'EDGE_CONFIG_INVALID' })
})
