/** A program: dials over QUIC when no file can be opened any more, and says on standard output what became of it. */
import { openSync } from 'node:fs'
import { messageOf } from '../../src/errors.ts'
import { dialWebTransport } from '../../src/sdk/index.ts'

const WHERE = { host: '127.0.0.1', port: 1, path: '/edge', certificateHash: 'ab'.repeat(32), carrier: 'quic' } as const
const EVENTS = { data() {}, drained() {}, closed() {} }

function dial(connectTimeoutMs: number): Promise<string> {
  const { signal } = new AbortController()
  return dialWebTransport({ ...WHERE, connectTimeoutMs }, EVENTS, signal).then(() => 'connected', messageOf)
}

function openAllFiles(): void {
  try {
    for (;;) openSync('/dev/null', 'r')
  } catch {
    // None is left.
  }
}

// Everything is loaded then.
await dial(50)
openAllFiles()
process.stdout.write(await dial(5000))
process.exit()
