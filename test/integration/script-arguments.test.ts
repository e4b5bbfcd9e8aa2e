import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../support/source-tree.ts'

/** Everything that a contributor starts by name, and that would work for seconds to hours. */
const SCRIPTS = [
  'scripts/build-kernel.ts',
  'scripts/build-sdk.ts',
  'scripts/build-sea.ts',
  'scripts/docs.ts',
  'scripts/test.ts',
  'test/bench/log-append.ts',
  'test/bench/main.ts',
  'test/interop/prepare.ts',
]

for (const script of SCRIPTS) {
  const run = (word: string) =>
    spawnSync(process.execPath, [join(ROOT, script), word], { cwd: ROOT, encoding: 'utf8', timeout: 30_000 })

  test(`${script} tells how to use it, and refuses what it does not know`, () => {
    const usage = /^(npm|node) .*\n$/
    const help = run('--help')
    assert.deepEqual([help.status, help.stderr], [0, ''])
    assert.match(help.stdout, usage)

    const refused = run('--no-such-option')
    assert.deepEqual([refused.status, refused.stdout], [64, ''])
    assert.match(refused.stderr, /--no-such-option/)
    assert.ok(refused.stderr.endsWith(help.stdout))
  })
}

test('a bench or an architecture that is not there is refused, too', () => {
  for (const [script, word] of [
    ['test/bench/main.ts', 'brokr'],
    ['scripts/build-sea.ts', 'x86'],
    ['test/bench/log-append.ts', 'long'],
  ] as const) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, script), word], { encoding: 'utf8' })
    assert.deepEqual([status, stdout], [64, ''])
    assert.match(stderr, new RegExp(word))
  }
})
