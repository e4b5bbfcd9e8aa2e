/** `check`, `dump` and `run --fresh` on the store of an edge that is stopped. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { runCommand, runHere, startCommand, wordsOf } from '../../support/cli-runner.ts'
import { LOOPBACK_ENVIRONMENT, startEdgeProcess } from '../../support/edge-process.ts'

const COUNT = 50
let folder = ''
let data = ''
const run = (line: string) => runCommand(wordsOf(line))

/** An edge that took messages and was stopped. */
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'edge-cli-'))
  data = join(folder, 'data')
  await using edge = await startEdgeProcess({ dataPath: data })
  const environment = { IGGY_URL: edge.tcp, IGGY_USERNAME: 'iggy', IGGY_PASSWORD: 'iggy' }
  const here = (line: string) => runHere(wordsOf(line), environment)
  await here('stream create s')
  await here('topic create s t 1')
  for (let i = 0; i < COUNT; i++) await here(`message send s t reading-${i}`)
  await here('consumer-offset set 7 s t 0 3')
  const held = await run(`check --data ${data}`)
  assert.equal(held.code, 75)
  assert.match(held.stderr, new RegExp(`in use by process ${edge.pid}; stop the service first`))
  assert.equal((await run(`dump --data ${data} --output ${join(folder, 'held')}`)).code, 75)
  assert.equal(await edge.stop(), 0)
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** Every file of the folder, and what is in it. */
function fingerprint(): Record<string, string> {
  const names = globSync('**', { cwd: data }).sort()
  return Object.fromEntries(
    names.map((name) => {
      const path = join(data, name)
      return [name, statSync(path).isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'folder']
    }),
  )
}

function payloadsOf(text: string): string[] {
  const lines = text.split('\n').filter(Boolean)
  return lines.map((line) => Buffer.from((JSON.parse(line) as { payload: string }).payload, 'base64').toString())
}

