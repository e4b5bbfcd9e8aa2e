import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { createServiceNotifier } from '../../../src/runtime/sdnotify.ts'
import { startEdgeProcess } from '../../support/edge-process.ts'

/** Node has no datagram sockets of this kind: a few lines of Python listen, one line of hex a message. */
const LISTENER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(('\\0' + sys.argv[1][1:]) if sys.argv[1].startswith('@') else sys.argv[1])
print('bound', flush=True)
while True: print(s.recv(4096).hex(), flush=True)
`

/** @returns the next message; null where there is no Python, and the test is skipped. */
async function listen(context: TestContext, path: string): Promise<(() => Promise<string>) | null> {
  const child = spawn('python3', ['-c', LISTENER, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  context.after(() => child.kill())
  try {
    await once(child, 'spawn')
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOENT')
    context.skip('python3 is not installed')
    return null
  }
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  assert.equal((await lines.next()).value, 'bound')
  return async () => Buffer.from(String((await lines.next()).value), 'hex').toString()
}

for (const kind of ['a file', 'the abstract namespace']) {
  test(`systemd is told over a socket in ${kind}`, { timeout: 20_000 }, async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'notify-'))
    context.after(() => rmSync(folder, { recursive: true }))
    const path = kind === 'a file' ? join(folder, 'socket') : `@iggy-edge-${process.pid}`
    const next = await listen(context, path)
    if (next === null) return
    const notifier = createServiceNotifier({ NOTIFY_SOCKET: path, WATCHDOG_USEC: '20000000' })
    assert.equal(notifier.watchdogIntervalMs, 10_000)
    notifier.starting()
    notifier.starting()
    assert.equal(await next(), 'EXTEND_TIMEOUT_USEC=120000000\nSTATUS=starting')
    notifier.status('serving\nTCP')
    assert.equal(await next(), 'STATUS=serving TCP')
    notifier.ready()
    assert.equal(await next(), 'READY=1')
    notifier.watchdog()
    assert.equal(await next(), 'WATCHDOG=1')
    notifier.stopping()
    assert.equal(await next(), 'STOPPING=1')
  })
}

test('systemd hears that a start goes on, when it is over, and how the edge is', {
  timeout: 60_000,
}, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'notify-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'socket')
  const next = await listen(context, path)
  if (next === null) return
  await using edge = await startEdgeProcess({ dataPath: join(folder, 'data'), environment: { NOTIFY_SOCKET: path } })
  const messages = [await next(), await next(), await next()]
  assert.deepEqual(messages, ['EXTEND_TIMEOUT_USEC=120000000\nSTATUS=starting', 'STATUS=accepting', 'READY=1'])
  assert.equal(await edge.stop(), 0)
  assert.equal(await next(), 'STOPPING=1')
})

test('outside systemd nothing is sent and nothing is watched', () => {
  const notifier = createServiceNotifier({ WATCHDOG_USEC: '20000000' })
  notifier.ready()
  assert.equal(notifier.watchdogIntervalMs, null)
})

test('a watchdog that is meant for another process is left to it', () => {
  const notifier = createServiceNotifier({ NOTIFY_SOCKET: '@none', WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' })
  assert.equal(notifier.watchdogIntervalMs, null)
})
