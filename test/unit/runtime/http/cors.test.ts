import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CorsRules, corsHeaders, preflightHeaders } from '../../../../src/runtime/http/cors.ts'
import { HTTP_CORS_SETTINGS } from '../../../../src/runtime/http/settings.ts'
import { defaultsOf } from '../../../../src/setting.ts'

const DEFAULTS: CorsRules = defaultsOf(HTTP_CORS_SETTINGS)
const PAGE = 'https://dashboard.example.org'
const TWO: CorsRules = { ...DEFAULTS, allowed_origins: ['https://example.org', PAGE] }

test('by default every page may call with methods, headers and answers as Iggy has them', () => {
  assert.deepEqual(corsHeaders(DEFAULTS, {}), {
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'iggy-durability',
  })
  assert.deepEqual(preflightHeaders(DEFAULTS, { origin: PAGE }, 'GET,HEAD'), {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET,POST,PUT,DELETE',
    'access-control-allow-headers': 'content-type,authorization',
    allow: 'GET,HEAD',
  })
})

test('of several origins the one that asks is named, and no other; caches are told', () => {
  assert.deepEqual(corsHeaders({ ...TWO, exposed_headers: [] }, { origin: PAGE }), {
    'access-control-allow-origin': PAGE,
    vary: 'origin',
  })
  for (const origin of ['https://elsewhere.org', 'https://example.org.elsewhere.org', 'null', undefined]) {
    assert.equal(corsHeaders(TWO, { origin })['access-control-allow-origin'], undefined, String(origin))
    assert.equal(preflightHeaders(TWO, { origin }, undefined)['access-control-allow-origin'], undefined, String(origin))
    assert.equal(corsHeaders(TWO, { origin }).vary, 'origin')
  }
})

test('credentials are taken from whom the rules name', () => {
  const rules = { ...TWO, allow_credentials: true }
  assert.equal(corsHeaders(rules, { origin: PAGE })['access-control-allow-credentials'], 'true')
  assert.equal(preflightHeaders(rules, { origin: PAGE }, undefined)['access-control-allow-credentials'], 'true')
  assert.equal(corsHeaders(rules, { origin: 'https://elsewhere.org' })['access-control-allow-credentials'], undefined)
})

test('methods, headers and private networks are as the rules say', () => {
  const rules = { ...TWO, allowed_methods: ['GET'], allowed_headers: ['x-own'], allow_private_network: true }
  const ask = { origin: PAGE, 'access-control-request-private-network': 'true' }
  assert.deepEqual(preflightHeaders(rules, ask, undefined), {
    vary: 'origin',
    'access-control-allow-origin': PAGE,
    'access-control-allow-methods': 'GET',
    'access-control-allow-headers': 'x-own',
    'access-control-allow-private-network': 'true',
  })
  assert.equal(preflightHeaders(TWO, ask, undefined)['access-control-allow-private-network'], undefined)
})

test('turned off it says nothing', () => {
  assert.deepEqual(corsHeaders({ ...DEFAULTS, enabled: false }, { origin: PAGE }), {})
})
