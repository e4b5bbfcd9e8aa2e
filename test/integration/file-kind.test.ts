/** Where a file is expected lies a fifo, a socket, a folder or a device: one line says so, and nothing waits for it. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { notAFile, readFileBytes } from '../../src/file-kind.ts'
import { EDGE_COMMAND, LOOPBACK_ENVIRONMENT } from '../support/edge-process.ts'

const folder = fs.mkdtempSync(join(tmpdir(), 'edge-file-kind-'))
after(() => fs.rmSync(folder, { recursive: true }))

/** To open one waits for somebody at the other end: a start that did would be ended, and say nothing. */
const LIMIT_MS = 20_000
const FIFO = /expected a file, found a fifo$/

function fifo(...path: string[]): string {
  const made = join(folder, ...path)
  fs.mkdirSync(join(made, '..'), { recursive: true })
  execFileSync('mkfifo', [made])
  return made
}

/** @returns what a start says that does not come about. */
function refusal(environment: Record<string, string>, ...words: string[]): string {
  const { stdout, stderr, status } = spawnSync(EDGE_COMMAND.program, [...EDGE_COMMAND.before, ...words], {
    encoding: 'utf8',
    timeout: LIMIT_MS,
    env: { ...process.env, ...LOOPBACK_ENVIRONMENT, ...environment },
  })
  assert.ok(status !== null && status !== 0, `it ended by itself, with ${status}: ${stderr}`)
  return `${stdout}${stderr}`.trim()
}

test('what lies there is said in words, also behind a link; a file and nothing at all are fine', async (context) => {
  const server = createServer().listen(join(folder, 'socket'))
  context.after(() => server.close())
  await once(server, 'listening')
  fs.symlinkSync('/dev/zero', join(folder, 'device'))
  fs.writeFileSync(join(folder, 'file'), 'text')
  fifo('fifo')
  const told = ['fifo', 'socket', '', 'device', 'file', 'nothing'].map((name) => notAFile(join(folder, name)))
  const found = ['a fifo', 'a socket', 'a folder', 'a device'].map((kind) => `expected a file, found ${kind}`)
  assert.deepEqual(told, [...found, undefined, undefined])
  assert.equal(readFileBytes(join(folder, 'file')).toString(), 'text')
  assert.throws(() => readFileBytes(join(folder, 'device')), { code: 'EDGE_IO', message: /\/device: expected a file/ })
})

test('what is empty or was handed in on purpose is taken', () => {
  assert.equal(readFileBytes('/dev/null').length, 0)
  assert.equal(notAFile('/dev/stdin'), undefined)
  assert.equal(notAFile('/dev/fd/63'), undefined)
})

for (const name of ['lock', 'metadata.sqlite', 'metadata.sqlite-wal', 'journal/0']) {
  test(`a fifo in the place of ${name} is refused at once, by its path`, () => {
    const path = fifo(`data-${name.replace('/', '-')}`, name)
    const data = path.slice(0, -name.length - 1)
    const [line = '', ...more] = refusal({}, 'run', '--dev', '--data', data).split('\n')
    assert.ok(line.includes(`${path}: `), line)
    assert.match(line, FIFO)
    assert.deepEqual(more, [])
  })
}

test('a fifo for a configuration, a certificate or a key is refused at once, by its path', () => {
  const path = fifo('given')
  const data = join(folder, 'untouched')
  assert.match(refusal({}, 'run', '--dev', '--data', data, '--config', path), FIFO)
  const tls = { EDGE_HTTP__TLS__ENABLED: 'true', EDGE_HTTP__TLS__CERT_FILE: path, EDGE_HTTP__TLS__KEY_FILE: path }
  const lines = refusal(tls, 'run', '--dev', '--data', data).split('\n').slice(1)
  assert.deepEqual(
    lines.map((line) => [line.trim().split(':')[0], FIFO.test(line)]),
    [
      ['http.tls.cert_file', true],
      ['http.tls.key_file', true],
    ],
  )
  const sealed = { EDGE_LOG__ENCRYPTION__ENABLED: 'true', EDGE_LOG__ENCRYPTION__KEY_FILE: path }
  assert.match(refusal(sealed, 'run', '--dev', '--data', data), FIFO)
  assert.equal(fs.existsSync(data), false)
})

test('a look at a stopped store passes over a fifo', () => {
  const path = fifo('looked-at', 'metadata.sqlite')
  assert.match(
    refusal({}, 'check', '--dev', '--data', join(path, '..')),
    /metadata\.sqlite: expected a file, found a fifo/,
  )
})