describe('a stopped store', () => {
  it('is not needed to say what of the log is not configured as it must be', async () => {
    const file = join(folder, 'log.toml')
    writeFileSync(file, '[retention]\nschedule = "often"\n[log.encryption]\nenabled = true\n')
    const { code, stderr } = await run(`check --config-only --config ${file}`)
    assert.equal(code, 78)
    assert.match(stderr, /retention\.schedule: found "often", expected a cron expression/)
    assert.match(stderr, /log\.encryption\.enabled is true, and neither/)
    const unused = join(folder, 'unused')
    assert.equal((await run(`run --config ${file} --data ${unused}`)).code, 78)
    assert.equal(existsSync(unused), false)
  })

  it('is checked without changing a byte of it', async () => {
    const before = fingerprint()
    const { code, stdout, stderr } = await run(`check --data ${data}`)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /Store: +sound/)
    assert.match(stdout, /Last stop: +clean/)
    assert.match(stdout, new RegExp(`s +t +0 +${COUNT} +0 +${COUNT} `))
    assert.deepEqual(fingerprint(), before)
  })

  it('shows how far its consumers have come', async () => {
    const { stdout } = await run(`check --data ${data} --output json`)
    const { consumer_offsets: offsets } = JSON.parse(stdout) as { consumer_offsets: unknown }
    assert.deepEqual(offsets, [{ stream: 's', topic: 't', partition: 0, kind: 'consumer', consumer_id: 7, offset: 3 }])
    assert.match((await run(`check --data ${data}`)).stdout, /s +t +0 +consumer +7 +3\n/)
  })

  it('is saved whole as lines that send takes', async () => {
    const file = join(folder, 'all.jsonl')
    const { code, stderr } = await run(`dump --data ${data} --stream s --topic t --output ${file}`)
    assert.equal(code, 0, stderr)
    assert.deepEqual(
      payloadsOf(readFileSync(file, 'utf8')),
      Array.from({ length: COUNT }, (_, i) => `reading-${i}`),
    )
    const again = await run(`dump --data ${data} --output ${file}`)
    assert.deepEqual([again.code, again.stderr], [1, `iggy-edge: ${file} is there already; --force replaces it\n`])
    assert.equal(payloadsOf((await run(`dump --data ${data} --output -`)).stdout).length, COUNT)
    const missing = await run(`dump --data ${data} --stream nope --output -`)
    assert.equal(missing.code, 64)
    assert.match(missing.stderr, /there are: s\/t/)
    const beyond = await run(`dump --data ${data} --partition 99 --output ${join(folder, 'beyond.jsonl')}`)
    assert.equal(beyond.code, 64)
    assert.match(beyond.stderr, /no partition 99 in the store; of what was chosen there are: 0 to 0/)
    assert.equal(existsSync(join(folder, 'beyond.jsonl')), false)
  })

  it('gives its messages on a machine that has no place for a copy of SQLite', async () => {
    const { code, stdout, stderr } = await runCommand(wordsOf(`dump --data ${data} --output -`), { TMPDIR: '/none' })
    assert.deepEqual([code, payloadsOf(stdout).length], [1, COUNT])
    assert.match(stderr, /^not saved: metadata\.sqlite ENOENT.*'\/none/)
  })

  it('is looked at until somebody interrupts', async () => {
    const signal = AbortSignal.abort('SIGINT')
    for (const line of [`check --data ${data}`, `dump --data ${data} --output ${join(folder, 'part.jsonl')}`])
      await assert.rejects(runHere(wordsOf(line), {}, signal), { code: 'EDGE_SHUTTING_DOWN', message: 'interrupted' })
  })

  it('that is damaged gives everything else, and says what is gone', async () => {
    const journal = globSync('journal/*', { cwd: data }).map((name) => join(data, name))
    const damaged = journal.find((path) => readFileSync(path).includes('reading-20')) ?? assert.fail('no journal')
    const whole = readFileSync(damaged)
    const bytes = Buffer.from(whole)
    bytes.write('READING', bytes.indexOf('reading-20'))
    writeFileSync(damaged, bytes)
    const checked = await run(`check --data ${data}`)
    assert.equal(checked.code, 1)
    assert.match(checked.stdout, /ERROR {2}journal\/\d+ batch at \d+ is damaged: offsets 20 to 20/)
    const { code, stdout, stderr } = await run(`dump --data ${data} --output -`)
    assert.equal(code, 1)
    assert.match(stderr, /not saved: .*offsets 20 to 20/)
    const expected = Array.from({ length: COUNT }, (_, i) => `reading-${i}`).filter((text) => text !== 'reading-20')
    assert.deepEqual(payloadsOf(stdout), expected)
    writeFileSync(damaged, whole)
  })

  it('without SQLite, or with a damaged one, still names and gives everything', async () => {
    const path = join(data, 'metadata.sqlite')
    const whole = readFileSync(path)
    writeFileSync(path, Buffer.alloc(whole.length, 7))
    const checked = await run(`check --data ${data}`)
    assert.equal(checked.code, 1)
    assert.match(checked.stdout, /ERROR {2}metadata\.sqlite .*not a database/)
    rmSync(path)
    const missing = await run(`check --data ${data}`)
    assert.deepEqual([missing.code, /ERROR {2}metadata\.sqlite is missing/.test(missing.stdout)], [1, true])
    assert.equal(payloadsOf((await run(`dump --data ${data} --topic t --output -`)).stdout).length, COUNT)
    writeFileSync(path, whole)
  })

  it('is not there: check says so, and it is wrong only when there must be one', async () => {
    const none = join(folder, 'none')
    assert.match((await run(`check --data ${none}`)).stdout, /holds no store yet/)
    const expected = await runCommand(['check', '--data', none], { EDGE_SYSTEM__EXPECT_EXISTING: 'true' })
    assert.equal(expected.code, 1)
  })
})

