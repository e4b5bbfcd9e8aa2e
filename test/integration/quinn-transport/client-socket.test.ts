/** The addon ends the process when its client gets no socket, so this is tried in a process of its own. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const SDK = new URL('../../../src/sdk/index.ts', import.meta.url).href
const DIAL = `
  import { openSync } from 'node:fs'
  import { dialWebTransport } from '${SDK}'
  const where = { host: '127.0.0.1', port: 1, path: '/edge', certificateHash: 'ab'.repeat(32), carrier: 'quic' }
  const events = { data() {}, drained() {}, closed() {} }
  const dial = (connectTimeoutMs) =>
    dialWebTransport({ ...where, connectTimeoutMs }, events, new AbortController().signal).catch((error) => error.message)
  await dial(50)
  try { for (;;) openSync('/dev/null') } catch {}
  console.log(await dial(5000))
  process.exit()
`

test('a dial for which no socket can be opened fails, and the process goes on', () => {
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', DIAL]
  const { status, stdout, stderr } = spawnSync('sh', ['-c', 'ulimit -n 128; exec "$@"', 'sh', ...node], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  assert.match(stdout, /over quic/)
})
