import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { signAccessToken, verifyAccessToken } from '../../../../src/runtime/http/access-token.ts'

const RULES = { issuer: 'iggy.apache.org', audience: 'iggy.apache.org', clockSkew: 5 }
const SECRET = 'a secret of this test'
const HOLDER = { username: 'alice', createdAtUs: 1_800_000_000_000_000n }
const CLAIMS = { tokenId: 'token-1', userId: 42, holder: HOLDER, issuedAt: 1_000_000, expiresAt: 1_003_600 }
const TOKEN = signAccessToken(CLAIMS, RULES, SECRET)
const NOW = 1_000_010

const forge = (header: object, payload: object, secret = SECRET): string => {
  const signed = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}
const PAYLOAD = {
  jti: 'x',
  iss: RULES.issuer,
  aud: RULES.audience,
  sub: '42',
  iat: 1_000_000,
  exp: 1_003_600,
  nbf: 1_000_000,
}

test('a token gives back its claims, and any client can read the user id', () => {
  assert.deepEqual(verifyAccessToken(TOKEN, RULES, SECRET, NOW), { type: 'valid', claims: CLAIMS })
  const payload = JSON.parse(Buffer.from(TOKEN.split('.')[1] ?? '', 'base64url').toString())
  assert.equal(payload.sub, '42')
  assert.equal(payload.exp, CLAIMS.expiresAt)
})

test('a token ends at its time, give or take the clock skew', () => {
  assert.equal(verifyAccessToken(TOKEN, RULES, SECRET, CLAIMS.expiresAt + 4).type, 'valid')
  assert.equal(verifyAccessToken(TOKEN, RULES, SECRET, CLAIMS.expiresAt + 5).type, 'expired')
  assert.equal(verifyAccessToken(TOKEN, RULES, SECRET, CLAIMS.issuedAt - 6).type, 'invalid')
})

test('a changed, cut or lengthened token is refused at every position', () => {
  for (let at = 0; at < TOKEN.length; at++) {
    const other = TOKEN[at] === 'A' ? 'B' : 'A'
    const changed = TOKEN.slice(0, at) + other + TOKEN.slice(at + 1)
    assert.equal(verifyAccessToken(changed, RULES, SECRET, NOW).type, 'invalid', `position ${at}`)
    assert.equal(verifyAccessToken(TOKEN.slice(0, at), RULES, SECRET, NOW).type, 'invalid')
  }
  for (const token of [`${TOKEN}x`, `${TOKEN}=`, `${TOKEN}.`, '', '...', 'garbage', 'x'.repeat(5000)])
    assert.equal(verifyAccessToken(token, RULES, SECRET, NOW).type, 'invalid')
})

test('only our algorithm, our key, our issuer and our audience count', () => {
  const header = { typ: 'JWT', alg: 'HS256' }
  assert.equal(verifyAccessToken(forge(header, PAYLOAD), RULES, SECRET, NOW).type, 'valid')
  assert.equal(
    verifyAccessToken(forge(header, { ...PAYLOAD, aud: ['other', RULES.audience] }), RULES, SECRET, NOW).type,
    'valid',
  )
  const refused = [
    forge({ ...header, alg: 'none' }, PAYLOAD),
    forge({ ...header, alg: 'HS384' }, PAYLOAD),
    forge(header, PAYLOAD, 'another secret'),
    forge(header, { ...PAYLOAD, iss: 'other' }),
    forge(header, { ...PAYLOAD, aud: 'other' }),
    forge(header, { ...PAYLOAD, sub: 42 }),
    forge(header, { ...PAYLOAD, sub: 'root' }),
    forge(header, { ...PAYLOAD, exp: undefined }),
    forge(header, { ...PAYLOAD, jti: undefined }),
  ]
  for (const token of refused) assert.equal(verifyAccessToken(token, RULES, SECRET, NOW).type, 'invalid')
})
