import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { type Listener, listenWebsocket } from '../../../src/runtime/server/index.ts'
import { startProtocolServer, type TestServer, type TestServerOptions } from '../../support/protocol-server.ts'

const HANDSHAKE =
  'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
const PING = Buffer.from('0400000001000000', 'hex')
const LOGIN = Buffer.from('1600000026000000046967677904696767790000000000000000', 'hex')

async function start(
  maxConnections = 10,
  options: TestServerOptions = {},
): Promise<{ running: TestServer; listener: Listener } & AsyncDisposable> {
  const running = await startProtocolServer(options)
  const accept = running.server.acceptByteSession.bind(running.server)
  const listener = await listenWebsocket({ host: '127.0.0.1', port: 0, maxConnections, logger: silentLogger, accept })
  return {
    running,
    listener,
    async [Symbol.asyncDispose]() {
      const closed = listener.close()
      await running[Symbol.asyncDispose]()
      await closed
    },
  }
}

/** Node's own WebSocket: another implementation than ours. */
async function open(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`)
  socket.binaryType = 'arraybuffer'
  await once(socket, 'open')
  return socket
}

async function ask(socket: WebSocket, request: Uint8Array): Promise<Buffer> {
  socket.send(new Uint8Array(request))
  const [event] = (await once(socket, 'message')) as [MessageEvent<ArrayBuffer>]
  return Buffer.from(event.data)
}

test('a client that speaks WebSocket is served like one over TCP, one answer a message', async () => {
  await using it = await start()
  const socket = await open(it.listener.port)
  assert.deepEqual(await ask(socket, PING), Buffer.alloc(8))
  assert.equal((await ask(socket, LOGIN)).readUInt32LE(0), 0)
  const me = await ask(socket, Buffer.from('0400000014000000', 'hex'))
  assert.equal(me[8 + 8], 4, 'transport 4 is WebSocket')
  socket.close()
  await once(socket, 'close')
})

test('a request in several messages, and several in one, are taken as bytes', async () => {
  await using it = await start()
  const socket = await open(it.listener.port)
  socket.send(new Uint8Array(PING.subarray(0, 3)))
  assert.deepEqual(await ask(socket, PING.subarray(3)), Buffer.alloc(8))
  assert.deepEqual(await ask(socket, Buffer.concat([PING, PING])), Buffer.alloc(16))
  socket.close()
})

test('text ends the connection with 1003', async () => {
  await using it = await start()
  const socket = await open(it.listener.port)
  socket.send('hello')
  const [event] = (await once(socket, 'close')) as [CloseEvent]
  assert.equal(event.code, 1003)
})

test('what was asked before a close is answered, and a peer that keeps its side open after it is cut off', async () => {
  let nowUs = 0
  const clock = { wallUs: () => 1_800_000_000_000_000n, monotonicUs: () => nowUs }
  await using it = await start(10, { clock })
  const socket = await openRaw(it.listener.port)
  const [login, close] = [frameOf(2, LOGIN), frameOf(8, Buffer.from('03e8', 'hex'))]
  socket.write(Buffer.concat([login, close]))
  const bytes = await untilEnd(socket)
  assert.deepEqual([bytes.readUInt16BE(0), bytes.readUInt32LE(2)], [0x820c, 0], 'the login is answered')
  assert.equal(bytes.subarray(14).toString('hex'), '880203e8')
  assert.equal(it.listener.occupancy.openConnections, 1)
  nowUs += 2_000_000
  it.running.server.sweep()
  await isCutOff(socket)
})

test('a refused peer that keeps its side open is cut off', async () => {
  await using it = await start()
  const socket = connect({ host: '127.0.0.1', port: it.listener.port, allowHalfOpen: true })
  socket.write(`${HANDSHAKE}Sec-WebSocket-Key: short\r\n\r\n`)
  assert.match((await untilEnd(socket)).toString(), /^HTTP\/1\.1 400/)
  await isCutOff(socket)
})

test('connections above the limit get 503, a plain request 426, a bad handshake 400', async () => {
  await using it = await start(1)
  const { port } = it.listener
  const first = await open(port)
  assert.match(await statusOf(port, `${HANDSHAKE}${KEY}`), /^HTTP\/1\.1 503/)
  assert.match(await statusOf(port, `${HANDSHAKE}Sec-WebSocket-Key: short\r\n\r\n`), /^HTTP\/1\.1 400/)
  assert.match(await statusOf(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), /^HTTP\/1\.1 426/)
  first.close()
})

test('pings of a peer that does not read pile up nothing, and it is served when it reads again', async () => {
  await using it = await start()
  const socket = connect({ host: '127.0.0.1', port: it.listener.port })
  socket.write(`${HANDSHAKE}${KEY}`)
  await once(socket, 'data')
  socket.pause()
  // Masked with zeros. More than the kernel's buffers hold of answers.
  const ping = Buffer.concat([Buffer.from('89fd00000000', 'hex'), Buffer.alloc(125)])
  const [rounds, count] = [40, 5000]
  const pings = Buffer.concat(Array.from({ length: count }, () => ping))
  for (let round = 0; round < rounds; round++) await new Promise((resolve) => socket.write(pings, resolve))
  socket.write(Buffer.concat([Buffer.from('828800000000', 'hex'), PING]))
  let [sizeBytes, tail] = [0, Buffer.alloc(0)]
  const answer = Buffer.concat([Buffer.from('8208', 'hex'), Buffer.alloc(8)])
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    sizeBytes += bytes.length
    tail = Buffer.concat([tail, bytes]).subarray(-answer.length)
    if (tail.equals(answer)) break
  }
  assert.ok(sizeBytes < rounds * count * 127, `${sizeBytes} bytes`)
})

/** A connection whose handshake is done, and whose end is its own to tell. */
async function openRaw(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  socket.write(`${HANDSHAKE}${KEY}`)
  const [head] = (await once(socket, 'data')) as [Buffer]
  assert.match(head.toString(), /^HTTP\/1\.1 101 .*\r\n\r\n$/s)
  return socket
}

/** A final frame of at most 125 bytes, masked with zeros. */
function frameOf(opcode: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload])
}

async function untilEnd(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = []
  socket.on('data', (bytes: Buffer) => parts.push(bytes))
  await once(socket, 'end')
  return Buffer.concat(parts)
}

/** Nobody takes its bytes any more: the system answers them with a reset. */
async function isCutOff(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<Error>()
  socket.on('error', resolve)
  const timer = setInterval(() => socket.write('x'), 5)
  await promise
  clearInterval(timer)
}

async function statusOf(port: number, request: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.write(request)
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return bytes.toString()
}

test('connections that never come to their handshake are bounded', async () => {
  await using it = await start(2)
  const sockets = Array.from({ length: 100 }, () => connect(it.listener.port, '127.0.0.1'))
  const closed = sockets.map((socket) => once(socket.resume(), 'close'))
  // 2 and 64 handshakes: the 67th and all after it are closed as they come.
  await Promise.all(closed.slice(66))
  assert.equal(sockets.filter((socket) => socket.closed).length, 34)
  for (const socket of sockets) socket.destroy()
})

test('a listener that closes does not wait for handshakes that never come', async () => {
  await using running = await startProtocolServer()
  const accept = running.server.acceptByteSession.bind(running.server)
  const listener = await listenWebsocket({
    host: '127.0.0.1',
    port: 0,
    maxConnections: 2,
    logger: silentLogger,
    accept,
  })
  const silent = connect(listener.port, '127.0.0.1').resume()
  const half = connect(listener.port, '127.0.0.1').resume()
  await Promise.all([once(silent, 'connect'), once(half, 'connect')])
  half.write('GET / HTTP/1.1\r\nUpgrade: webs')
  // The server has accepted both when it answers a third one.
  await fetch(`http://127.0.0.1:${listener.port}/`)
  const ended = Promise.all([once(silent, 'close'), once(half, 'close')])
  await listener.close()
  await ended
})

