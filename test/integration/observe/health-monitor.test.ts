import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { test } from 'node:test'
import type { Clock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { type ListenerReport, startHealth } from '../../../src/runtime/observe/index.ts'

/** Checks happen when the test asks: the interval is out of its reach. */
const NEVER_MS = 1_000_000_000

class TestClock implements Clock {
  nowUs = 0
  wallUs(): bigint {
    return BigInt(this.nowUs)
  }
  monotonicUs(): number {
    return this.nowUs
  }
}

async function listen(): Promise<{ server: Server; report: ListenerReport }> {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    server,
    report: {
      name: 'tcp',
      isEnabled: true,
      state: 'running',
      cause: '',
      host: '0.0.0.0',
      port,
      isTcp: true,
      isFull: false,
    },
  }
}

test('a listener that says it runs is believed while it accepts, and named with its cause when it no longer does', async () => {
  const clock = new TestClock()
  const { server, report } = await listen()
  const told: string[] = []
  const onStatus = (line: string) => void told.push(line)
  const sources = { listeners: () => [report], parts: () => [] }
  const monitor = startHealth(sources, { clock, logger: silentLogger, intervalMs: NEVER_MS, onStatus })
  try {
    assert.equal((await monitor.check()).status, 'ready')
    await new Promise((resolve) => server.close(resolve))
    clock.nowUs = 10_000_000
    assert.equal((await monitor.check()).status, 'ready')
    clock.nowUs = 30_000_000
    const health = await monitor.check()
    assert.equal(health.status, 'not-ready')
    const check = health.checks.find(({ name }) => name === 'listener tcp')
    assert.equal(check?.state, 'stalled')
    assert.match(check?.cause ?? '', /ECONNREFUSED/)
    assert.match(check?.action ?? '', /restart the service/)
    assert.equal(told.length, 2, 'what is as it was is not told again')
    assert.equal(told[0], 'accepting')
    assert.match(told[1] ?? '', /^not ready: listener tcp stalled \(.*ECONNREFUSED/)
  } finally {
    monitor.close()
    server.close()
  }
})

test('listeners that are off or not probed count as they say', async () => {
  const udp = {
    name: 'quic',
    isEnabled: true,
    state: 'running',
    cause: '',
    host: '0.0.0.0',
    port: 1,
    isTcp: false,
    isFull: false,
  } as const
  const off = { ...udp, name: 'websocket', isEnabled: false }
  const failed = { ...udp, name: 'webtransport', state: 'failed', cause: 'address in use' } as const
  const monitor = startHealth(
    { listeners: () => [udp, off, failed], parts: () => [] },
    { clock: new TestClock(), logger: silentLogger, intervalMs: NEVER_MS },
  )
  try {
    const { status, checks } = await monitor.check()
    assert.equal(status, 'not-ready')
    assert.deepEqual(
      checks.filter(({ kind }) => kind === 'listener').map(({ name, state, cause }) => [name, state, cause]),
      [
        ['listener quic', 'ok', ''],
        ['listener websocket', 'off', ''],
        ['listener webtransport', 'failed', 'address in use'],
      ],
    )
  } finally {
    monitor.close()
  }
})
