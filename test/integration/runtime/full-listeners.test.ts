import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { KEEP_ALIVE } from '../../../src/runtime/keep-alive.ts'
import { startEdgeWorld } from '../../support/edge-world.ts'
import { eventually } from '../../support/eventually.ts'
import { keepAliveSeconds } from '../../support/keep-alive-timer.ts'
import { PING } from '../../support/server-world.ts'

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

test('on every listener the system asks for a sign of life after a minute of silence', async (context) => {
  await using world = await startEdgeWorld({
    EDGE_WEBSOCKET__ADDRESS: '127.0.0.1:0',
    EDGE_HTTP__ADDRESS: '127.0.0.1:0',
  })
  const { tcp, websocket, http } = world.edge.addresses
  for (const address of [tcp, websocket, http]) {
    const port = portOf(address)
    const socket = await open(port)
    context.after(() => socket.destroy())
    const seconds = () => keepAliveSeconds(port, socket.localPort) ?? Number.POSITIVE_INFINITY
    await eventually(() => seconds() <= KEEP_ALIVE.initialDelay / 1000)
    assert.ok(seconds() > KEEP_ALIVE.initialDelay / 1000 - 15, `${seconds()} s at ${address}`)
  }
})

test('a listener that turns clients away says so in its metrics and in health, and all else is ready', async (context) => {
  await using world = await startEdgeWorld({ EDGE_TCP__MAX_CONNECTIONS: '2', EDGE_HTTP__ADDRESS: '127.0.0.1:0' })
  const health = async () => (await world.call('GET', '/health')).body as Health
  assert.equal((await health()).status, 'ready')
  const clients = [await open(world.tcpPort), await open(world.tcpPort)]
  context.after(() => clients.forEach((each) => void each.destroy()))
  for (const client of clients) {
    client.write(PING)
    await once(client, 'data')
  }
  const third = connect(world.tcpPort, '127.0.0.1')
  await once(third.resume(), 'close')
  const metrics = async () => (await world.call('GET', '/metrics')).text
  assert.match(await metrics(), /^edge_listener_refused_connections_total\{listener="tcp"\} 1$/m)
  assert.match(await metrics(), /^edge_listener_connections\{listener="tcp"\} 2$/m)
  await eventually(async () => (await health()).status === 'degraded')
  const { checks } = await health()
  const check = checks.find(({ name }) => name === 'connections tcp')
  assert.equal(check?.state, 'failed')
  assert.equal(check.cause, '2 of 2 connections are open, 1 was turned away since the start')
  assert.match(check.action, /raise tcp\.max_connections/)
  assert.equal(checks.find(({ name }) => name === 'listener tcp')?.state, 'ok')
  assert.match(
    await metrics(),
    /^edge_listener_refused_connections_total\{listener="tcp"\} 1$/m,
    'looks are not counted',
  )
  for (const client of clients) client.destroy()
  await eventually(async () => (await health()).status === 'ready')
})

interface Health {
  readonly status: string
  readonly checks: readonly {
    readonly name: string
    readonly state: string
    readonly cause: string
    readonly action: string
  }[]
}
