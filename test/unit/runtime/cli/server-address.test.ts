import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseCommandLine } from '../../../../src/runtime/cli/grammar.ts'
import { type ServerAddress, serverAddressOf } from '../../../../src/runtime/cli/server-address.ts'
import { SERVER_ARGUMENTS } from '../../../../src/runtime/cli/server-arguments.ts'

const PING = { path: ['ping'], summary: '', arguments: [], common: SERVER_ARGUMENTS }

function addressOf(line: string, environment: Record<string, string> = {}): ServerAddress {
  const parsed = parseCommandLine(['ping', ...line.split(' ').filter(Boolean)], [PING], [])
  assert.ok('values' in parsed)
  return serverAddressOf(parsed.values, { environment })
}

const place = ({ target }: ServerAddress) => `${target?.scheme} ${target?.host}:${target?.port}`

describe('server address', () => {
  for (const [line, environment, expected] of [
    ['', {}, 'tcp 127.0.0.1:8090'],
    ['--url host:1', {}, 'tcp host:1'],
    ['--url host', {}, 'tcp host:8090'],
    ['--url iggy+wt://host:8443', {}, 'webtransport host:8443'],
    ['--transport tcp --tcp-server-address host:2', {}, 'tcp host:2'],
    ['', { IGGY_URL: 'iggy://[::1]:3' }, 'tcp ::1:3'],
    ['--url host:1', { IGGY_URL: 'other:3' }, 'tcp host:1'],
  ] as const) {
    it(`of "${line}" with ${JSON.stringify(environment)} is ${expected}`, () => {
      assert.equal(place(addressOf(line, environment)), expected)
    })
  }

  it('takes an HTTP address and leaves the binary port to be asked for', () => {
    for (const url of ['http://host:3000/', 'iggy+http://host:3000']) {
      const { target, httpUrl } = addressOf('', { IGGY_URL: url })
      assert.equal(target, null)
      assert.equal(httpUrl, 'http://host:3000')
    }
    assert.equal(addressOf('--http-api-url other:81').httpUrl, 'http://other:81')
  })

  it('asks over HTTP the machine that the URL names', () => {
    assert.equal(addressOf('').httpUrl, 'http://127.0.0.1:3000')
    assert.equal(addressOf('--url gateway:8090').httpUrl, 'http://gateway:3000')
    assert.equal(addressOf('', { IGGY_URL: 'iggy://[::1]:3' }).httpUrl, 'http://[::1]:3000')
    assert.equal(addressOf('--url gateway:8090 --http-url other:81').httpUrl, 'http://other:81')
  })

  it('takes credentials from words, then the URL, then the environment', () => {
    const environment = { IGGY_USERNAME: 'env', IGGY_PASSWORD: 'e' }
    const user = (line: string) => {
      const { credentials } = addressOf(line, environment)
      return credentials?.kind === 'password' ? credentials.username : credentials?.token
    }
    assert.equal(user(''), 'env')
    assert.equal(user('--url iggy://url:u@host'), 'url')
    assert.equal(user('--url http://url:u@host'), 'url')
    assert.equal(user('--url iggy://url:u@host -u word -p w'), 'word')
    assert.equal(user('-u word -p w -t secret'), 'secret')
  })

  it('takes an empty name in the environment for none', () => {
    assert.equal(addressOf('', { IGGY_USERNAME: '', IGGY_PASSWORD: '' }).credentials, null)
  })

  it('asks for the password of a user who gave none', () => {
    const { credentials, userWithoutPassword } = addressOf('-u word')
    assert.equal(credentials, null)
    assert.equal(userWithoutPassword, 'word')
  })

  it('says what it cannot do', () => {
    assert.throws(() => addressOf('--transport quic'), /transport: found "quic", expected tcp/)
    assert.throws(() => addressOf('--url edge+wt://token@host?device=a'), /edge\+wt/)
    assert.throws(() => addressOf('--url ftp://host'), /scheme/)
  })

  it('connects with TLS when asked to', () => {
    const { target } = addressOf('--tcp-tls-enabled --tcp-tls-domain edge.example --url host')
    assert.ok(target?.options.tls)
    assert.equal(target.options.tlsDomain, 'edge.example')
  })
})
