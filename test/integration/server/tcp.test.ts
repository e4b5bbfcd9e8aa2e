import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { systemClock } from '../../../src/clock.ts'
import type { LogFields, Logger } from '../../../src/logger.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { writeRequestFrame } from '../../../src/sdk/wire/classic/frame.ts'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import { encodeRecords } from '../../../src/sdk/wire/messages.ts'
import { Writer } from '../../../src/sdk/wire/writer.ts'
import { eventually } from '../../support/eventually.ts'
import { MemoryLog } from '../../support/memory-log.ts'
import { RawClient, startProtocolServer } from '../../support/protocol-server.ts'

const PING = Buffer.from('0400000001000000', 'hex')
const LOGIN = Buffer.from('1600000026000000046967677904696767790000000000000000', 'hex')

const ROOT = { dialect: 'http', userId: 0, client: null } as const

function sendOf(payload: Uint8Array): Uint8Array {
  const writer = new Writer()
  const batch = encodeRecords([{ payload, originUs: 1n }])
  const body = { stream: 's', topic: 't', partitioning: { kind: 'partition', partitionId: 0 }, batch } as const
  writeRequestFrame(writer, { code: CODE.sendMessages, body })
  return writer.toBytes()
}

function recordingLogger(): Logger & { readonly lines: { event: string; fields: LogFields }[] } {
  const lines: { event: string; fields: LogFields }[] = []
  const write = (event: string, fields: LogFields = {}) => void lines.push({ event, fields })
  return { lines, error: write, warn: write, info: write, debug: write }
}

describe('what is no client of Iggy', () => {
  const GUESTS: readonly (readonly [string, Buffer])[] = [
    ['a browser', Buffer.from('GET / HTTP/1.1\r\nHost: edge\r\n\r\n')],
    ['noise', Buffer.alloc(4096, 0xa5)],
    ['a person who types a word', Buffer.from('help\r\n')],
    ['a single byte', Buffer.from([0x16])],
    ['SSH', Buffer.from('SSH-2.0-OpenSSH_9.2p1\r\n')],
    ['a length without a known command', Buffer.from('04000000e7030000', 'hex')],
    ['a TLS hello on a port without TLS', Buffer.from('16030100c8010000c403030000000000', 'hex')],
    ['eight zeros and then something else', Buffer.concat([Buffer.alloc(8), Buffer.alloc(300, 1)])],
  ]
  for (const [name, bytes] of GUESTS) {
    test(`${name} is shown out within a second, and its first bytes are in the log`, async () => {
      const logger = recordingLogger()
      await using running = await startProtocolServer({ logger })
      using guest = await RawClient.connect(running.listener.port)
      const startedMs = performance.now()
      guest.write(bytes)
      await guest.ended()
      assert.ok(performance.now() - startedMs < 1000)
      const line = logger.lines.find(({ event }) => event === 'server.connection.refused')
      assert.equal(line?.fields.first_bytes, bytes.subarray(0, 16).toString('hex'))
      await eventually(() => running.server.connectionCount === 0, 'the connection is gone', 1000)
    })
  }

  test('a length of gigabytes costs nothing and ends the connection', async () => {
    await using running = await startProtocolServer()
    using guest = await RawClient.connect(running.listener.port)
    guest.write(PING)
    await guest.readClassic()
    const before = process.memoryUsage().arrayBuffers
    guest.write(Buffer.from('ffffff7f65000000', 'hex'))
    assert.equal((await guest.readClassic()).status, 3)
    await guest.ended()
    assert.ok(process.memoryUsage().arrayBuffers - before < 1024 * 1024)
  })

  test('a command that is too large is refused and the connection ends, for its bytes cannot be told from requests', async () => {
    await using running = await startProtocolServer()
    using guest = await RawClient.connect(running.listener.port)
    guest.write(PING)
    await guest.readClassic()
    const head = Buffer.alloc(8)
    head.writeUInt32LE(11 * 1024 * 1024, 0)
    head.writeUInt32LE(202, 4)
    guest.write(head)
    assert.equal((await guest.readClassic()).status, 3)
    await guest.ended()
  })
})

