import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import {
  DEFAULT_CONNECTION_OPTIONS,
  describeTarget,
  parseConnectionString,
} from '../../../src/sdk/connection-string.ts'

function refusalOf(text: string): string {
  try {
    parseConnectionString(text)
  } catch (error) {
    assert.ok(error instanceof EdgeError && error.code === 'EDGE_CONFIG_INVALID')
    return error.message
  }
  throw new Error(`${text} was taken`)
}

test('the plain form is TCP with the defaults of the SDKs', () => {
  assert.deepEqual(parseConnectionString('iggy://iggy:secret@central.example:8090'), {
    scheme: 'tcp',
    host: 'central.example',
    port: 8090,
    credentials: { kind: 'password', username: 'iggy', password: 'secret' },
    options: DEFAULT_CONNECTION_OPTIONS,
  })
})

test('a single part before the @ is a token, slashes and plus signs included', () => {
  const { credentials } = parseConnectionString('iggy+tcp://ab+c/d==@h:1')
  assert.deepEqual(credentials, { kind: 'token', token: 'ab+c/d==' })
})

test('credentials are percent-decoded, and a lone percent sign stands for itself', () => {
  const { credentials } = parseConnectionString('iggy://us%65r:p%40ss%3A100%@h:1')
  assert.deepEqual(credentials, { kind: 'password', username: 'user', password: 'p@ss:100%' })
})

test('an IPv6 address stands in brackets', () => {
  const target = parseConnectionString('iggy://u:p@[2001:db8::7]:9000')
  assert.equal(target.host, '2001:db8::7')
  assert.equal(target.port, 9000)
  assert.equal(describeTarget(target), 'iggy+tcp://[2001:db8::7]:9000')
})

test('each scheme has its port when none is named', () => {
  const ports = ['iggy', 'iggy+http', 'iggy+wt', 'edge+wt'].map((scheme) => parseConnectionString(`${scheme}://h`).port)
  assert.deepEqual(ports, [8090, 3000, 8443, 8443])
})

test('options take the names and forms of the SDKs', () => {
  const { options } = parseConnectionString(
    'iggy://u:p@h:1?tls=true&tls_domain=x&reconnection_retries=3&reconnection_interval=1m 30s&heartbeat_interval=500ms&generation=vsr',
  )
  assert.equal(options.tls, true)
  assert.equal(options.tlsDomain, 'x')
  assert.equal(options.reconnectionRetries, 3)
  assert.equal(options.reconnectionIntervalMs, 90_000)
  assert.equal(options.heartbeatIntervalMs, 500)
  assert.equal(options.generation, 'vsr')
  assert.equal(parseConnectionString('iggy://u:p@h:1?reconnection_retries=unlimited').options.reconnectionRetries, null)
})

test('what cannot be right is refused by name, and never with the password', () => {
  const cases = [
    ['http://h:1', /scheme/],
    ['iggy:h', /scheme/],
    ['iggy://u:hidden@h:0', /address/],
    ['iggy://u:hidden@h:65536', /address/],
    ['iggy://u:hidden@a:b:c', /address/],
    ['iggy://:hidden@h:1', /user name/],
    ['iggy://u:hidden@h:1?colour=red', /colour/],
    ['iggy://u:hidden@h:1?tls=yes', /true or false/],
    ['iggy://u:hidden@h:1?heartbeat_interval=5', /duration/],
    ['iggy://u:hidden@h:1?heartbeat_interval=30d', /heartbeat_interval.*1d/],
    ['iggy://u:hidden@h:1?heartbeat_interval=1us', /heartbeat_interval/],
    ['iggy://u:hidden@h:1?request_timeout=30d', /request_timeout/],
    ['iggy://u:hidden@h:1?connect_timeout=0', /connect_timeout/],
    ['iggy://u:hidden@h:1?reconnection_interval=0', /reconnection_interval/],
    ['iggy://u:hidden@h:1?reestablish_after=25d', /reestablish_after/],
    ['iggy://u:hidden@h:1?generation=v6', /classic, vsr or auto/],
    ['iggy://u:hidden@h:1?certificate_hash=12', /64 hex digits/],
    ['edge+wt://token@h?device=-x', /device/],
    ['constructor://h', /scheme/],
    ['iggy://h?constructor=1', /option/],
  ] as const
  for (const [text, pattern] of cases) {
    const message = refusalOf(text)
    assert.match(message, pattern, text)
    assert.ok(!message.includes('hidden'), text)
  }
})
