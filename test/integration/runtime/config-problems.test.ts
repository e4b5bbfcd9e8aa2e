import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { loadConfig, readConfig } from '../../../src/runtime/config/load.ts'
import { findConfigProblems, startRefusal } from '../../../src/runtime/config-problems.ts'
import { makePemPair } from '../../support/quic/identities.ts'

const folder = mkdtempSync(join(tmpdir(), 'edge-problems-'))
after(() => rmSync(folder, { recursive: true }))

function kept(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const sound = await loadCertificate({ type: 'self-signed', directory: folder }, systemClock)
const cert = kept('cert.pem', sound.certificatePem)
const key = kept('key.pem', sound.privateKeyPem)
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const otherKey = kept('other.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
const noPem = kept('garbage.pem', 'no certificate')

const problemsOf = (text: string) =>
  findConfigProblems(loadConfig({ file: { name: 'edge.toml', text }, environment: {} }))

test('the defaults are sound, and so are certificates that fit their keys', () => {
  assert.deepEqual(problemsOf(''), [])
  assert.deepEqual(
    problemsOf(`
      [tcp]
      address = "0.0.0.0:1"
      tls_enabled = true
      tls_required = true
      tls_cert_file = "${cert}"
      tls_key_file = "${key}"
      [http.tls]
      enabled = true
      cert_file = "${cert}"
      key_file = "${key}"
      [webtransport]
      tls_cert_file = "${cert}"
      tls_key_file = "${key}"`),
    [],
  )
})

test('TLS that is required but not there is refused: it would be served in the clear', () => {
  assert.match(problemsOf('[tcp]\ntls_required = true').join('\n'), /^tcp\.tls_required: found true without TLS/)
})

test('files of a certificate are named with their keys: missing, unreadable, no PEM, of another key', () => {
  const tls = (certFile: string, keyFile: string) =>
    problemsOf(`[http.tls]\nenabled = true\ncert_file = "${certFile}"\nkey_file = "${keyFile}"`)
  assert.deepEqual(tls('', ''), [
    'http.tls.cert_file: found none, expected a PEM file',
    'http.tls.key_file: found none, expected a PEM file',
  ])
  assert.match(tls('/none.pem', key).join('\n'), /^http\.tls\.cert_file: "\/none\.pem" cannot be read: ENOENT.*$/)
  assert.match(tls(noPem, key).join('\n'), /^http\.tls\.cert_file: ".*" holds no certificate in PEM.*$/)
  assert.match(tls(cert, otherKey).join('\n'), /^http\.tls\.key_file: ".*" is no key of http\.tls\.cert_file.*$/)
  assert.match(tls(cert, noPem).join('\n'), /^http\.tls\.key_file: ".*" is no key of http\.tls\.cert_file.*$/)
})

test('a certificate of WebTransport needs its key, and the other way round', () => {
  assert.deepEqual(problemsOf(`[webtransport]\ntls_cert_file = "${cert}"`), [
    'webtransport.tls_key_file: found none, expected a PEM file',
  ])
  assert.deepEqual(problemsOf(`[webtransport]\ntls_key_file = "${key}"`), [
    'webtransport.tls_cert_file: found none, expected a PEM file',
  ])
})

test('a listener that is off needs no files', () => {
  assert.deepEqual(problemsOf('[tcp]\nenabled = false\ntls_enabled = true'), [])
})

test('problems of different sections come at once, upstreams by their names and without their secrets', () => {
  const problems = problemsOf(`
    [http]
    address = "0.0.0.0:80"
    [tcp]
    tls_enabled = true
    [[sync.upstreams]]
    name = "central"
    url = "http://user:hunter2@central.example"
    [[sync.routes]]
    from = "sensors"
    to = "central:site/{topic}"`)
  assert.equal(problems.length, 5)
  const text = problems.join('\n')
  assert.match(text, /http\.address.*\n.*tls_cert_file.*\n.*tls_key_file.*\n.*sync upstream "central".*\n.*sync route/)
  assert.doesNotMatch(text, /hunter2/)
})

test('what does not go together is told beside keys that cannot be read, unless it hangs on one of them', () => {
  const problemsWith = (text: string): readonly string[] => {
    const { config, problems, misread } = readConfig({ file: { name: 'edge.toml', text }, environment: {} })
    return [...problems, ...findConfigProblems(config, misread)].map((problem) => problem.split(': found')[0] ?? '')
  }
  const route = '[[sync.routes]]\nfrom = "a/b"\nto = "nowhere:site/x"'
  const exposed = '[http]\naddress = "0.0.0.0:1"'
  assert.deepEqual(problemsWith(`[tcp]\nadress = "127.0.0.1:1"\n${exposed}\n${route}`), [
    'tcp.adress (edge.toml): unknown key; did you mean tcp.address?',
    'http.address',
    'sync route "a/b > nowhere:site/x": expected an upstream named "nowhere", found none',
  ])
  assert.deepEqual(problemsWith(`[tcp]\naddress = "0.0.0.0:2"\ntls_enabled = "perhaps"\n${exposed}`), [
    'tcp.tls_enabled (edge.toml)',
    'http.address',
  ])
  assert.deepEqual(problemsWith(`[system]\nallow_plaintext = "perhaps"\n${exposed}`), [
    'system.allow_plaintext (edge.toml)',
  ])
  assert.deepEqual(problemsWith(`[[sync.upstreams]]\nname = 7\nurl = "iggy://h"\n${route}`), [
    'sync.upstreams[0].name (edge.toml)',
  ])
  assert.deepEqual(problemsWith(`${exposed}\n${route}\n]`), [
    'edge.toml, line 6, column 1: not TOML: Invalid TOML document: illegal character in key',
  ])
})

test('two listeners on one port are told before the second one finds it taken', () => {
  const [shared, ...none] = problemsOf('[tcp]\naddress = "127.0.0.1:9000"\n[http]\naddress = "127.0.0.1:9000"')
  assert.equal(shared, 'http.address: found "127.0.0.1:9000", expected another port than tcp.address has')
  assert.deepEqual(none, [])
  assert.match(
    problemsOf('[tcp]\naddress = "127.0.0.1:8443"').join('\n'),
    /^webtransport\.address: .* than tcp\.address has$/,
  )
  for (const fine of [
    '[tcp]\naddress = "127.0.0.1:0"\n[http]\naddress = "127.0.0.1:0"',
    '[tcp]\naddress = "127.0.0.1:9000"\n[http]\naddress = "127.0.0.2:9000"',
    '[tcp]\naddress = "127.0.0.1:9000"\n[http]\nenabled = false\naddress = "127.0.0.1:9000"',
    '[tcp]\naddress = "127.0.0.1:8443"\n[webtransport]\ntcp_fallback = false',
  ])
    assert.deepEqual(problemsOf(fine), [], fine)
})

test('an origin that is none and a path that is none are told, not found out by the first request', () => {
  assert.deepEqual(
    problemsOf('[http.cors]\nallowed_origins = ["*", "https://example.org/"]\n[http.metrics]\nendpoint = "metrics"'),
    [
      'http.cors.allowed_origins: found "https://example.org/", expected * in the first place or an origin such as "https://example.org"',
      'http.metrics.endpoint: found "metrics", expected a path such as "/metrics"',
    ],
  )
  const cors = (...lines: string[]) => problemsOf(['[http.cors]', ...lines].join('\n'))
  assert.equal(cors('allowed_origins = ["a\\nb"]').length, 1)
  assert.deepEqual(cors('allowed_origins = ["https://example.org:8443", "http://localhost:3050"]'), [])
  assert.deepEqual(cors('enabled = false', 'allowed_origins = ["example.org"]'), [])
  assert.equal(cors('allowed_methods = ["GET POST"]', 'exposed_headers = ["a:b"]', 'allowed_headers = ["ä"]').length, 3)
  assert.deepEqual(cors('allow_credentials = true'), [
    'http.cors.allowed_origins: found *, expected names beside http.cors.allow_credentials = true',
  ])
  assert.deepEqual(cors('allow_credentials = true', 'allowed_origins = []', 'allowed_methods = ["*"]'), [
    'http.cors.allowed_methods: found *, expected names beside http.cors.allow_credentials = true',
  ])
})

test('plain QUIC wants nothing by default, and files where its own certificate is turned off', () => {
  assert.deepEqual(problemsOf('[quic]\nenabled = true'), [])
  assert.deepEqual(problemsOf('[quic]\nenabled = true\naddress = "0.0.0.0:8080"'), [])
  assert.deepEqual(problemsOf('[quic]\nenabled = true\ntls_self_signed = false'), [
    'quic.tls_cert_file: found none, expected a PEM file',
    'quic.tls_key_file: found none, expected a PEM file',
  ])
})

test('a key that plain QUIC cannot sign with is told before the start; TCP takes it', () => {
  const pair = makePemPair('ecdsa-p521')
  const [certFile, keyFile] = [kept('p521.pem', pair.certificatePem), kept('p521-key.pem', pair.privateKeyPem)]
  const files = `tls_cert_file = "${certFile}"\ntls_key_file = "${keyFile}"`
  assert.match(problemsOf(`[quic]\nenabled = true\n${files}`).join('\n'), /^quic\.tls_key_file: .*expected ECDSA P-256/)
  assert.deepEqual(problemsOf(`[tcp]\ntls_enabled = true\n${files}`), [])
})

test('two listeners on one UDP port are told apart from one on TCP with the same number', () => {
  assert.deepEqual(problemsOf('[quic]\nenabled = true\naddress = "127.0.0.1:8443"'), [
    'quic.address: found "127.0.0.1:8443", expected another port than webtransport.address has',
  ])
  assert.deepEqual(problemsOf('[quic]\nenabled = true\naddress = "127.0.0.1:8090"'), [])
  assert.deepEqual(problemsOf('[quic]\nenabled = false\naddress = "127.0.0.1:8443"'), [])
})

test('a start that only files of a certificate refuse is worth another try: they may be renewed, or their disk mounted', () => {
  const refusalOf = (text: string) => startRefusal(loadConfig({ file: { name: 'edge.toml', text }, environment: {} }))
  const tls = (certFile: string) => `[webtransport]\ntls_cert_file = "${certFile}"\ntls_key_file = "${key}"\n`
  assert.equal(refusalOf(tls(cert)), undefined)
  for (const file of [join(folder, 'missing.pem'), noPem]) {
    const refusal = refusalOf(tls(file))
    assert.deepEqual([refusal?.code, refusal?.isRetryable], ['EDGE_CERTIFICATE_UNUSABLE', true])
    assert.match(refusal?.message ?? '', /^configuration: 1 problem\n {2}webtransport\.tls_cert_file: /)
  }
  assert.equal(refusalOf(`${tls(noPem)}[tcp]\ntls_required = true`)?.code, 'EDGE_CONFIG_INVALID')
  assert.equal(refusalOf(`[webtransport]\ntls_key_file = "${key}"`)?.code, 'EDGE_CONFIG_INVALID')
})
