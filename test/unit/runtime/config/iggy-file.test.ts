import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readIggyEnvironment } from '../../../../src/runtime/config/iggy-environment.ts'
import { readIggyFile } from '../../../../src/runtime/config/iggy-file.ts'
import { loadConfig } from '../../../../src/runtime/config/load.ts'

const TEXT = `
[http]
address = "127.0.0.1:0"
max_request_size = "1.5 MB"

[http.cors]
allowed_methods = ["GET", "POST"]
allowed_origins = ["https://example.org"]
exposed_headers = [""]
allow_credentials = true

[http.jwt]
encoding_secret = "a secret of this test"

[[http.jwt.trusted_issuers]]
issuer = "https://issuer.test"
jwks_url = "http://issuer.test/keys"
audience = "iggy"
user_id = 1

[heartbeat]
enabled = false

[system.segment]
size = "32 MiB"
archive_expired = true
`

test("a file of Apache's server sets what means the same here", () => {
  const { variables } = readIggyEnvironment(readIggyFile({ name: 'iggy.toml', text: TEXT }).variables)
  const config = loadConfig({ file: null, environment: variables })
  assert.equal(config.http.address, '127.0.0.1:0')
  assert.equal(config.http.max_request_size, 1_500_000)
  assert.deepEqual(config['http.cors'], {
    enabled: true,
    allowed_origins: ['https://example.org'],
    allowed_methods: ['GET', 'POST'],
    allowed_headers: ['content-type', 'authorization'],
    exposed_headers: [],
    allow_credentials: true,
    allow_private_network: false,
  })
  assert.equal(config['http.jwt'].secret, 'a secret of this test')
  assert.equal(config.heartbeat.enabled, false)
  assert.equal(config.log.segment_size, 32 * 1024 * 1024)
  assert.deepEqual(config['http.jwt.trusted_issuers'], [
    { issuer: 'https://issuer.test', jwks_url: 'http://issuer.test/keys', audience: 'iggy', user_id: 1 },
  ])
})

test('a key without effect is named as the file has it', () => {
  const { variables, paths } = readIggyFile({ name: 'iggy.toml', text: TEXT })
  const { ignored } = readIggyEnvironment(variables)
  assert.deepEqual(
    ignored.map((variable) => paths.get(variable)),
    ['system.segment.archive_expired'],
  )
})

test('variables of lists are told by their number, and only of keys that there are', () => {
  const { variables, ignored } = readIggyEnvironment({
    IGGY_HTTP_JWT_TRUSTED_ISSUERS_1_USER_ID: '7',
    IGGY_HTTP_JWT_TRUSTED_ISSUERS_0_COLOUR: 'blue',
    IGGY_HTTP_JWT_TRUSTED_ISSUERS_ISSUER: 'x',
  })
  assert.deepEqual(variables, { EDGE_HTTP__JWT__TRUSTED_ISSUERS__1__USER_ID: '7' })
  assert.equal(ignored.length, 2)
})

test('what is not TOML stops the start, with its place', () => {
  assert.throws(() => readIggyFile({ name: 'iggy.toml', text: '[http\naddress' }), {
    code: 'EDGE_CONFIG_INVALID',
    message: /iggy\.toml, line 1, column \d+: not TOML/,
  })
})
