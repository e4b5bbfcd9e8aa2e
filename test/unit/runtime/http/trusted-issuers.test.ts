import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { silentLogger } from '../../../../src/logger.ts'
import { parseKeySet, TrustedIssuers } from '../../../../src/runtime/http/trusted-issuers.ts'
import { keySetOf, TestIssuer } from '../../../support/issuer.ts'

const NOW_SECONDS = 2_000_000_000
const SETTINGS = { issuer: 'https://issuer.test/', jwks_url: 'http://issuer.test/keys', audience: 'iggy', user_id: 7 }
const CLAIMS = { iss: 'https://issuer.test', aud: 'iggy', sub: 'anybody', exp: NOW_SECONDS + 60 }
const first = new TestIssuer('first')
const second = new TestIssuer('second')

/** Issuers whose answer and clock the test holds. */
function world({ settings = SETTINGS, keySet = keySetOf(first) } = {}) {
  const state = { keySet: keySet as string | Error, fetched: [] as string[], nowUs: 0, isSilent: false }
  const clock = {
    wallUs: () => BigInt(NOW_SECONDS) * 1_000_000n,
    monotonicUs: () => state.nowUs,
  }
  const issuers = new TrustedIssuers([settings], {
    clock,
    clockSkew: 5,
    logger: silentLogger,
    fetchText: async (url) => {
      state.fetched.push(url)
      if (state.isSilent) await new Promise(() => {})
      if (state.keySet instanceof Error) throw state.keySet
      return state.keySet
    },
  })
  return { state, userOf: (token: string) => issuers.userOf(token) }
}

describe('a token of a trusted issuer', () => {
  test('stands for the user that is configured, whatever it says itself', async () => {
    const { userOf, state } = world()
    assert.equal(await userOf(first.token(CLAIMS)), 7)
    assert.equal(await userOf(first.token({ ...CLAIMS, aud: ['other', 'iggy'], sub: '0' })), 7)
    assert.deepEqual(state.fetched, ['http://issuer.test/keys'], 'keys are asked for once')
  })

  test('is taken with an RSA key too, but not with a weak one', async () => {
    const strong = new TestIssuer('strong', 'rsa')
    const weak = new TestIssuer('weak', 'rsa', 1024)
    const { userOf } = world({ keySet: keySetOf(strong, weak) })
    assert.equal(await userOf(strong.token(CLAIMS)), 7)
    assert.equal(await userOf(weak.token(CLAIMS)), undefined)
  })

  const refused: readonly (readonly [string, object])[] = [
    ['for another audience', { aud: 'other' }],
    ['without an audience', { aud: undefined }],
    ['that has ended', { exp: NOW_SECONDS - 6 }],
    ['without an end', { exp: undefined }],
    ['that is not valid yet', { nbf: NOW_SECONDS + 6 }],
    ['whose beginning is no number', { nbf: 'now' }],
    ['of an issuer that nobody trusts', { iss: 'https://other.test' }],
  ]
  for (const [name, claims] of refused) {
    test(`${name} is refused`, async () => {
      assert.equal(await world().userOf(first.token({ ...CLAIMS, ...claims })), undefined)
    })
  }

  test('never stands for root', async () => {
    const { userOf, state } = world({ settings: { ...SETTINGS, user_id: 0 } })
    assert.equal(await userOf(first.token(CLAIMS)), undefined)
    assert.deepEqual(state.fetched, [])
  })

  test('that was changed, or signed by another key, is refused', async () => {
    const { userOf } = world()
    const [header = '', , signature = ''] = first.token(CLAIMS).split('.')
    const other = Buffer.from(JSON.stringify({ ...CLAIMS, sub: 'other' })).toString('base64url')
    assert.equal(await userOf(`${header}.${other}.${signature}`), undefined)
    assert.equal(await userOf(second.token(CLAIMS, { kid: 'first' })), undefined)
  })

  test('cannot choose an algorithm that its key does not serve', async () => {
    const { userOf } = world()
    for (const alg of ['none', 'RS256', 'ES384', 'HS256'])
      assert.equal(await userOf(first.token(CLAIMS, { alg })), undefined)
    const parts = [{ alg: 'HS256', kid: 'first' }, CLAIMS]
    const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    const mac = createHmac('sha256', JSON.stringify(first.jwk)).update(signed).digest('base64url')
    assert.equal(await userOf(`${signed}.${mac}`), undefined)
  })

  test('that is no token at all is refused', async () => {
    const { userOf, state } = world()
    for (const token of ['', 'x', 'a.b', 'a.b.c', `${first.token(CLAIMS)}.x`, 'x'.repeat(5000)])
      assert.equal(await userOf(token), undefined)
    assert.deepEqual(state.fetched, [])
  })
})

describe('keys of an issuer', () => {
  test('are asked for again when a token names a new one, once in ten seconds at most', async () => {
    const { userOf, state } = world()
    await userOf(first.token(CLAIMS))
    state.keySet = keySetOf(second)
    assert.equal(await userOf(second.token(CLAIMS)), undefined, 'too soon')
    state.nowUs += 10_000_001
    assert.equal(await userOf(second.token(CLAIMS)), 7)
    assert.equal(await userOf(first.token(CLAIMS)), undefined, 'a withdrawn key is gone')
    assert.equal(state.fetched.length, 2)
  })

  test('are asked for by one request, however many wait for them', async () => {
    const { userOf, state } = world()
    const token = first.token(CLAIMS)
    assert.deepEqual(await Promise.all([userOf(token), userOf(token), userOf(token)]), [7, 7, 7])
    assert.equal(state.fetched.length, 1)
  })

  test('that are old are asked for anew, and stay good while the issuer cannot be reached', async () => {
    const { userOf, state } = world()
    await userOf(first.token(CLAIMS))
    state.nowUs += 600_000_001
    state.keySet = new Error('no route')
    assert.equal(await userOf(first.token(CLAIMS)), 7)
    state.nowUs += 10_000_001
    state.isSilent = true
    assert.equal(await userOf(first.token(CLAIMS)), 7, 'known keys wait for it once only')
  })

  test('that were withdrawn while the issuer could not be reached are refused once it can', async () => {
    const { userOf, state } = world()
    await userOf(first.token(CLAIMS))
    state.nowUs += 600_000_001
    state.keySet = new Error('no route')
    assert.equal(await userOf(first.token(CLAIMS)), 7)
    state.nowUs += 10_000_001
    state.keySet = keySetOf(second)
    await userOf(first.token(CLAIMS))
    assert.equal(await userOf(first.token(CLAIMS)), undefined)
    state.nowUs += 600_000_001
    state.keySet = keySetOf(first)
    assert.equal(await userOf(second.token(CLAIMS)), undefined, 'it is waited for again')
  })

  test('of other kinds are passed over', () => {
    const encryption = { ...first.jwk, kid: 'enc', use: 'enc' }
    const keys = [
      { kty: 'oct', kid: 'secret', k: 'AAAA' },
      encryption,
      { ...first.jwk, kid: undefined },
      null,
      'x',
      first.jwk,
    ]
    assert.deepEqual([...parseKeySet(JSON.stringify({ keys })).keys()], ['first'])
    for (const text of ['', '[]', '{}', '{"keys":{}}']) assert.throws(() => parseKeySet(text))
  })
})
