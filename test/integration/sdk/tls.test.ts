import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createServer, type Server } from 'node:tls'
import { systemClock } from '../../../src/clock.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { tcpDial } from '../../../src/sdk/index.ts'
import { addressesInHosts, lookupHost } from '../../../src/sdk/transport/lookup.ts'

const folder = mkdtempSync(join(tmpdir(), 'sdk-tls-'))
const caFile = join(folder, 'ca.pem')
let server: Server
let port = 0

before(async () => {
  const { certificatePem, privateKeyPem } = await loadCertificate(
    { type: 'self-signed', directory: folder },
    systemClock,
  )
  writeFileSync(caFile, certificatePem)
  server = createServer({ cert: certificatePem, key: privateKeyPem }, (socket) => {
    socket.on('error', () => {}) // the client resets
    socket.on('data', (chunk) => socket.write(chunk))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  port = address.port
})

after(() => {
  server.close()
  rmSync(folder, { recursive: true })
})

function dial(options: {
  tlsCaFile?: string
  tlsValidateCertificate?: boolean
  host?: string
  port?: number
  tls?: boolean
}) {
  const { promise: data, resolve: onData } = Promise.withResolvers<string>()
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>()
  const events = {
    data: (bytesView: Uint8Array) => onData(new TextDecoder().decode(bytesView)),
    drained: () => {},
    closed: () => onClosed(),
  }
  const defaults = {
    host: '127.0.0.1',
    port,
    tls: true,
    tlsDomain: 'localhost',
    tlsCaFile: '',
    tlsValidateCertificate: true,
  }
  const open = tcpDial({ ...defaults, nodelay: true, connectTimeoutMs: 3000, ...options })
  return { opening: open(events, new AbortController().signal), data, closed }
}

test('a trusted certificate is taken, bytes go through, and an abort ends it at once', async () => {
  const { opening, data, closed } = dial({ tlsCaFile: caFile })
  const transport = await opening
  transport.write(new TextEncoder().encode('hello'))
  assert.equal(await data, 'hello')
  transport.abort()
  await closed
})

test('a certificate that nobody vouches for is refused by name', async () => {
  await assert.rejects(dial({}).opening, {
    code: 'EDGE_UPSTREAM_UNREACHABLE',
    details: { reason: 'certificate', systemCode: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
  })
  const { opening } = dial({ tlsValidateCertificate: false })
  ;(await opening).abort()
})

test('an authority file that is missing is a fault of the configuration', async () => {
  await assert.rejects(dial({ tlsCaFile: join(folder, 'none') }).opening, { code: 'EDGE_CONFIG_INVALID' })
})

test('a port where nobody listens is refused, a peer that says nothing runs into the time limit', async () => {
  await assert.rejects(dial({ port: 1, tls: false }).opening, { code: 'EDGE_UPSTREAM_UNREACHABLE' })
  const silent = (await import('node:net')).createServer(() => {})
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const address = silent.address()
  assert.ok(typeof address === 'object' && address !== null)
  const { signal } = new AbortController()
  const open = tcpDial({
    host: '127.0.0.1',
    port: address.port,
    tls: true,
    tlsDomain: '',
    tlsCaFile: '',
    tlsValidateCertificate: true,
    nodelay: true,
    connectTimeoutMs: 100,
  })
  await assert.rejects(open({ data() {}, drained() {}, closed() {} }, signal), { code: 'EDGE_UPSTREAM_TIMEOUT' })
  silent.close()
})

test('addresses stand for themselves, localhost needs no server, and the hosts file is read', async () => {
  const { signal } = new AbortController()
  assert.deepEqual(await lookupHost('192.0.2.1', signal), [{ address: '192.0.2.1', family: 4 }])
  assert.deepEqual(await lookupHost('::1', signal), [{ address: '::1', family: 6 }])
  assert.equal((await lookupHost('localhost', signal))[0]?.address, '127.0.0.1')
  const hosts = '# comment\n10.0.0.1 central central.lan # end\nfe80::1 central\nnonsense central\n'
  assert.deepEqual(addressesInHosts(hosts, 'central'), [
    { address: '10.0.0.1', family: 4 },
    { address: 'fe80::1', family: 6 },
  ])
})