test('with a certificate it is served over TLS, a new certificate counts for new connections, and plain ones get nowhere', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-wss-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const certificates = await Promise.all(
    ['old', 'new'].map((name) => loadCertificate({ type: 'self-signed', directory: join(folder, name) }, systemClock)),
  )
  const [old, renewed] = certificates
  assert.ok(old && renewed)
  await using running = await startProtocolServer()
  const accept = running.server.acceptByteSession.bind(running.server)
  const where = { host: '127.0.0.1', port: 0, maxConnections: 10, logger: silentLogger }
  const listener = await listenWebsocket({ ...where, tls: old, accept })
  context.after(() => listener.close())
  const secured = await pingOverTls(listener.port, old.certificatePem)
  listener.replaceCertificate(renewed.certificatePem, renewed.privateKeyPem)
  const later = await pingOverTls(listener.port, renewed.certificatePem)
  assert.equal(secured.destroyed, false, 'a living connection keeps its certificate')
  secured.destroy()
  later.destroy()
  const plain = connect(listener.port, '127.0.0.1').resume()
  plain.on('error', () => {}) // the server resets
  plain.write('GET / HTTP/1.1\r\n\r\n')
  await once(plain, 'close')
})

test('over TLS, too, it does not wait for peers that never begin', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'edge-wss-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const tls = await loadCertificate({ type: 'self-signed', directory }, systemClock)
  await using running = await startProtocolServer()
  const accept = running.server.acceptByteSession.bind(running.server)
  const where = { host: '127.0.0.1', port: 0, maxConnections: 10, logger: silentLogger }
  const listener = await listenWebsocket({ ...where, tls, accept })
  const silent = connect(listener.port, '127.0.0.1').on('error', () => {})
  await once(silent, 'connect')
  // The server has accepted it when it answers the next one.
  const secured = await pingOverTls(listener.port, tls.certificatePem)
  secured.destroy()
  const ended = once(silent.resume(), 'close')
  await listener.close()
  await ended
})

/** A handshake and a ping with a mask of zeros, by hand: Node's WebSocket takes no certificate of ours. */
async function pingOverTls(port: number, ca: string): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', servername: 'localhost', port, ca })
  await once(socket, 'secureConnect')
  const key = Buffer.alloc(16).toString('base64')
  socket.write(
    `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  )
  const [head] = (await once(socket, 'data')) as [Buffer]
  assert.match(head.toString(), /^HTTP\/1.1 101 /)
  socket.write(Buffer.concat([Buffer.from('828800000000', 'hex'), PING]))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  assert.equal(answer.toString('hex'), '82080000000000000000')
  return socket
}
