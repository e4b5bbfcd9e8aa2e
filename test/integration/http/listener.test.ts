import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { listenHttp } from '../../../src/runtime/http/http-listener.ts'
import { HTTP_SECTIONS, type HttpSettings } from '../../../src/runtime/http/index.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'

const SECTIONS = Object.entries(HTTP_SECTIONS).map(([section, table]) => [section, defaultsOf(table)])
/** More than the system's buffers hold of an answer. */
const LARGE_BYTES = 32 * 1024 * 1024
/** Of half the limit, on the way through an answer. */
const PAUSES = 12
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

async function listen(answerStallMs: number, tls: Partial<HttpSettings['http.tls']> = {}) {
  const defaults = Object.fromEntries(SECTIONS)
  const settings: HttpSettings = {
    ...defaults,
    http: { ...defaults.http, address: '127.0.0.1:0' },
    'http.tls': { ...defaults['http.tls'], ...tls },
  }
  const onRequest = (_request: unknown, response: { end(bytes: Uint8Array): unknown }) => {
    response.end(new Uint8Array(LARGE_BYTES))
  }
  return listenHttp({ settings, onRequest, clock: systemClock, logger: silentLogger, answerStallMs })
}

test('a peer that does not take its answer is given up', async (context) => {
  const listener = await listen(100)
  context.after(() => listener.close(0))
  const socket = connect(listener.port, '127.0.0.1')
  socket.on('error', () => {}) // the server resets
  socket.write(GET)
  await once(socket, 'readable')
  // Nothing is read from here on: what was not taken goes with the connection.
  await eventually(() => listener.occupancy.openConnections === 0, 'the end of the connection')
  let sizeBytes = 0
  socket.on('data', (bytes: Buffer) => {
    sizeBytes += bytes.length
  })
  await new Promise((resolve) => socket.once('close', resolve))
  assert.ok(sizeBytes < LARGE_BYTES, `${sizeBytes} bytes`)
})

test('one that takes it slowly, and one that asks again later, are served', async (context) => {
  const listener = await listen(200)
  context.after(() => listener.close(0))
  await askTwice(connect(listener.port, '127.0.0.1'))
})

test('and so they are over TLS', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'edge-https-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const { certificatePem, privateKeyPem } = await loadCertificate({ type: 'self-signed', directory }, systemClock)
  const [cert_file, key_file] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
  writeFileSync(cert_file, certificatePem)
  writeFileSync(key_file, privateKeyPem)
  const listener = await listen(200, { enabled: true, cert_file, key_file })
  context.after(() => listener.close(0))
  await askTwice(connectTls({ port: listener.port, host: '127.0.0.1', servername: 'localhost', ca: certificatePem }))
})

async function askTwice(socket: Socket): Promise<void> {
  for (let round = 0; round < 2; round++) {
    socket.write(GET)
    let sizeBytes = 0
    let pausedCount = 0
    for await (const bytes of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      sizeBytes += bytes.length
      if (sizeBytes >= LARGE_BYTES) break
      if (sizeBytes > (pausedCount + 1) * (LARGE_BYTES / PAUSES)) {
        pausedCount++
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    assert.ok(sizeBytes >= LARGE_BYTES && pausedCount >= PAUSES / 2, `${sizeBytes} bytes, ${pausedCount} pauses`)
    // Longer than the limit for an answer, shorter than that of an idle connection.
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  socket.destroy()
}
