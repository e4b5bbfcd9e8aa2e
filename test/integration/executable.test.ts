import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ARCHITECTURES, type Architecture } from '../../scripts/executable/base-node.ts'
import { buildExecutable, type Executable } from '../../scripts/executable/build.ts'
import { runnerFor } from '../../scripts/executable/runner.ts'
import { startEdgeProcess } from '../support/edge-process.ts'
import { UdpQuicClient } from '../support/quic/udp-client.ts'

/** Of the classic generation. */
const PING = Uint8Array.fromHex('0400000001000000')
/** Building copies and hashes 130 MB, twice; emulated, a start takes seconds. */
const TIMEOUT_MS = 5 * 60_000
function temporaryFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'executable-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Another architecture's Node comes from the registry, which may be out of reach. */
async function built(context: TestContext, architecture: Architecture): Promise<Executable | undefined> {
  try {
    return await buildExecutable(architecture)
  } catch (error) {
    if (architecture === process.arch) throw error
    if (!(error instanceof Error && /npm|Command failed/.test(error.message))) throw error
    context.skip(`node-linux-${architecture} cannot be fetched: ${error.message.split('\n')[0]}`)
    return undefined
  }
}

async function selfTest(command: readonly string[], environment: NodeJS.ProcessEnv): Promise<string> {
  const [program = '', ...parameters] = command
  const child = spawn(program, [...parameters, 'self-test'], { env: { ...process.env, ...environment } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code] = await once(child, 'close')
  assert.equal(code, 0, output)
  return output
}

for (const architecture of ARCHITECTURES) {
  const runner = runnerFor(architecture)
  const skip = 'missing' in runner ? runner.missing : false
  test(`the ${architecture} executable passes its self-test`, { timeout: TIMEOUT_MS, skip }, async (context) => {
    const executable = await built(context, architecture)
    if (executable === undefined || 'missing' in runner) return
    const cache = temporaryFolder(context)
    const output = await selfTest([...runner.words, executable.path], { CACHE_DIRECTORY: cache })
    for (const check of ['sqlite write and read', 'append and poll', 'quic echo', 'http answer']) {
      assert.match(output, new RegExp(`^ok +${check}: `, 'm'))
    }
    for (const name of ['better_sqlite3.node', 'web-transport.node']) {
      assert.match(output, new RegExp(`^addon +${name} from ${cache}/addons/`, 'm'))
    }
    assert.match(output, /^code +compiled beforehand: (\d+) of \1 parts$/m)
  })
}

test('the executable works where nothing may be written but its temporary folder', {
  timeout: TIMEOUT_MS,
}, async (context) => {
  const architecture = ARCHITECTURES.find((name) => name === process.arch) ?? 'x64'
  const executable = await built(context, architecture)
  if (executable === undefined) return
  const output = await selfTest([executable.path], { CACHE_DIRECTORY: '', STATE_DIRECTORY: '' })
  assert.match(output, /^addon +better_sqlite3\.node from memfd$/m)
  assert.match(output, /^addon +web-transport\.node from memfd$/m)
})

test('the executable serves as the checkout does', { timeout: TIMEOUT_MS }, async (context) => {
  const architecture = ARCHITECTURES.find((name) => name === process.arch) ?? 'x64'
  const executable = await built(context, architecture)
  if (executable === undefined) return
  const dataPath = join(temporaryFolder(context), 'data')
  // A schedule other than the default asks for a package that the program loads when it is used.
  const environment = { EDGE_QUIC__ENABLED: 'true', EDGE_RETENTION__SCHEDULE: '*/5 * * * *' }
  await using edge = await startEdgeProcess({ dataPath, command: [executable.path], environment })
  const response = await fetch(`http://${edge.http}/health/ready`)
  assert.equal(response.status, 200)
  await using quic = await UdpQuicClient.connect({ address: edge.quic })
  assert.equal((await quic.request(PING)).bytes.toString('hex'), '0000000000000000')
  // Of Node alone it would open a debugger.
  process.kill(edge.pid, 'SIGUSR1')
  assert.equal(await edge.stop(), 0)
  assert.doesNotMatch(JSON.stringify(edge.lines), /Debugger/)
})
