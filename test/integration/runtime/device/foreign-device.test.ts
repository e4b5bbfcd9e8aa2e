/** A device that has none of our code but the codec, byte for byte as chapter 1 of docs/protocol/edge.md says. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http2 from 'node:http2'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { EngineStream } from '../../../../src/quic-edge/engine/connection/api.ts'
import { type QuicEdge, startQuicEdge } from '../../../../src/quic-edge/index.ts'
import { type DeviceHub, startDeviceHub } from '../../../../src/runtime/device/index.ts'
import { decodeFrame, encodeFrame, type Frame } from '../../../../src/sdk/wire/edge/index.ts'
import { MemoryDeviceBroker } from '../../../support/memory-device-broker.ts'
import { UdpQuicClient } from '../../../support/quic/udp-client.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'foreign-device-'))
const broker = new MemoryDeviceBroker()
let hub: DeviceHub
let edge: QuicEdge

before(async () => {
  hub = startDeviceHub({ broker })
  edge = await startQuicEdge(
    { host: '127.0.0.1', port: 0, certificate: { type: 'self-signed', directory }, hasTcpFallback: true },
    { paths: { '/edge': hub.pathHandler } },
  )
})

after(async () => {
  await hub.close()
  await edge.close()
  rmSync(directory, { recursive: true })
})

for (const [draft, setting] of [
  ['02', 'ab603742'],
  ['07', 'c0000000c671706a'],
] as const) {
  test(`over QUIC a device of draft ${draft} gets its welcome`, async () => {
    const address = `127.0.0.1:${edge.port}`
    await using client = await UdpQuicClient.connect({ address, tls: { alpnProtocols: ['h3'] } })
    const settings = Buffer.from(`3301${setting}01`, 'hex')
    const control = client.connection.openStream('unidirectional')
    control?.write(Buffer.concat([Buffer.of(0x00, 0x04, settings.length), settings]))
    const request = client.open()
    const headers = Buffer.concat([
      Buffer.alloc(2),
      ...Object.entries({
        ':method': 'CONNECT',
        ':protocol': 'webtransport',
        ':scheme': 'https',
        ':authority': 'edge',
        ':path': '/edge',
      }).flatMap(([name, value]) => [literal(name, 3, 0x20), literal(value, 7, 0x00)]),
    ])
    request.write(Buffer.concat([Buffer.of(0x01, 0x40, headers.length), headers]))
    // HEADERS, and in them entry 25 of QPACK's static table: status 200.
    assert.match((await firstBytes(request)).toString('hex'), /^01..0000d9/)
    const stream = client.open()
    stream.write(Buffer.concat([Buffer.of(0x40, 0x41, request.id), hello(`dev-${draft}`)]))
    assert.equal(frameOf(await firstBytes(stream)).type, 'welcome')
  })
}

test('over HTTP/2 a device gets its welcome on stream 1, and the end of stream 5 is answered', async () => {
  const session = http2.connect(`https://127.0.0.1:${edge.port}`, { rejectUnauthorized: false })
  const [settings] = await once(session, 'remoteSettings')
  assert.ok(settings.enableConnectProtocol)
  const stream = session.request({
    ':method': 'CONNECT',
    ':protocol': 'webtransport',
    ':scheme': 'https',
    ':authority': 'edge',
    ':path': '/edge',
  })
  const [headers] = await once(stream, 'response')
  assert.equal(headers[':status'], 200)
  let received = Buffer.alloc(0)
  const until = async (hex: string) => {
    while (!received.includes(Buffer.from(hex, 'hex'))) {
      const [chunk] = await once(stream, 'data')
      received = Buffer.concat([received, chunk])
    }
  }
  stream.write(Buffer.concat([capsule('3b', 1 + hello('dev-2').length), Buffer.of(1), hello('dev-2')]))
  await until('990b4d3b')
  const at = received.indexOf(Buffer.from('990b4d3b', 'hex'))
  assert.equal(received[at + 5], 1)
  assert.equal(frameOf(received.subarray(at + 6, at + 5 + (received[at + 4] ?? 0))).type, 'welcome')
  stream.write(Buffer.concat([capsule('3c', 1), Buffer.of(5)]))
  await until('990b4d3c0105')
  session.destroy()
})

function hello(name: string): Uint8Array {
  const frame: Frame = { type: 'hello', minVersion: 1, maxVersion: 1, name, auth: broker.token, epoch: 1, lanes: [] }
  return encodeFrame(frame)
}

/** The only frame in these bytes. */
function frameOf(bytes: Uint8Array) {
  return decodeFrame(bytes.subarray((bytes[0] ?? 0) === 0x58 ? 2 : 1))
}

/** A string as QPACK writes it, its length in so many bits of the first byte. */
function literal(text: string, bits: number, flags: number): Buffer {
  const most = 2 ** bits - 1
  const length = text.length < most ? [flags | text.length] : [flags | most, text.length - most]
  return Buffer.concat([Buffer.from(length), Buffer.from(text)])
}

function capsule(type: string, size: number): Buffer {
  return Buffer.concat([Buffer.from(`990b4d${type}`, 'hex'), Buffer.of(0x40, size)])
}

async function firstBytes(stream: EngineStream): Promise<Buffer> {
  for (;;) {
    const bytes = stream.read()
    if (bytes !== null) return Buffer.from(bytes)
    await new Promise<void>((resolve) => (stream.onData = resolve))
  }
}
