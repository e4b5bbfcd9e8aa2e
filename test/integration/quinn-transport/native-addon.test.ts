import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { KNOWN_ADDON_DIGESTS, lowerGlibc } from '../../../src/quinn-transport/core/lower-glibc.ts'
import { loadNativeAddon } from '../../../src/quinn-transport/io/native-addon.ts'

const FOLDER = join(import.meta.dirname, '../../../node_modules/@moq/web-transport')
const addonOf = (architecture: string): Buffer =>
  readFileSync(join(FOLDER, `web-transport.linux-${architecture}-gnu.node`))

for (const architecture of ['x64', 'arm64']) {
  test(`the installed ${architecture} addon is the one that was checked`, () => {
    const digest = createHash('sha256').update(addonOf(architecture)).digest('hex')
    assert.equal(digest, KNOWN_ADDON_DIGESTS[architecture])
  })

  test(`the ${architecture} addon needs two newer names, and none once lowered`, () => {
    const original = addonOf(architecture)
    const lowered = lowerGlibc(original)
    assert.deepEqual(
      lowered.changes.map((change) => change.replace(/ -> (\w+)@.*/, ' -> $1')),
      ['__isoc23_sscanf@GLIBC_2.38 -> sscanf', '__isoc23_strtol@GLIBC_2.38 -> strtol'],
    )
    assert.equal(lowered.bytes.length, original.length)
    assert.deepEqual(lowerGlibc(lowered.bytes).changes, [])
  })
}

test('an addon that needs another new name is refused', () => {
  const bytes = addonOf('x64')
  const name = bytes.indexOf('\0__isoc23_strtol\0') + 1
  bytes.write('__other3_strtol', name, 'latin1')
  assert.throws(() => lowerGlibc(bytes), { code: 'EDGE_FEATURE_MISSING', message: /__other3_strtol@GLIBC_2\.38/ })
})

test('bytes that are no shared object are refused', () => {
  assert.throws(() => lowerGlibc(new Uint8Array(10)), { code: 'EDGE_FEATURE_MISSING' })
  assert.throws(() => lowerGlibc(addonOf('x64').subarray(0, 4096)), { code: 'EDGE_FEATURE_MISSING' })
})

test('the addon loads on this machine', () => {
  const addon = loadNativeAddon() as Record<string, unknown>
  assert.equal(typeof addon.NapiServer, 'function')
  assert.equal(typeof addon.NapiClient, 'function')
  assert.equal(loadNativeAddon(), addon)
})