describe('run --fresh', () => {
  it('does not touch a folder that holds anything else', async () => {
    const other = join(folder, 'home')
    mkdirSync(other)
    writeFileSync(join(other, 'thesis.txt'), 'years of work')
    const { code, stderr } = await runCommand(['run', '--fresh', '--data', other], LOOPBACK_ENVIRONMENT)
    assert.equal(code, 78)
    assert.match(stderr, /holds "thesis\.txt", which is not ours: nothing was deleted/)
    assert.ok(existsSync(join(other, 'thesis.txt')))
  })

  it('is one line where the data folder is a file', async () => {
    const file = join(folder, 'a-file')
    writeFileSync(file, 'of somebody')
    const { code, stderr } = await runCommand(['run', '--fresh', '--data', file], LOOPBACK_ENVIRONMENT)
    assert.equal(code, 78)
    assert.match(stderr, /^iggy-edge: --fresh: .*a-file is no folder: nothing was deleted\n$/)
  })

  it('deletes nothing where the start behind it would be refused', async () => {
    const before = fingerprint()
    const refusals: readonly (readonly [Record<string, string>, RegExp])[] = [
      [{ EDGE_TCP__TLS_REQUIRED: 'true' }, /tcp\.tls_required: found true without TLS/],
      [{ EDGE_LOG__ENCRYPTION__ENABLED: 'true' }, /log\.encryption\.enabled is true, and neither/],
      [{ EDGE_SYSTEM__EXPECT_EXISTING: 'true' }, /system\.expect_existing: found true, expected false/],
      [{ IGGY_ROOT_PASSWORD: 'secret' }, /IGGY_ROOT_PASSWORD is set without IGGY_ROOT_USERNAME/],
      [{ IGGY_ROOT_USERNAME: 'iggy', IGGY_ROOT_PASSWORD: 'x' }, /IGGY_ROOT_PASSWORD: .*password/],
    ]
    for (const [environment, text] of refusals) {
      const words = ['run', '--fresh', '--data', data]
      const { code, stderr } = await runCommand(words, { ...LOOPBACK_ENVIRONMENT, ...environment })
      assert.equal(code, 78, stderr)
      assert.match(stderr, text)
      assert.deepEqual(fingerprint(), before)
    }
  })

  it('takes nothing from the edge that holds the folder', async () => {
    await using edge = await startEdgeProcess({ dataPath: data })
    const { code, stderr } = await runCommand(['run', '--fresh', '--data', data], LOOPBACK_ENVIRONMENT)
    assert.equal(code, 75)
    assert.match(stderr, new RegExp(`in use by process ${edge.pid}`))
    assert.ok(existsSync(join(data, 'store.json')) && existsSync(join(data, 'lock')))
    assert.equal(await edge.stop(), 0)
  })

  it('starts anew', async () => {
    const refuge = join(data, 'refuge', '7')
    mkdirSync(refuge, { recursive: true })
    await using edge = await startEdgeProcess({ dataPath: data, arguments: ['--fresh'] })
    const environment = { IGGY_URL: edge.tcp, IGGY_USERNAME: 'iggy', IGGY_PASSWORD: 'iggy' }
    assert.equal(await runHere(['stream', 'list'], environment), 'none')
    assert.equal(existsSync(refuge), false)
  })
})

it("without a command, with the environment of Apache's server, it serves and names what has no effect", async () => {
  const path = join(folder, 'drop-in')
  const addresses = { IGGY_TCP_ADDRESS: '127.0.0.1:0', IGGY_HTTP_ADDRESS: '127.0.0.1:0' }
  const others = {
    IGGY_WEBSOCKET_ENABLED: 'false',
    EDGE_WEBTRANSPORT__ENABLED: 'false',
    IGGY_SYSTEM_MEMORY_POOL_SIZE: '4 GiB',
    IGGY_SYSTEM_LOGGING_MAX_FILE_SIZE: '1 MB',
  }
  using server = startCommand(['--with-default-root-credentials', '--fresh'], {
    ...addresses,
    ...others,
    IGGY_SYSTEM_PATH: path,
  })
  await server.sees(/"edge\.ready"/)
  const config = readFileSync(join(path, 'runtime', 'current_config.toml'), 'utf8')
  const tcp = /\[tcp\]\n(?:.*\n)*?address = "([^"]+)"/.exec(config)?.[1] ?? ''
  const environment = { IGGY_URL: tcp, IGGY_USERNAME: 'iggy', IGGY_PASSWORD: 'iggy' }
  assert.equal(await runHere(['stream', 'list'], environment), 'none')
  server.interrupt()
  const { code, stderr } = await server.done
  assert.equal(code, 0)
  const log = readFileSync(join(path, 'logs', 'iggy-server.log'), 'utf8')
  assert.match(log, /"edge\.ready"/)
  assert.match(log, /"edge\.stopping"/)
  assert.match(stderr, /"edge\.environment\.ignored","variables":"IGGY_SYSTEM_MEMORY_POOL_SIZE"/)
})
