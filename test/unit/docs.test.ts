import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { generatedDocuments } from '../../scripts/docs.ts'
import { loadConfig } from '../../src/runtime/config/load.ts'
import { decodeTokenPart, signAccessToken } from '../../src/runtime/http/access-token.ts'

const ROOT = join(import.meta.dirname, '../..')

for (const [path, text] of generatedDocuments()) {
  test(`${path} says what the sources say (node scripts/docs.ts writes it)`, () => {
    assert.equal(readFileSync(join(ROOT, path), 'utf8'), text)
  })
}

test('docs/protocol/http.md names each claim of an access token', () => {
  const claims = {
    tokenId: 'token-1',
    userId: 7,
    holder: { username: 'ann', createdAtUs: 1n },
    issuedAt: 1,
    expiresAt: 2,
  }
  const token = signAccessToken(claims, { issuer: 'i', audience: 'a', clockSkew: 0 }, 'secret')
  const text = readFileSync(join(ROOT, 'docs/protocol/http.md'), 'utf8')
  for (const name of Object.keys(decodeTokenPart(token.split('.')[1] ?? '') ?? {}))
    assert.ok(text.includes(`\`${name}\``), `${name} is missing`)
})

test('config/edge.toml is the defaults, as it is and with every key switched on', () => {
  const defaults = loadConfig({ file: null, environment: {} })
  const text = generatedDocuments().get('config/edge.toml') ?? ''
  const sections = text.slice(0, text.indexOf('# [[')).replace(/^# ([a-z_]+ = .*)$/gm, '$1')
  for (const each of [text, sections]) {
    assert.deepEqual(loadConfig({ file: { name: 'edge.toml', text: each }, environment: {} }), defaults)
  }
})
