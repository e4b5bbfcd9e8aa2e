import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { type Clock, systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { startQuicEdge } from '../../../src/quic-edge/index.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { echoHandlers, exchange, startBench } from '../../support/quic-edge-bench.ts'
import { VERSION_1_CERTIFICATE, VERSION_1_KEY } from '../../support/version-1-certificate.ts'

const DAY_US = 86_400_000_000n

/** The real time, moved. */
class MovedClock implements Clock {
  byUs = 0n
  wallUs = () => systemClock.wallUs() + this.byUs
  monotonicUs = () => systemClock.monotonicUs()
}

let directory: string
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'certificate-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

test('a certificate of our own is made once, kept for the owner alone, and used again', async () => {
  const source = { type: 'self-signed' as const, directory: path.join(directory, 'new') }
  const made = await loadCertificate(source, systemClock)
  const again = await loadCertificate(source, systemClock)
  assert.equal(again.sha256, made.sha256)
  assert.equal(again.certificatePem, made.certificatePem)
  assert.equal(statSync(path.join(directory, 'new', 'self-signed.pem')).mode & 0o777, 0o600)
  const parsed = new X509Certificate(made.certificatePem)
  assert.equal(parsed.fingerprint256.replaceAll(':', '').toLowerCase(), made.sha256)
  const validDays = (Date.parse(parsed.validTo) - Date.parse(parsed.validFrom)) / 86_400_000
  assert.ok(validDays <= 13, `${validDays} days`)
})

test('it is renewed before it ends, when it begins in the future, and when its file is damaged; the key stays', async () => {
  const source = { type: 'self-signed' as const, directory }
  const clock = new MovedClock()
  const first = await loadCertificate(source, clock)
  clock.byUs = 8n * DAY_US
  assert.equal((await loadCertificate(source, clock)).sha256, first.sha256)
  clock.byUs = 10n * DAY_US
  const renewed = await loadCertificate(source, clock)
  assert.notEqual(renewed.sha256, first.sha256)
  assert.equal(renewed.keySha256, first.keySha256)
  clock.byUs = -DAY_US
  const earlier = await loadCertificate(source, clock)
  assert.notEqual(earlier.sha256, renewed.sha256)
  writeFileSync(path.join(directory, 'self-signed.pem'), 'half a fi')
  const told: string[] = []
  const logger = { ...silentLogger, error: (event: string) => void told.push(event) }
  assert.notEqual((await loadCertificate(source, clock, { logger })).keySha256, first.keySha256)
  assert.deepEqual(told, ['certificate.lost'])
  await loadCertificate({ type: 'self-signed', directory: path.join(directory, 'new') }, clock, { logger })
  assert.deepEqual(told, ['certificate.lost'], 'a first one replaces none')
  rmSync(path.join(directory, 'self-signed.pem'))
  await loadCertificate(source, clock, { logger })
  assert.deepEqual(told, ['certificate.lost', 'certificate.lost'])
})

test('while the clock is not set it stays, whatever the clock shows: its peers know the time', async () => {
  const source = { type: 'self-signed' as const, directory }
  const clock = new MovedClock()
  let isSet = false
  const options = { isClockTrusted: () => isSet }
  const first = await loadCertificate(source, clock, options)
  clock.byUs = -systemClock.wallUs()
  assert.equal((await loadCertificate(source, clock, options)).sha256, first.sha256)
  clock.byUs = 20n * 365n * DAY_US
  assert.equal((await loadCertificate(source, clock, options)).sha256, first.sha256)
  isSet = true
  assert.notEqual((await loadCertificate(source, clock, options)).sha256, first.sha256)
})

test('one that cannot be renewed is used while it is valid: a full disk is no reason to stop', async () => {
  const source = { type: 'self-signed' as const, directory }
  const clock = new MovedClock()
  const first = await loadCertificate(source, clock)
  // Where the next one would be written stands a folder.
  mkdirSync(path.join(directory, 'self-signed.pem.partial'))
  clock.byUs = 10n * DAY_US
  assert.equal((await loadCertificate(source, clock)).sha256, first.sha256)
  const told: string[] = []
  const logger = { ...silentLogger, error: (event: string) => void told.push(event) }
  clock.byUs = 13n * DAY_US
  const unkept = await loadCertificate(source, clock, { logger })
  assert.deepEqual([unkept.keySha256, unkept.sha256 === first.sha256], [first.keySha256, false])
  assert.equal((await loadCertificate(source, clock, { logger })).sha256, unkept.sha256, 'one for all listeners')
  assert.deepEqual(told, ['certificate.unkept'], 'once')
  rmdirSync(path.join(directory, 'self-signed.pem.partial'))
  assert.equal((await loadCertificate(source, clock, { logger })).sha256, unkept.sha256)
  const kept = readFileSync(path.join(directory, 'self-signed.pem'), 'utf8')
  assert.ok(kept.endsWith(unkept.certificatePem), 'kept with the first look at which the disk takes it')
})

test('one that cannot be read for a while is neither replaced nor written over', async () => {
  const folder = path.join(directory, 'new')
  const source = { type: 'self-signed' as const, directory: folder }
  const told: string[] = []
  const logger = { ...silentLogger, error: (event: string) => void told.push(event) }
  const first = await loadCertificate(source, systemClock, { logger })
  const file = path.join(folder, 'self-signed.pem')
  const pem = readFileSync(file)
  rmSync(file)
  mkdirSync(file)
  for (let look = 0; look < 2; look++) {
    assert.equal((await loadCertificate(source, systemClock, { logger })).sha256, first.sha256)
  }
  assert.deepEqual(told, ['certificate.unkept'], 'once')
  rmdirSync(file)
  writeFileSync(file, pem)
  assert.equal((await loadCertificate(source, systemClock, { logger })).sha256, first.sha256)
  assert.deepEqual(readFileSync(file), pem)
})

test('where one can neither be read nor kept at the start, one is served until the end of the process', async () => {
  const source = { type: 'self-signed' as const, directory: path.join(directory, 'file', 'below') }
  writeFileSync(path.join(directory, 'file'), '')
  const told: string[] = []
  const logger = { ...silentLogger, error: (event: string) => void told.push(event) }
  const made = await loadCertificate(source, systemClock, { logger })
  assert.equal((await loadCertificate(source, systemClock, { logger })).sha256, made.sha256)
  assert.deepEqual(told, ['certificate.unkept'])
})

test('it is used again whatever year the clock thinks it is, from the epoch to the last one that Linux can be set to', async () => {
  for (const year of [1970, 1980, 2049, 2050, 2099, 2232]) {
    const nowMs = Date.UTC(year, 11, 25)
    const clock: Clock = { ...systemClock, wallUs: () => BigInt(nowMs) * 1000n }
    const source = { type: 'self-signed' as const, directory: path.join(directory, String(year)) }
    const { sha256, certificatePem } = await loadCertificate(source, clock)
    assert.ok(Date.parse(new X509Certificate(certificatePem).validFrom) < nowMs, `${year}`)
    assert.ok(Date.parse(new X509Certificate(certificatePem).validTo) > nowMs, `${year}`)
    assert.equal((await loadCertificate(source, clock)).sha256, sha256, `${year}: made anew at each look`)
  }
})

test('files are checked: missing, not PEM, and a key of another certificate are named', async () => {
  const pem = (name: string) => path.join(directory, name, 'self-signed.pem')
  for (const name of ['a', 'b']) {
    await loadCertificate({ type: 'self-signed', directory: path.join(directory, name) }, systemClock)
  }
  const files = (certificateFile: string, privateKeyFile: string) =>
    loadCertificate({ type: 'files', certificateFile, privateKeyFile }, systemClock)
  assert.equal((await files(pem('a'), pem('a'))).isSelfSigned, false)
  await assert.rejects(files(pem('a'), pem('b')), { code: 'EDGE_CONFIG_INVALID', message: /does not belong/ })
  await assert.rejects(files(pem('a'), path.join(directory, 'none')), { code: 'EDGE_CONFIG_INVALID', message: /none/ })
  writeFileSync(path.join(directory, 'text'), 'not a certificate')
  await assert.rejects(files(path.join(directory, 'text'), pem('a')), { code: 'EDGE_CONFIG_INVALID' })
})

test('a renewed certificate is used on both carriers without a restart, and TCP sessions live on', async () => {
  const clock = new MovedClock()
  clock.byUs = -10n * DAY_US
  await using bench = await startBench(echoHandlers(), { clock })
  const before = bench.edge.certificate.sha256
  const living = await bench.connect({ isReliableOnly: true })
  const passing = await bench.connect()
  passing.close({ closeCode: 0, reason: '' })
  assert.equal(await bench.edge.reloadCertificate(), false)
  clock.byUs = 0n
  assert.equal(await bench.edge.reloadCertificate(), true)
  assert.notEqual(bench.edge.certificate.sha256, before)
  for (const isReliableOnly of [false, true]) {
    const session = await bench.connect({ isReliableOnly })
    const stream = await session.createBidirectionalStream({ waitUntilAvailable: true })
    assert.equal((await exchange(stream, Buffer.from('new'))).byteLength, 3)
    await assert.rejects(bench.connect({ isReliableOnly, certificateSha256: before }))
  }
  const stream = await living.createBidirectionalStream({ waitUntilAvailable: true })
  assert.equal((await exchange(stream, Buffer.from('old'))).byteLength, 3)
})

test('a renewed certificate that QUIC refuses costs no session, and the one before it is served on', async () => {
  const [certificateFile, privateKeyFile] = [path.join(directory, 'cert.pem'), path.join(directory, 'key.pem')]
  const { certificatePem, privateKeyPem } = await loadCertificate({ type: 'self-signed', directory }, systemClock)
  writeFileSync(certificateFile, certificatePem)
  writeFileSync(privateKeyFile, privateKeyPem)
  await using bench = await startBench(echoHandlers(), {
    certificate: { type: 'files', certificateFile, privateKeyFile },
  })
  const living = await bench.connect()
  writeFileSync(certificateFile, VERSION_1_CERTIFICATE)
  writeFileSync(privateKeyFile, VERSION_1_KEY)
  await assert.rejects(bench.edge.reloadCertificate(), { code: 'EDGE_CONFIG_INVALID', message: /CertVersion/ })
  assert.equal(bench.edge.failure, '')
  for (const session of [living, await bench.connect(), await bench.connect({ isReliableOnly: true })]) {
    const stream = await session.createBidirectionalStream({ waitUntilAvailable: true })
    assert.equal((await exchange(stream, Buffer.from('as before'))).byteLength, 9)
  }
})

test('a port in use and a certificate that cannot be read are told at the start, and nothing is left open', async () => {
  const certificate = { type: 'self-signed' as const, directory }
  const first = await startQuicEdge({ host: '127.0.0.1', port: 0, certificate, hasTcpFallback: true }, { paths: {} })
  for (const hasTcpFallback of [true, false]) {
    const second = startQuicEdge({ host: '127.0.0.1', port: first.port, certificate, hasTcpFallback }, { paths: {} })
    await assert.rejects(second, { code: 'EDGE_ADDRESS_IN_USE' })
  }
  await first.close()
  const file = path.join(directory, 'self-signed.pem')
  assert.ok(readFileSync(file, 'utf8').includes('PRIVATE KEY'))
  for (let count = 0; count < 5; count++) {
    const options = { host: '127.0.0.1', port: first.port, certificate, hasTcpFallback: true }
    await (await startQuicEdge(options, { paths: {} })).close()
  }
})
