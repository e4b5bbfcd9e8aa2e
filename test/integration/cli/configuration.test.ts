import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { configurationOf } from '../../../src/runtime/cli/configuration.ts'
import { Values } from '../../../src/runtime/cli/grammar.ts'

const folder = mkdtempSync(join(tmpdir(), 'edge-configuration-'))
const file = join(folder, 'edge.toml')
writeFileSync(
  file,
  '[tcp]\naddress = "127.0.0.5:9000"\n[http]\naddress = "0.0.0.0:9001"\n[webtransport]\naddress = "[::]:9002"\n',
)
after(() => rmSync(folder, { recursive: true }))

function find(words: Record<string, string>, environment: Record<string, string> = {}) {
  const values = new Values(new Map(Object.entries(words).map(([name, value]) => [name, [value]])))
  return configurationOf(values, { environment })
}

const configOf = (...given: Parameters<typeof find>) => find(...given).config

test('--dev moves the listeners of a file to this machine and keeps their ports', () => {
  const config = configOf({ config: file, dev: '' })
  assert.equal(config.tcp.address, '127.0.0.5:9000')
  assert.equal(config.http.address, '127.0.0.1:9001')
  assert.equal(config.webtransport.address, '127.0.0.1:9002')
})

test('--dev without a file listens on this machine alone, on the usual ports', () => {
  const config = configOf({ config: '/dev/null', dev: '' })
  assert.deepEqual(
    [config.tcp, config.websocket, config.http, config.webtransport].map(({ address }) => address),
    ['127.0.0.1:8090', '127.0.0.1:8092', '127.0.0.1:3000', '127.0.0.1:8443'],
  )
})

test('an address in the environment stands beside --dev', () => {
  const config = configOf({ config: file, dev: '' }, { EDGE_HTTP__ADDRESS: '0.0.0.0:9005' })
  assert.equal(config.http.address, '0.0.0.0:9005')
})

test('without --dev the addresses of the file stand', () => {
  assert.equal(configOf({ config: file }).http.address, '0.0.0.0:9001')
})

test('a file that cannot be read is one line', () => {
  assert.throws(() => configOf({ config: folder }), {
    code: 'EDGE_CONFIG_INVALID',
    message: /cannot be read: .*expected a file, found a folder/,
  })
})

test('secrets in a file that everybody may read are found, whatever wins over them', () => {
  const secrets = join(folder, 'secrets.toml')
  const route = (url: string) => `[[sync.upstreams]]\nname = "central"\nurl = "${url}"\n`
  writeFileSync(secrets, `[http.jwt]\nsecret = "${'s'.repeat(64)}"\n${route('iggy+tcp://user:password@central:8090')}`)
  chmodSync(secrets, 0o644)
  const keys = ['http.jwt.secret', 'sync.upstreams[0].url']
  assert.deepEqual(find({ config: secrets }).openSecrets, keys)
  const environment = { EDGE_SYNC__UPSTREAMS__0__URL: 'iggy+tcp://central:8090' }
  assert.deepEqual(find({ config: secrets, dev: '' }, environment).openSecrets, keys)
  chmodSync(secrets, 0o640)
  assert.deepEqual(find({ config: secrets }).openSecrets, [], 'a group is who the operator put into it')
})

test('a readable file without secrets is nothing to tell', () => {
  const plain = join(folder, 'plain.toml')
  writeFileSync(
    plain,
    '[[sync.upstreams]]\nname = "central"\nurl = "iggy+tcp://central:8090"\n[http.jwt]\nsecret = ""\n',
  )
  chmodSync(plain, 0o644)
  const { openSecrets, file: read } = find({ config: plain }, { EDGE_HTTP__JWT__SECRET: 's'.repeat(64) })
  assert.deepEqual([openSecrets, read], [[], plain])
})

test("values of Apache's settings that nobody can read stop the start, as they are written, with all other problems", () => {
  const iggyFile = join(folder, 'unreadable.toml')
  writeFileSync(
    iggyFile,
    '[heartbeat]\ninterval = "often"\n[http.tls]\nenabled = true\n[tcp]\naddress = "127.0.0.1:0"\n',
  )
  const environment = { IGGY_CONFIG_PATH: iggyFile, IGGY_SYSTEM_ENCRYPTION_ENABLED: 'yes' }
  assert.throws(() => find({}, environment), {
    code: 'EDGE_CONFIG_INVALID',
    details: {
      problems: [
        'heartbeat.interval: found "often", expected a duration with its unit, such as "200 ms" or "30 s", from "1 s" to "1 h"',
        'IGGY_SYSTEM_ENCRYPTION_ENABLED: found "yes", expected true or false',
        'http.tls.cert_file: found none, expected a PEM file',
        'http.tls.key_file: found none, expected a PEM file',
      ],
    },
  })
})

test("a value of Apache's that is beyond ours is told with the reason", () => {
  const { ignoredVariables, unfitValues } = find({}, { IGGY_HEARTBEAT_INTERVAL: '5 ms', IGGY_TCP_IPV6: 'true' })
  assert.deepEqual(ignoredVariables, ['IGGY_HEARTBEAT_INTERVAL', 'IGGY_TCP_IPV6'])
  assert.deepEqual(unfitValues, [
    'IGGY_HEARTBEAT_INTERVAL: found "5 ms", expected a duration with its unit, such as "200 ms" or "30 s", from "1 s" to "1 h"',
  ])
})
