/** TLS of the binary protocol's listeners: a certificate of our own where no files are named, files taken up anew when they change. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { type Certificate, loadCertificate, startQuicEdge } from '../../../src/quic-edge/index.ts'
import { certificateSourceOf, openListenerCertificate } from '../../../src/runtime/listener-certificate.ts'
import { connect } from '../../../src/sdk/index.ts'
import { startEdgeWorld } from '../../support/edge-world.ts'
import { eventually } from '../../support/eventually.ts'

const OPTIONS = { listener: 'tcp', key: 'tcp.tls_cert_file', clock: systemClock, logger: silentLogger }

function folderOf(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'edge-tls-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('without files TCP and WebSocket serve over TLS with one certificate of our own, kept over a restart', async () => {
  await using world = await startEdgeWorld({
    EDGE_TCP__TLS_ENABLED: 'true',
    EDGE_TCP__TLS_SELF_SIGNED: 'true',
    EDGE_WEBSOCKET__TLS_ENABLED: 'true',
    EDGE_WEBSOCKET__TLS_SELF_SIGNED: 'true',
  })
  const file = join(world.edge.dataPath, 'certificate', 'self-signed.pem')
  const before = readFileSync(file, 'utf8')
  await using client = await connect(`iggy://iggy:iggy@localhost:${world.tcpPort}?tls=true&tls_ca_file=${file}`)
  await client.streams.create('plant')
  const port = Number(world.edge.addresses.websocket.split(':').at(-1))
  const socket = connectTls({ host: '127.0.0.1', servername: 'localhost', port, ca: before })
  await once(socket, 'secureConnect')
  socket.destroy()
  // Plain clients go on on the same TCP port: they are told apart by their first bytes.
  assert.equal((await (await world.connect()).streams.list()).length, 1)
  await client.close()
  await world.restart()
  assert.equal(readFileSync(file, 'utf8'), before)
})

test('files that change are taken up, and what cannot be used leaves the old certificate', async (context) => {
  const folder = folderOf(context)
  const make = (name: string) => loadCertificate({ type: 'self-signed', directory: join(folder, name) }, systemClock)
  const old = await make('old')
  const renewed = await make('new')
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const write = ({ certificatePem, privateKeyPem }: Certificate) => {
    writeFileSync(key, privateKeyPem)
    writeFileSync(cert, certificatePem)
  }
  write(old)
  const settings = { tls_self_signed: true, tls_cert_file: cert, tls_key_file: key }
  const source = certificateSourceOf(settings, folder)
  const certificate = await openListenerCertificate({ ...OPTIONS, source, checkMs: 10 })
  context.after(() => certificate.close())
  assert.equal(certificate.current.sha256, old.sha256, 'files win over a certificate of our own')
  const seen: string[] = []
  certificate.watch(({ sha256 }) => void seen.push(sha256))
  copyFileSync(join(folder, 'new', 'self-signed.pem'), key)
  writeFileSync(cert, 'half a file')
  write(renewed)
  await eventually(() => seen.length > 0, 'the new certificate')
  assert.deepEqual(seen, [renewed.sha256])
  assert.equal(certificate.current.sha256, renewed.sha256)
  // A chain without its intermediate is what most are completed after.
  writeFileSync(cert, renewed.certificatePem + old.certificatePem)
  await eventually(() => seen.length > 1, 'the whole chain')
  assert.equal(certificate.current.certificatePem, renewed.certificatePem + old.certificatePem)
})

test('files that do not belong together are named by their key', async (context) => {
  const settings = { tls_self_signed: false, tls_cert_file: '/none/cert.pem', tls_key_file: '/none/key.pem' }
  const source = certificateSourceOf(settings, folderOf(context))
  await assert.rejects(openListenerCertificate({ ...OPTIONS, source }), {
    code: 'EDGE_CONFIG_INVALID',
    message: /^tcp\.tls_cert_file: /,
  })
})

test('files that have become unusable are told once by each listener, not at every look', async (context) => {
  const folder = folderOf(context)
  await loadCertificate({ type: 'self-signed', directory: folder }, systemClock)
  const [file, key] = [join(folder, 'self-signed.pem'), join(folder, 'key.pem')]
  copyFileSync(file, key)
  const source = { type: 'files', certificateFile: file, privateKeyFile: key } as const
  const told: { event: string; listener: unknown; reason: unknown }[] = []
  const warn = (event: string, { listener, reason }: Record<string, unknown> = {}) =>
    void told.push({ event, listener, reason: String(reason).split(':')[0] })
  const logger = { ...silentLogger, warn }
  let looks = 0
  const counted = {
    get type() {
      looks++
      return 'files' as const
    },
    certificateFile: file,
    privateKeyFile: key,
  }
  const certificate = await openListenerCertificate({ ...OPTIONS, source: counted, logger, checkMs: 5 })
  context.after(() => certificate.close())
  certificate.watch(() => {})
  const parts = { host: '127.0.0.1', port: 0, certificate: source, hasTcpFallback: false, certificateCheckMs: 5 }
  const quic = await startQuicEdge({ ...parts, logger }, { paths: {} })
  context.after(() => quic.close())
  // In one step, and of one file only: whoever looks meanwhile finds no other trouble than the one after.
  const replaceBy = (content: Uint8Array | string): void => {
    writeFileSync(`${file}.new`, content)
    renameSync(`${file}.new`, file)
  }
  const whole = readFileSync(file)
  replaceBy('half a file')
  const before = looks
  await eventually(() => looks > before + 5 && told.length >= 2, 'some looks at the file')
  const line = { event: 'certificate.unusable', reason: `${file} with ${key}` }
  assert.deepEqual(
    told.toSorted((a, b) => String(a.listener).localeCompare(String(b.listener))),
    [
      { ...line, listener: 'tcp' },
      { ...line, listener: 'webtransport' },
    ],
  )
  for (const { trouble } of [certificate.current, quic.certificate]) assert.match(trouble ?? '', /self-signed\.pem/)
  replaceBy(whole)
  await eventually(() => !certificate.current.trouble && !quic.certificate.trouble, 'the files are right again')
})
