/** The addon ends the process when its client gets no socket, so this is tried in a process of its own. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const PROGRAM = new URL('../../support/dial-without-files.ts', import.meta.url).pathname

test('a dial for which no socket can be opened fails, and the process goes on', () => {
  const limited = ['-c', 'ulimit -n 128; exec "$@"', 'sh', process.execPath, PROGRAM]
  const { status, stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.match(stdout, /QUIC needs a UDP socket/)
})
