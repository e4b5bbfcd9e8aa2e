/** A flood of beginnings over real sockets: it costs no state that lasts, and a client that answers gets through meanwhile. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { writeLongHeader } from '../../../src/quic-edge/engine/wire/packet-header.ts'
import { Writer } from '../../../src/quic-edge/engine/wire/writer.ts'
import { plainLimitsOf, type QuicEdge, type SessionLimits, startPlainQuic } from '../../../src/quic-edge/index.ts'
import { eventually } from '../../support/eventually.ts'
import { QuicPair } from '../../support/quic/quic-pair.ts'
import { UdpQuicClient } from '../../support/quic/udp-client.ts'

const FLOOD = 300

async function open(context: TestContext, more: Partial<SessionLimits> = {}): Promise<QuicEdge> {
  const directory = mkdtempSync(join(tmpdir(), 'edge-quic-'))
  const limits = { ...plainLimitsOf(), handshakeTimeoutMs: 700, ...more }
  const edge = await startPlainQuic(
    { host: '127.0.0.1', port: 0, certificate: { type: 'self-signed', directory }, limits, retry: 'auto' },
    {
      opened: () => ({
        streamOpened: (stream) => ({
          data(bytesView) {
            stream.write(Uint8Array.from(bytesView))
            stream.grant(bytesView.length)
          },
          ended: () => stream.end(),
          drained() {},
          closed() {},
        }),
        datagram() {},
        closed() {},
      }),
    },
  )
  context.after(async () => {
    await edge.close({ graceMs: 100 })
    rmSync(directory, { recursive: true })
  })
  return edge
}

/** Sends each datagram from a socket that never says more. @returns sizes of what came back. */
async function flood(context: TestContext, edge: QuicEdge, datagrams: readonly Uint8Array[]): Promise<number[]> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  context.after(() => socket.close())
  const sizes: number[] = []
  socket.on('message', (answer) => sizes.push(answer.length))
  for (const datagram of datagrams) {
    await new Promise((resolve) => socket.send(datagram, edge.port, '127.0.0.1', resolve))
  }
  return sizes
}

/** A real first flight, for keys of its own. */
function hello(): Uint8Array {
  const pair = new QuicPair({ random: randomBytes })
  pair.flushClient()
  return pair.toServer[0]?.bytes ?? assert.fail('a client begins')
}

/** Looks like one, and is sealed with nothing. */
function noise(): Uint8Array {
  const datagram = randomBytes(1200)
  const writer = new Writer(datagram)
  writeLongHeader(writer, {
    type: 0,
    destinationId: randomBytes(8),
    sourceId: randomBytes(8),
    packetNumberSize: 2,
  })
  datagram.set([0x44, 0x7e], writer.position - 4)
  return datagram
}

test('packets that authenticate nothing leave nothing behind and get no answer', async (context) => {
  const edge = await open(context)
  const sizes = await flood(context, edge, Array.from({ length: FLOOD }, noise))
  const client = await UdpQuicClient.connect({ address: `127.0.0.1:${edge.port}` })
  context.after(() => client[Symbol.asyncDispose]())
  assert.equal(client.retryCount, 0, 'no handshake is under way')
  assert.equal((await client.request(randomBytes(100))).bytes.length, 100)
  assert.deepEqual(sizes, [])
})

test('real hellos that nobody follows up: few are begun, the rest are asked to prove their address, and all are given up', async (context) => {
  const edge = await open(context)
  const sizes = await flood(context, edge, Array.from({ length: FLOOD }, hello))
  const client = await UdpQuicClient.connect({ address: `127.0.0.1:${edge.port}` })
  context.after(() => client[Symbol.asyncDispose]())
  assert.equal(client.retryCount, 1, 'it has proved its address')
  assert.equal((await client.request(randomBytes(100))).bytes.length, 100)
  // Retry packets are smaller than what they answer; a handshake that was begun sends three times its hello at most.
  const [retries, flights] = [sizes.filter((size) => size < 200), sizes.filter((size) => size >= 200)]
  assert.ok(retries.length > FLOOD / 2, `${retries.length} were asked`)
  assert.ok(flights.reduce((sum, size) => sum + size, 0) <= 32 * 3 * 1200)
  await eventually(async () => {
    await using later = await UdpQuicClient.connect({ address: `127.0.0.1:${edge.port}` })
    // One that left before its handshake was through would count as one that failed.
    await later.request(randomBytes(1))
    return later.retryCount === 0
  }, 'the handshakes to be given up')
})

test('handshakes in the name of others use up half of the connections at most, in all and of one address', async (context) => {
  for (const limits of [{ maxSessions: 4 }, { maxSessionsPerPeer: 4 }]) {
    const edge = await open(context, limits)
    await flood(context, edge, Array.from({ length: 8 }, hello))
    const client = await UdpQuicClient.connect({ address: `127.0.0.1:${edge.port}` })
    context.after(() => client[Symbol.asyncDispose]())
    assert.equal(client.retryCount, 1, 'it has proved its address')
  }
})