describe('connections', () => {
  test('above the limit are closed at once, the others stay', async () => {
    await using running = await startProtocolServer({ tcp: { max_connections: 1 } })
    using first = await RawClient.connect(running.listener.port)
    first.write(PING)
    await first.readClassic()
    using second = await RawClient.connect(running.listener.port)
    await second.ended()
    first.write(PING)
    assert.equal((await first.readClassic()).status, 0)
  })

  test('that end in the middle of a request leave nothing behind', async () => {
    await using running = await startProtocolServer()
    const before = running.broker.clients({ dialect: 'http', userId: 0, client: null }).length
    for (let count = 0; count < 20; count++) {
      const client = await RawClient.connect(running.listener.port)
      client.write(LOGIN)
      await client.readClassic()
      client.write(Buffer.from('ff00000065000000aabbcc', 'hex'))
      client.close()
      await once(client.socket, 'close')
    }
    for (let turn = 0; turn < 200 && running.server.connectionCount > 0; turn++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    assert.equal(running.server.connectionCount, 0)
    assert.equal(running.broker.clients({ dialect: 'http', userId: 0, client: null }).length, before)
  })

  test('that do not close after they were told to are closed for them', async () => {
    await using running = await startProtocolServer()
    const guest = connect({ host: '127.0.0.1', port: running.listener.port, allowHalfOpen: true })
    guest.on('error', () => undefined)
    guest.write(Buffer.alloc(4096, 0xa5))
    await eventually(() => running.server.connectionCount === 0, 'the half open connection is gone', 4000)
    guest.destroy()
  })

  test('that send their last request and end are still answered', async () => {
    await using running = await startProtocolServer()
    using client = await RawClient.connect(running.listener.port)
    client.socket.end(LOGIN)
    assert.equal((await client.readClassic()).status, 0)
    await client.ended()
  })

  test('are ended when the server closes, and the closing is bounded', async () => {
    const running = await startProtocolServer()
    using client = await RawClient.connect(running.listener.port)
    client.write(PING)
    await client.readClassic()
    const startedMs = performance.now()
    await running[Symbol.asyncDispose]()
    await client.ended()
    assert.ok(performance.now() - startedMs < 2000)
  })
})

test('a log without room is felt by who sends: nothing piles up here, and everything is answered once there is room', async () => {
  const log = new MemoryLog()
  await using running = await startProtocolServer({ log })
  await running.broker.createStream(ROOT, 's')
  await running.broker.createTopic(ROOT, 's', { name: 't', partitionCount: 1, options: {} })
  using client = await RawClient.connect(running.listener.port)
  client.write(LOGIN)
  await client.readClassic()
  log.isRoomLeft = false
  const sendCount = 2000
  const request = sendOf(Buffer.alloc(10_000, 'reading'))
  const before = process.memoryUsage().arrayBuffers
  for (let count = 0; count < sendCount; count++) client.write(request)
  // The kernel's buffers fill, then the client's own: the rest stays with it.
  let lastLength = -1
  await eventually(() => {
    const isHeldUp = client.socket.writableLength === lastLength && lastLength > 0
    lastLength = client.socket.writableLength
    return isHeldUp
  }, 'the client is held up')
  assert.ok(process.memoryUsage().arrayBuffers - before < 4 * 1024 * 1024)
  log.makeRoom()
  for (let count = 0; count < sendCount; count++) assert.equal((await client.readClassic()).status, 0)
  assert.equal(log.partition(1)?.nextOffset, BigInt(sendCount))
})

test('the replication factor of a classic client is kept, on an update too; 0 leaves it', async () => {
  await using running = await startProtocolServer({})
  await running.broker.createStream(ROOT, 's')
  await running.broker.createTopic(ROOT, 's', { name: 't', partitionCount: 1, options: {} })
  using client = await RawClient.connect(running.listener.port)
  client.write(LOGIN)
  await client.readClassic()
  for (const replicationFactor of [5, 0]) {
    const writer = new Writer()
    const body = { stream: 's', topic: 't', name: 't', options: [], replicationFactor } as const
    writeRequestFrame(writer, { code: CODE.updateTopic, body })
    client.write(writer.toBytes())
    assert.equal((await client.readClassic()).status, 0)
    assert.equal(running.broker.topic(ROOT, 's', 't')?.options.replicationFactor, 5)
  }
})

describe('TLS', () => {
  async function makeCertificate() {
    const directory = mkdtempSync(join(tmpdir(), 'edge-tcp-tls-'))
    const { certificatePem, privateKeyPem } = await loadCertificate({ type: 'self-signed', directory }, systemClock)
    rmSync(directory, { recursive: true })
    return { certificatePem, privateKeyPem }
  }

  async function pingOverTls(port: number): Promise<{ answer: Buffer; fingerprint: string }> {
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const fingerprint = socket.getPeerCertificate().fingerprint256
    socket.write(PING)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    return { answer, fingerprint }
  }

  test('is served on the same port as plain connections', async () => {
    await using running = await startProtocolServer({ tls: { ...(await makeCertificate()), isRequired: false } })
    const { answer } = await pingOverTls(running.listener.port)
    assert.deepEqual(answer, Buffer.alloc(8))
    using plain = await RawClient.connect(running.listener.port)
    plain.write(PING)
    assert.equal((await plain.readClassic()).status, 0)
    plain.write(LOGIN)
    assert.equal((await plain.readClassic()).status, 0)
  })

  test('is told from plain connections also where the first bytes of the hello come one by one', async () => {
    await using running = await startProtocolServer({ tls: { ...(await makeCertificate()), isRequired: false } })
    const link = createServer((near) => {
      const far = connect({ host: '127.0.0.1', port: running.listener.port, noDelay: true })
      far.pipe(near)
      near.once('data', async (hello: Buffer) => {
        near.pause()
        for (let at = 0; at < 7; at++) {
          far.write(hello.subarray(at, at + 1))
          await delay(2)
        }
        far.write(hello.subarray(7))
        near.pipe(far)
      })
      for (const side of [near, far]) side.on('error', () => {})
    }).listen(0, '127.0.0.1')
    await once(link, 'listening')
    const { answer } = await pingOverTls((link.address() as AddressInfo).port)
    assert.deepEqual(answer, Buffer.alloc(8))
    link.close()
  })

  test('a peer that stops after the first byte of a hello is shown out as any other that says nothing known', async () => {
    const logger = recordingLogger()
    const tls = { ...(await makeCertificate()), isRequired: false }
    await using running = await startProtocolServer({ logger, tls })
    using guest = await RawClient.connect(running.listener.port)
    guest.write(Buffer.of(0x16))
    await guest.ended()
    const line = logger.lines.find(({ event }) => event === 'server.connection.refused')
    assert.equal(line?.fields.first_bytes, '16')
  })

  test('can be required, and then a plain connection is closed', async () => {
    await using running = await startProtocolServer({ tls: { ...(await makeCertificate()), isRequired: true } })
    using plain = await RawClient.connect(running.listener.port)
    plain.write(PING)
    await plain.ended()
    const { answer } = await pingOverTls(running.listener.port)
    assert.deepEqual(answer, Buffer.alloc(8))
  })

  test('connections that tell nothing end with their peer, and with the listener', async () => {
    await using running = await startProtocolServer({ tls: { ...(await makeCertificate()), isRequired: false } })
    const { listener } = running
    const looker = connect(listener.port, '127.0.0.1')
    looker.end()
    await once(looker.resume(), 'close')
    await eventually(() => listener.occupancy.openConnections === 0, 'the connection is gone')

    const silent = connect(listener.port, '127.0.0.1').on('error', () => {})
    await eventually(() => listener.occupancy.openConnections === 1, 'the connection is accepted')
    const ended = once(silent.resume(), 'close')
    await listener.close()
    await ended
  })

  test('takes up a new certificate without ending connections', async () => {
    await using running = await startProtocolServer({ tls: { ...(await makeCertificate()), isRequired: false } })
    const first = await pingOverTls(running.listener.port)
    const renewed = await makeCertificate()
    running.listener.replaceCertificate(renewed.certificatePem, renewed.privateKeyPem)
    assert.notEqual((await pingOverTls(running.listener.port)).fingerprint, first.fingerprint)
    assert.throws(() => running.listener.replaceCertificate('no', 'pem'), { code: 'EDGE_CONFIG_INVALID' })
    await pingOverTls(running.listener.port)
  })
})
