import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ROOT } from '../support/source-tree.ts'

/** A project that has the compiled client among its packages, as npm would put it there. */
function projectWithClient(context: TestContext): string {
  execFileSync(process.execPath, [join(ROOT, 'scripts/build-sdk.ts')], { stdio: ['ignore', 'ignore', 'inherit'] })
  const folder = mkdtempSync(join(tmpdir(), 'sdk-user-'))
  context.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(join(ROOT, 'dist/sdk'), join(folder, 'node_modules/iggy-edge'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  return folder
}

test('the compiled client has its QUIC transport with it', { timeout: 120_000 }, (context) => {
  const folder = projectWithClient(context)
  // The transport is found by its place, not by an import: the package tells of one that is missing, and goes on without.
  writeFileSync(
    join(folder, 'run.js'),
    `const { loadWebTransport } = await import('./node_modules/iggy-edge/quinn-transport/index.js')
const { transportName } = await loadWebTransport()
process.stdout.write(transportName)\n`,
  )
  const { stdout, stderr } = spawnSync(process.execPath, ['run.js'], { cwd: folder, encoding: 'utf8' })
  assert.deepEqual({ stdout, stderr }, { stdout: 'quinn', stderr: '' })
})

test('the compiled client is imported by name, with its types', { timeout: 120_000 }, (context) => {
  const folder = projectWithClient(context)
  writeFileSync(
    join(folder, 'run.js'),
    "import { connect } from 'iggy-edge/sdk'\nprocess.stdout.write(typeof connect)\n",
  )
  assert.equal(execFileSync(process.execPath, ['run.js'], { cwd: folder, encoding: 'utf8' }), 'function')

  writeFileSync(
    join(folder, 'right.ts'),
    "import { connect } from 'iggy-edge/sdk'\nexport const open: (url: string) => unknown = connect\n",
  )
  writeFileSync(
    join(folder, 'wrong.ts'),
    "import { connect } from 'iggy-edge/sdk'\nexport const port: number = connect\n",
  )
  const check = (file: string): string => {
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--skipLibCheck', 'false']
    const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')]
    try {
      return execFileSync(join(ROOT, 'node_modules/.bin/tsc'), [...options, ...types, file], {
        cwd: folder,
        encoding: 'utf8',
      })
    } catch (error) {
      return String((error as { stdout: string }).stdout)
    }
  }
  assert.equal(check('right.ts'), '')
  assert.match(check('wrong.ts'), /^wrong\.ts.*not assignable to type 'number'/)
})
