import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { ROOT } from '../support/source-tree.ts'

test('a full disk behind standard error costs lines, not the process', {
  skip: existsSync('/dev/full') ? false : 'no /dev/full here',
}, (context) => {
  const full = openSync('/dev/full', 'w')
  context.after(() => closeSync(full))
  const module = pathToFileURL(join(ROOT, 'src/logger.ts')).href
  const script = `
    const { createLogger } = await import(process.argv[1])
    const logger = createLogger('info')
    for (let i = 0; i < 3; i++) logger.warn('test.line', { text: 'x'.repeat(30_000) })
    await new Promise((resolve) => setImmediate(resolve))
    console.log('alive')`
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', script, module], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', full],
  })
  assert.equal(child.stdout, 'alive\n')
  assert.equal(child.status, 0)
})
