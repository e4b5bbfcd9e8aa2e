import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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

function configOf(words: Record<string, string>, environment: Record<string, string> = {}) {
  const values = new Values(new Map(Object.entries(words).map(([name, value]) => [name, [value]])))
  return configurationOf(values, { environment }).config
}

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
  assert.throws(() => configOf({ config: folder }), { code: 'EDGE_CONFIG_INVALID', message: /cannot be read: EISDIR/ })
})
