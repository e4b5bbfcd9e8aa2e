import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { systemClock } from '../../../src/clock.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { startTestHttp } from '../../support/http-server.ts'

interface TestFiles extends AsyncDisposable {
  readonly certPath: string
  readonly keyPath: string
  /** Puts a new pair in their place. @returns the certificate's fingerprint. */
  renew(): Promise<string>
}

async function makeFiles(): Promise<TestFiles> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-tls-'))
  const [certPath, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const renew = async (): Promise<string> => {
    const directory = mkdtempSync(join(folder, 'made-'))
    const { certificatePem, privateKeyPem } = await loadCertificate({ type: 'self-signed', directory }, systemClock)
    const [newCert, newKey] = [`${certPath}.new`, `${keyPath}.new`]
    writeFileSync(newCert, certificatePem)
    writeFileSync(newKey, privateKeyPem)
    renameSync(newKey, keyPath)
    renameSync(newCert, certPath)
    return new X509Certificate(certificatePem).fingerprint256
  }
  await renew()
  return { certPath, keyPath, renew, [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }) }
}

function ping(port: number): Promise<{ text: string; fingerprint: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { port, host: '127.0.0.1', path: '/ping', rejectUnauthorized: false, agent: false },
      (response) => {
        const fingerprint = (response.socket as TLSSocket).getPeerCertificate().fingerprint256
        response.on('data', (chunk: Buffer) => resolve({ text: chunk.toString(), fingerprint }))
      },
    )
    outgoing.on('error', reject)
    outgoing.end()
  })
}

test('a listener that closes does not wait for peers that never speak TLS', async () => {
  await using files = await makeFiles()
  const tls = { enabled: true, cert_file: files.certPath, key_file: files.keyPath }
  await using server = await startTestHttp({ settings: { 'http.tls': tls } })
  const silent = connect(server.http.port, '127.0.0.1').on('error', () => {})
  await once(silent, 'connect')
  // The server has accepted it when it answers the next one.
  await ping(server.http.port)
  const ended = once(silent.resume(), 'close')
  await server.http.close()
  await ended
})

test('with a certificate the API speaks HTTPS, and plain HTTP gets nowhere', async () => {
  await using files = await makeFiles()
  const fingerprint = await files.renew()
  const tls = { enabled: true, cert_file: files.certPath, key_file: files.keyPath }
  await using server = await startTestHttp({ settings: { 'http.tls': tls } })
  assert.deepEqual(await ping(server.http.port), { text: 'pong', fingerprint })
  await assert.rejects(fetch(`${server.url}/ping`))
})

test('a certificate that cannot be used is named before the listener starts', async () => {
  await using files = await makeFiles()
  writeFileSync(files.keyPath, 'no key')
  const tls = { enabled: true, cert_file: files.certPath, key_file: files.keyPath }
  await assert.rejects(startTestHttp({ settings: { 'http.tls': tls } }), {
    code: 'EDGE_CONFIG_INVALID',
    message: /^http\.tls\.cert_file: /,
  })
})
