import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { silentLogger } from '../../../src/logger.ts'
import { watchCertificate } from '../../../src/runtime/http/tls-certificate.ts'
import { startTestHttp } from '../../support/http-server.ts'

interface TestFiles extends Disposable {
  readonly certPath: string
  readonly keyPath: string
  /** Puts a new pair in their place. */
  renew(name: string): void
}

function makeFiles(): TestFiles {
  const folder = mkdtempSync(join(tmpdir(), 'edge-tls-'))
  const [certPath, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const renew = (name: string): void => {
    const [newCert, newKey] = [`${certPath}.new`, `${keyPath}.new`]
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', '-x509', ...ec, '-subj', `/CN=${name}`, '-keyout', newKey, '-out', newCert], {
      stdio: 'ignore',
    })
    renameSync(newKey, keyPath)
    renameSync(newCert, certPath)
  }
  renew('first')
  return { certPath, keyPath, renew, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) }
}

function ping(port: number): Promise<{ text: string; name: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { port, host: '127.0.0.1', path: '/ping', rejectUnauthorized: false, agent: false },
      (response) => {
        const name = (response.socket as TLSSocket).getPeerCertificate().subject.CN
        response.on('data', (chunk: Buffer) => resolve({ text: chunk.toString(), name: String(name) }))
      },
    )
    outgoing.on('error', reject)
    outgoing.end()
  })
}

test('with a certificate the API speaks HTTPS, and plain HTTP gets nowhere', async () => {
  using files = makeFiles()
  const tls = { enabled: true, cert_file: files.certPath, key_file: files.keyPath }
  await using server = await startTestHttp({ settings: { 'http.tls': tls } })
  assert.deepEqual(await ping(server.http.port), { text: 'pong', name: 'first' })
  await assert.rejects(fetch(`${server.url}/ping`))
})

test('replaced files are taken up; half written ones are not', async () => {
  using files = makeFiles()
  const watched = await watchCertificate(files, silentLogger, 20)
  const seen: string[] = []
  const changed = new Promise<void>((resolve) =>
    watched.onChanged(({ cert }) => {
      seen.push(cert)
      resolve()
    }),
  )
  const before = watched.current.cert
  writeFileSync(files.certPath, before.slice(0, 100))
  files.renew('second')
  await changed
  watched.close()
  assert.equal(seen.length, 1)
  assert.notEqual(watched.current.cert, before)
})

test('a certificate that cannot be used is named before the listener starts', async () => {
  using files = makeFiles()
  writeFileSync(files.keyPath, 'no key')
  const tls = { enabled: true, cert_file: files.certPath, key_file: files.keyPath }
  await assert.rejects(startTestHttp({ settings: { 'http.tls': tls } }), {
    code: 'EDGE_CONFIG_INVALID',
    message: /cert\.pem/,
  })
})
