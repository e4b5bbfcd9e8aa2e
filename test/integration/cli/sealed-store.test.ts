/** A store sealed through the environment of Apache's server: started, checked and saved with its key, refused without it. */
import assert from 'node:assert/strict'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { runCommand, runHere, wordsOf } from '../../support/cli-runner.ts'
import { LOOPBACK_ENVIRONMENT, startEdgeProcess } from '../../support/edge-process.ts'

const COUNT = 5
const KEY = Buffer.alloc(32, 5).toString('base64')
const OTHER_KEY = Buffer.alloc(32, 6).toString('base64')
const SEALED = { IGGY_SYSTEM_ENCRYPTION_ENABLED: 'true', IGGY_SYSTEM_ENCRYPTION_KEY: KEY }
const EXIT_CONFIG = 78
let folder = ''
let data = ''
const run = (line: string, environment: Record<string, string> = {}) => runCommand(wordsOf(line), environment)

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'edge-sealed-'))
  data = join(folder, 'data')
  await using edge = await startEdgeProcess({ dataPath: data, environment: SEALED })
  const client = { IGGY_URL: edge.tcp, IGGY_USERNAME: 'iggy', IGGY_PASSWORD: 'iggy' }
  await runHere(wordsOf('stream create s'), client)
  await runHere(wordsOf('topic create s t 1'), client)
  for (let i = 0; i < COUNT; i++) await runHere(wordsOf(`message send s t reading-${i}`), client)
  const polled = await run('message poll s t 0 --offset 0 --message-count 10', client)
  assert.match(polled.stdout, /reading-0[\s\S]*reading-4/)
  assert.ok(
    edge.lines.every((line) => !JSON.stringify(line).includes(KEY)),
    'the key was logged',
  )
  assert.equal(await edge.stop(), 0)
})
after(() => rmSync(folder, { recursive: true, force: true }))

describe('a sealed store', () => {
  it('has no payload in clear', () => {
    const files = globSync('{journal,streams}/**', { cwd: data, withFileTypes: true }).filter((entry) => entry.isFile())
    assert.ok(files.length > 0)
    for (const { parentPath, name } of files) {
      assert.equal(readFileSync(join(parentPath, name)).includes('reading-'), false, name)
    }
  })

  it('is checked and saved with its key, also by our own names for it', async () => {
    const ours = { EDGE_LOG__ENCRYPTION__ENABLED: 'true', EDGE_LOG__ENCRYPTION__KEY: KEY }
    for (const environment of [SEALED, ours]) {
      const checked = await run(`check --data ${data}`, environment)
      assert.equal(checked.code, 0, checked.stderr)
      assert.match(checked.stdout, new RegExp(`s +t +0 +${COUNT} +0 +${COUNT} `))
    }
    const saved = await run(`dump --data ${data} --output -`, ours)
    assert.equal(saved.stdout.split('\n').filter(Boolean).length, COUNT)
  })

  it('is judged by its checksums without a key, and not saved', async () => {
    const checked = await run(`check --data ${data}`)
    assert.equal(checked.code, 0, checked.stderr)
    assert.match(checked.stdout, /warning {2}store\.json names a key that was not given/)
    const saved = await run(`dump --data ${data} --output -`)
    assert.deepEqual([saved.code, saved.stdout], [EXIT_CONFIG, ''])
  })

  it('is refused with another key and with none, by name and without the key in the message', async () => {
    const other = { ...SEALED, IGGY_SYSTEM_ENCRYPTION_KEY: OTHER_KEY }
    for (const environment of [other, {}]) {
      const started = await run(`run --dev --data ${data}`, { ...LOOPBACK_ENVIRONMENT, ...environment })
      assert.equal(started.code, EXIT_CONFIG, started.stderr)
      assert.match(started.stderr, /sealed with key [0-9a-f]{8}/)
      assert.equal(started.stderr.includes(OTHER_KEY), false)
    }
    assert.equal((await run(`check --data ${data}`, other)).code, EXIT_CONFIG)
  })
})
