import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { generatedDocuments } from '../../scripts/docs.ts'
import { loadConfig } from '../../src/runtime/config/load.ts'

const ROOT = join(import.meta.dirname, '../..')

for (const [path, text] of generatedDocuments()) {
  test(`${path} says what the sources say (node scripts/docs.ts writes it)`, () => {
    assert.equal(readFileSync(join(ROOT, path), 'utf8'), text)
  })
}

test('config/edge.toml is the defaults, as it is and with every key switched on', () => {
  const defaults = loadConfig({ file: null, environment: {} })
  const text = generatedDocuments().get('config/edge.toml') ?? ''
  const sections = text.slice(0, text.indexOf('# [[')).replace(/^# ([a-z_]+ = .*)$/gm, '$1')
  for (const each of [text, sections]) {
    assert.deepEqual(loadConfig({ file: { name: 'edge.toml', text: each }, environment: {} }), defaults)
  }
})
