import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { type Listener, listenWebsocket } from '../../../src/runtime/server/index.ts'
import { startProtocolServer, type TestServer } from '../../support/protocol-server.ts'

const PING = Buffer.from('0400000001000000', 'hex')
const LOGIN = Buffer.from('1600000026000000046967677904696767790000000000000000', 'hex')

async function start(maxConnections = 10): Promise<{ running: TestServer; listener: Listener } & AsyncDisposable> {
  const running = await startProtocolServer()
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

test('connections above the limit get 503, a plain request 426, a bad handshake 400', async () => {
  await using it = await start(1)
  const { port } = it.listener
  const first = await open(port)
  const handshake =
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
  assert.match(
    await statusOf(port, `${handshake}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`),
    /^HTTP\/1\.1 503/,
  )
  assert.match(await statusOf(port, `${handshake}Sec-WebSocket-Key: short\r\n\r\n`), /^HTTP\/1\.1 400/)
  assert.match(await statusOf(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), /^HTTP\/1\.1 426/)
  first.close()
})

test('pings of a peer that does not read pile up nothing, and it is served when it reads again', async () => {
  await using it = await start()
  const socket = connect({ host: '127.0.0.1', port: it.listener.port })
  socket.write(
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
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
