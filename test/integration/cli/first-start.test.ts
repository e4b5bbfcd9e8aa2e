/** The first start decides what an operator keeps: the root password, and a supervisor that tries again. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { runCommand, startCommand } from '../../support/cli-runner.ts'
import { LOOPBACK_ENVIRONMENT } from '../../support/edge-process.ts'

const CONFIG_IN_FORCE = 'runtime/current_config.toml'
const folder = mkdtempSync(join(tmpdir(), 'edge-first-start-'))
after(() => rmSync(folder, { recursive: true }))

function tcpOf(data: string): string {
  const [, tcp = ''] = /\[tcp\][^[]*?address = "([^"]+)"/.exec(readFileSync(join(data, CONFIG_IN_FORCE), 'utf8')) ?? []
  return tcp
}

test('a first start that fails on a port has shown the root password, and the supervisor may try again', async () => {
  const data = join(folder, 'taken')
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  const bound = taken.address()
  assert.ok(typeof bound === 'object' && bound !== null)
  const address = `127.0.0.1:${bound.port}`
  const failed = await runCommand(['run', '--data', data], { ...LOOPBACK_ENVIRONMENT, EDGE_TCP__ADDRESS: address })
  await new Promise((resolve) => taken.close(resolve))
  assert.equal(failed.code, 75, failed.stderr)
  assert.match(failed.stderr, /in use.*choose another address/)
  const password = /Generated root user password: (\w{24}) /.exec(failed.stderr)?.[1]
  assert.ok(password !== undefined, failed.stderr)

  using second = startCommand(['run', '--data', data], LOOPBACK_ENVIRONMENT)
  await second.sees(/edge\.ready.*\n/)
  const asked = await runCommand(['ping', '--url', tcpOf(data)], { IGGY_USERNAME: 'iggy', IGGY_PASSWORD: password })
  assert.equal(asked.code, 0, asked.stderr)
  second.interrupt()
  const { code, stderr } = await second.done
  assert.equal(code, 0)
  assert.doesNotMatch(stderr, /Generated/, 'it is shown once')
})

test('a root user that cannot be is told with its variable, and the supervisor does not try again', async () => {
  const start = (root: Record<string, string>) =>
    runCommand(['run', '--data', join(folder, 'root')], { ...LOOPBACK_ENVIRONMENT, ...root })
  const short = await start({ IGGY_ROOT_USERNAME: 'ab', IGGY_ROOT_PASSWORD: 'long enough' })
  assert.equal(short.code, 78)
  assert.match(short.stderr, /^iggy-edge: IGGY_ROOT_USERNAME: .*expected 3\.\.50 bytes, found 2\n$/)
  const empty = await start({ IGGY_ROOT_USERNAME: 'root', IGGY_ROOT_PASSWORD: '' })
  assert.equal(empty.code, 78)
  assert.match(empty.stderr, /^iggy-edge: IGGY_ROOT_PASSWORD: /)
})

test('a root password that was lost is replaced when the operator says so, and what is stored stays', async () => {
  const data = join(folder, 'lost')
  const start = async (environment: Record<string, string>, ask: (tcp: string) => Promise<void>) => {
    using edge = startCommand(['run', '--data', data], { ...LOOPBACK_ENVIRONMENT, ...environment })
    await edge.sees(/edge\.ready.*\n/)
    await ask(tcpOf(data))
    edge.interrupt()
    return await edge.done
  }
  const lost = { IGGY_ROOT_USERNAME: 'root', IGGY_ROOT_PASSWORD: 'lost-for-good' }
  const found = { IGGY_ROOT_USERNAME: 'admin', IGGY_ROOT_PASSWORD: 'found-again' }
  const asUser = (user: typeof lost, tcp: string, ...words: string[]) =>
    runCommand([...words, '--url', tcp], {
      IGGY_USERNAME: user.IGGY_ROOT_USERNAME,
      IGGY_PASSWORD: user.IGGY_ROOT_PASSWORD,
    })
  await start(lost, async (tcp) => {
    assert.equal((await asUser(lost, tcp, 'stream', 'create', 'kept')).code, 0)
  })
  await start(found, async (tcp) => {
    assert.equal((await asUser(found, tcp, 'stream', 'list')).code, 1, 'without being told it changes nothing')
  })
  const reset = await start({ ...found, EDGE_BROKER__RESET_ROOT: 'true' }, async (tcp) => {
    assert.match((await asUser(found, tcp, 'stream', 'list')).stdout, /kept/)
    assert.equal((await asUser(lost, tcp, 'stream', 'list')).code, 1)
  })
  assert.match(reset.stderr, /"broker\.root\.reset"/)
  const alone = await runCommand(['run', '--data', data], { ...LOOPBACK_ENVIRONMENT, EDGE_BROKER__RESET_ROOT: 'true' })
  assert.equal(alone.code, 78)
  assert.match(
    alone.stderr,
    /^iggy-edge: broker\.reset_root: set IGGY_ROOT_USERNAME and IGGY_ROOT_PASSWORD beside it\n$/,
  )
})

test('an edge starts where the configuration in force cannot be written, and says so', async () => {
  const data = join(folder, 'not-ours')
  // A folder that is not empty cannot be removed as a file, nor replaced by one.
  mkdirSync(join(data, CONFIG_IN_FORCE, 'full'), { recursive: true })
  using edge = startCommand(['run', '--dev', '--data', data], LOOPBACK_ENVIRONMENT)
  await edge.sees(/edge\.ready.*\n/)
  edge.interrupt()
  const { code, stderr } = await edge.done
  assert.equal(code, 0)
  assert.match(stderr, /"edge\.current_config\.failed","path":".*current_config\.toml","reason":"E/)
  assert.doesNotMatch(stderr, /crashed/)
})

test('an edge from the sources tells nothing of the Node it runs on', async () => {
  using edge = startCommand(['run', '--dev', '--data', join(folder, 'quiet')], LOOPBACK_ENVIRONMENT)
  await edge.sees(/edge\.ready.*\n/)
  edge.interrupt()
  const { code, stderr } = await edge.done
  assert.equal(code, 0)
  assert.doesNotMatch(stderr, /Warning/)
})
