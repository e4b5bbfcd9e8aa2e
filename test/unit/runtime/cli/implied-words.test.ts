import assert from 'node:assert/strict'
import { test } from 'node:test'
import { impliedWords } from '../../../../src/runtime/cli/implied-words.ts'

test('started as Apache names its server, or with its variables, it runs without a command', () => {
  assert.deepEqual(impliedWords([], '/usr/bin/iggy-server', {}), ['run'])
  assert.deepEqual(impliedWords([], 'main.ts', { IGGY_SYSTEM_PATH: '/data' }), ['run'])
  assert.deepEqual(impliedWords(['--fresh'], 'main.ts', {}), ['run', '--fresh'])
  assert.deepEqual(impliedWords(['--with-default-root-credentials', '--fresh'], 'iggy-server', {}), [
    'run',
    '--with-default-root-credentials',
    '--fresh',
  ])
})

test('words of its own that Apache writes are understood', () => {
  assert.deepEqual(impliedWords(['-f'], 'iggy-server', {}), ['run', '-f'])
  for (const words of [['--config-provider', 'file'], ['-c', 'file'], ['--config-provider=file']])
    assert.deepEqual(impliedWords([...words, '--fresh'], 'iggy-server', {}), ['run', '--fresh'])
  assert.deepEqual(impliedWords(['-c', 'edge.toml'], 'iggy-server', {}), ['-c', 'edge.toml'])
})

test('a client and a person get what they asked for', () => {
  assert.deepEqual(impliedWords([], 'iggy-edge', {}), [])
  assert.deepEqual(impliedWords([], 'iggy-edge', { IGGY_URL: 'host', IGGY_USERNAME: 'a', IGGY_PASSWORD: 'b' }), [])
  assert.deepEqual(impliedWords(['ping'], 'iggy-server', { IGGY_SYSTEM_PATH: '/data' }), ['ping'])
  assert.deepEqual(impliedWords(['--help'], 'iggy-server', {}), ['--help'])
})
