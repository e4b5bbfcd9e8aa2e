/**
 * The edge in the place of Apache's server, started as harnesses of Apache do: a script by that name, settings in the
 * environment, no words, ports held with SO_REUSEPORT by who starts it, and a file that says when it listens.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { parse } from 'smol-toml'
import { connect } from '../../../src/sdk/index.ts'
import { EDGE_COMMAND } from '../../support/edge-process.ts'
import { eventually } from '../../support/eventually.ts'

const START_TIMEOUT_MS = 20_000

interface Place {
  readonly script: string
  readonly dataPath: string
  readonly currentConfig: string
}

function placeOf(context: TestContext): Place {
  const folder = mkdtempSync(join(tmpdir(), 'edge-stand-in-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const script = join(folder, 'iggy-server')
  const command = [EDGE_COMMAND.program, ...EDGE_COMMAND.before].map((word) => `"${word}"`).join(' ')
  writeFileSync(script, `#!/bin/sh\nexec ${command} "$@"\n`)
  chmodSync(script, 0o755)
  const dataPath = join(folder, 'local_data')
  return { script, dataPath, currentConfig: join(dataPath, 'runtime', 'current_config.toml') }
}

async function reserve(context: TestContext, reusePort = true): Promise<string> {
  const server: Server = createServer()
  server.listen({ host: '127.0.0.1', port: 0, reusePort })
  await once(server, 'listening')
  context.after(() => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return `127.0.0.1:${address.port}`
}

async function reserveUdp(context: TestContext): Promise<string> {
  const socket = createSocket({ type: 'udp4', reusePort: true })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  context.after(() => socket.close())
  return `127.0.0.1:${socket.address().port}`
}

function start(context: TestContext, { script }: Place, environment: Record<string, string>): ChildProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(IGGY|EDGE)_/.test(name))
  const child = spawn(script, [], { stdio: 'ignore', env: { ...Object.fromEntries(inherited), ...environment } })
  context.after(() => child.kill('SIGKILL'))
  return child
}

test('it takes ports that are held for it, tells in the file when it listens, and ends with a signal', async (context) => {
  const place = placeOf(context)
  const [tcp, http, websocket] = [await reserve(context), await reserve(context), await reserve(context)]
  const quic = await reserveUdp(context)
  const child = start(context, place, {
    IGGY_SYSTEM_PATH: place.dataPath,
    IGGY_TCP_ADDRESS: tcp,
    IGGY_HTTP_ADDRESS: http,
    IGGY_WEBSOCKET_ADDRESS: websocket,
    IGGY_QUIC_ADDRESS: quic,
    IGGY_ROOT_USERNAME: 'admin',
    IGGY_ROOT_PASSWORD: 'secret',
    IGGY_MESSAGE_SAVER_ENFORCE_FSYNC: 'true',
  })
  await eventually(() => existsSync(place.currentConfig), 'the file', START_TIMEOUT_MS)
  const config = parse(readFileSync(place.currentConfig, 'utf8')) as Record<string, { address: string }>
  const found = ['tcp', 'http', 'websocket', 'quic'].map((name) => config[name]?.address)
  assert.deepEqual(found, [tcp, http, websocket, quic])
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
})

test('port 0 is told as the port that was bound, and root is who the environment names', async (context) => {
  const place = placeOf(context)
  start(context, place, {
    IGGY_SYSTEM_PATH: place.dataPath,
    IGGY_TCP_ADDRESS: '127.0.0.1:0',
    IGGY_HTTP_ADDRESS: '127.0.0.1:0',
    IGGY_WEBSOCKET_ADDRESS: '127.0.0.1:0',
    IGGY_QUIC_ADDRESS: '127.0.0.1:0',
    IGGY_ROOT_USERNAME: 'admin',
    IGGY_ROOT_PASSWORD: 'secret',
  })
  await eventually(() => existsSync(place.currentConfig), 'the file', START_TIMEOUT_MS)
  const config = parse(readFileSync(place.currentConfig, 'utf8')) as Record<'tcp' | 'quic', { address: string }>
  assert.match(config.quic.address, /^127\.0\.0\.1:[1-9]\d*$/)
  await using client = await connect(`iggy://admin:secret@${config.tcp.address}`)
  assert.equal((await client.system.me()).userId, 0)
})

test('a file of an earlier process does not pass for a server that could not listen', async (context) => {
  const place = placeOf(context)
  mkdirSync(join(place.dataPath, 'runtime'), { recursive: true })
  writeFileSync(place.currentConfig, '[tcp]\naddress = "127.0.0.1:1"\n')
  const child = start(context, place, {
    IGGY_SYSTEM_PATH: place.dataPath,
    IGGY_TCP_ADDRESS: await reserve(context, false),
    IGGY_HTTP_ADDRESS: '127.0.0.1:0',
    IGGY_WEBSOCKET_ADDRESS: '127.0.0.1:0',
  })
  const [code] = await once(child, 'exit')
  assert.notEqual(code, 0)
  assert.equal(existsSync(place.currentConfig), false)
})

test('with TLS and files of a certificate that are not there it makes one, and takes no plain connections', async (context) => {
  const place = placeOf(context)
  start(context, place, {
    IGGY_SYSTEM_PATH: place.dataPath,
    IGGY_TCP_ADDRESS: '127.0.0.1:0',
    IGGY_HTTP_ADDRESS: '127.0.0.1:0',
    IGGY_WEBSOCKET_ADDRESS: '127.0.0.1:0',
    IGGY_WEBSOCKET_TLS_ENABLED: 'true',
    IGGY_TCP_TLS_ENABLED: 'true',
    IGGY_TCP_TLS_SELF_SIGNED: 'true',
    IGGY_TCP_TLS_CERT_FILE: 'core/certs/iggy_cert.pem',
    IGGY_TCP_TLS_KEY_FILE: 'core/certs/iggy_key.pem',
    IGGY_ROOT_USERNAME: 'admin',
    IGGY_ROOT_PASSWORD: 'secret',
  })
  await eventually(() => existsSync(place.currentConfig), 'the file', START_TIMEOUT_MS)
  const config = parse(readFileSync(place.currentConfig, 'utf8')) as Record<'tcp' | 'websocket', { address: string }>
  const ca = readFileSync(join(place.dataPath, 'certificate', 'self-signed.pem'), 'utf8')
  for (const { address } of [config.tcp, config.websocket]) {
    const [host = '', port = ''] = address.split(':')
    const socket = connectTls({ host, port: Number(port), ca, servername: 'localhost' })
    await once(socket, 'secureConnect')
    socket.destroy()
  }
  await assert.rejects(connect(`iggy://admin:secret@${config.tcp.address}?reconnection_retries=0`))
})
