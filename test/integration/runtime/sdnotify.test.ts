import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { createServiceNotifier } from '../../../src/runtime/sdnotify.ts'

/** Node has no datagram sockets of this kind: a few lines of Python listen, one line of hex a message. */
const LISTENER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(('\\0' + sys.argv[1][1:]) if sys.argv[1].startswith('@') else sys.argv[1])
print('bound', flush=True)
while True: print(s.recv(4096).hex(), flush=True)
`

async function listen(context: TestContext, path: string): Promise<() => Promise<string>> {
  const child = spawn('python3', ['-c', LISTENER, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  context.after(() => child.kill())
  await once(child, 'spawn')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  assert.equal((await lines.next()).value, 'bound')
  return async () => Buffer.from(String((await lines.next()).value), 'hex').toString()
}

for (const kind of ['a file', 'the abstract namespace']) {
  test(`systemd is told over a socket in ${kind}`, { timeout: 20_000 }, async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'notify-'))
    context.after(() => rmSync(folder, { recursive: true }))
    const path = kind === 'a file' ? join(folder, 'socket') : `@iggy-edge-${process.pid}`
    let next: () => Promise<string>
    try {
      next = await listen(context, path)
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOENT')
      context.skip('python3 is not installed')
      return
    }
    const notifier = createServiceNotifier({ NOTIFY_SOCKET: path, WATCHDOG_USEC: '20000000' })
    assert.equal(notifier.watchdogIntervalMs, 10_000)
    notifier.ready('serving\nTCP')
    assert.equal(await next(), 'READY=1\nSTATUS=serving TCP')
    notifier.watchdog()
    assert.equal(await next(), 'WATCHDOG=1')
    notifier.stopping()
    assert.equal(await next(), 'STOPPING=1')
  })
}

test('outside systemd nothing is sent and nothing is watched', () => {
  const notifier = createServiceNotifier({ WATCHDOG_USEC: '20000000' })
  notifier.ready('serving')
  assert.equal(notifier.watchdogIntervalMs, null)
})

test('a watchdog that is meant for another process is left to it', () => {
  const notifier = createServiceNotifier({ NOTIFY_SOCKET: '@none', WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' })
  assert.equal(notifier.watchdogIntervalMs, null)
})
