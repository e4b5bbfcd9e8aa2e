import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { EventEmitter, once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { eventually } from '../../support/eventually.ts'
import { echoHandlers, exchange, type QuicEdgeBench, startBench } from '../../support/quic-edge-bench.ts'
import { SeededRandom } from '../../support/seeded-random.ts'

const STREAM_CAPSULE = 0x190b4d3b

test('capsules that make no sense end their session and nothing else', async () => {
  await using bench = await startBench(echoHandlers())
  const random = new SeededRandom(23)
  const payloads = [
    capsule(STREAM_CAPSULE, Buffer.from([0x00, 1, 2, 3])), // a stream of the edge's own numbering, which it never opened
    capsule(STREAM_CAPSULE, Buffer.from([0x02, 1, 2, 3])),
    capsule(STREAM_CAPSULE, Buffer.alloc(0)),
    capsule(0x190b4d39, Buffer.from([0x01])), // a reset without a code
    capsule(0x190b4d3d, Buffer.alloc(0)), // credit without an amount
    capsule(0x2843, Buffer.from([1])), // a close without a code
    Buffer.concat([varint(STREAM_CAPSULE), varint(2 ** 40)]), // a terabyte announced
    ...Array.from({ length: 60 }, () =>
      capsule(
        0x190b4d38 + random.below(14),
        Buffer.from(Array.from({ length: random.below(20) }, () => random.below(256))),
      ),
    ),
  ]
  for (const payload of payloads) await sendRaw(bench, payload)
  await stillServes(bench)
})

test('HTTP/1, WebSocket, half handshakes and plain bytes on the TCP port hold nothing for long', async () => {
  await using bench = await startBench(echoHandlers(), { limits: { handshakeTimeoutMs: 500 } })
  const http1 = connectTls({
    port: bench.edge.port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  })
  http1.on('error', () => {})
  http1.write('GET /test HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
  const silent = connectTcp(bench.edge.port, '127.0.0.1')
  const garbage = connectTcp(bench.edge.port, '127.0.0.1')
  for (const socket of [silent, garbage]) socket.on('error', () => {})
  garbage.write(Buffer.alloc(500, 0x41))
  const idle = connect(`https://127.0.0.1:${bench.edge.port}`, { rejectUnauthorized: false })
  idle.on('error', () => {})
  const ended = [http1, silent, garbage, idle].map(
    (one) => new Promise<void>((resolve) => one.once('close', () => resolve())),
  )
  for (const socket of [http1, silent, garbage]) socket.resume()
  await Promise.all(ended)
  await stillServes(bench)
})

test('random datagrams on the UDP port change nothing', async () => {
  await using bench = await startBench(echoHandlers())
  const random = new SeededRandom(5)
  const socket = createSocket('udp4')
  for (let count = 0; count < 500; count++) {
    const packet = Buffer.from(Array.from({ length: 1 + random.below(1300) }, () => random.below(256)))
    await new Promise((resolve) => socket.send(packet, bench.edge.port, '127.0.0.1', resolve))
  }
  socket.close()
  await stillServes(bench)
})

test('sessions that come and go over one connection leave nothing on it', async (context) => {
  await using bench = await startBench(echoHandlers())
  const warnings: Error[] = []
  const heard = (warning: Error) => void warnings.push(warning)
  process.on('warning', heard)
  context.after(() => process.off('warning', heard))
  const client = await connectRaw(bench)
  // More than Node lets listen for one event without a warning.
  for (let count = 0; count < EventEmitter.defaultMaxListeners * 3; count++) {
    const stream = await openRaw(client)
    const closed = once(stream, 'close')
    stream.destroy()
    await closed
    await eventually(() => bench.edge.sessionCount === 0, 'the session to end')
  }
  client.destroy()
  assert.deepEqual(warnings, [])
})

async function stillServes(bench: QuicEdgeBench): Promise<void> {
  for (const isReliableOnly of [false, true]) {
    const session = await bench.connect({ isReliableOnly })
    const stream = await session.createBidirectionalStream({ waitUntilAvailable: true })
    assert.equal(Buffer.from(await exchange(stream, Buffer.from('still here'))).toString(), 'still here')
    session.close({ closeCode: 0, reason: '' })
  }
  await eventually(() => bench.edge.sessionCount === 0, 'all sessions to end')
}

/** Opens a session by hand, sends the bytes where capsules are expected, and leaves. */
async function sendRaw(bench: QuicEdgeBench, payload: Uint8Array): Promise<void> {
  const client = await connectRaw(bench)
  const stream = await openRaw(client)
  stream.write(payload)
  await new Promise<void>((resolve) => client.ping(() => resolve())) // everything before has been taken
  client.destroy()
}

async function connectRaw(bench: QuicEdgeBench): Promise<ClientHttp2Session> {
  const client = connect(`https://127.0.0.1:${bench.edge.port}`, {
    rejectUnauthorized: false,
    settings: { enableConnectProtocol: true },
  })
  client.on('error', () => {})
  await new Promise<void>((resolve) => client.once('remoteSettings', () => resolve()))
  return client
}

async function openRaw(client: ClientHttp2Session): Promise<ClientHttp2Stream> {
  const stream = client.request(
    { ':method': 'CONNECT', ':protocol': 'webtransport', ':scheme': 'https', ':path': '/test', ':authority': 'edge' },
    { endStream: false },
  )
  stream.on('error', () => {})
  const status = await new Promise<number | undefined>((resolve) =>
    stream.once('response', (headers) => resolve(headers[':status'])),
  )
  assert.equal(status, 200)
  stream.resume()
  return stream
}

function capsule(type: number, body: Uint8Array): Buffer {
  return Buffer.concat([varint(type), varint(body.byteLength), body])
}

/** QUIC's variable-length integers, in four or eight bytes. */
function varint(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value) | (3n << 62n))
  return bytes
}
