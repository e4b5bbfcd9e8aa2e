import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PasswordHasher, parsePhc } from '../../../../src/runtime/broker/password.ts'

test('a password is known again by its hash, another is not', async () => {
  const hasher = new PasswordHasher()
  const phc = await hasher.hash('correct horse')
  assert.match(phc, /^\$argon2id\$v=19\$m=\d+,t=\d+,p=1\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/)
  assert.equal(await hasher.verify('correct horse', phc), true)
  assert.equal(await hasher.verify('battery staple', phc), false)
})

test('the same password has another hash each time', async () => {
  const hasher = new PasswordHasher()
  assert.notEqual(await hasher.hash('iggy'), await hasher.hash('iggy'))
})

test('an unknown user and a hash that is none are refused like a wrong password', async () => {
  const hasher = new PasswordHasher()
  assert.equal(await hasher.verify('iggy', undefined), false)
  assert.equal(await hasher.verify('iggy', 'plain text'), false)
})

test('a password that was right is known again without a hash', async () => {
  const hasher = new PasswordHasher()
  const phc = await hasher.hash('correct horse')
  assert.equal(await hasher.verify('correct horse', phc), true)
  // More than may wait for a hash.
  const known = Array.from({ length: 1000 }, () => hasher.verify('correct horse', phc))
  assert.ok((await Promise.all(known)).every((isRight) => isRight))
  assert.equal(await hasher.verify('battery staple', phc), false)
})

test('a password that was right for one hash is not for another', async () => {
  const hasher = new PasswordHasher()
  const [old, changed] = [await hasher.hash('correct horse'), await hasher.hash('battery staple')]
  assert.equal(await hasher.verify('correct horse', old), true)
  assert.equal(await hasher.verify('correct horse', changed), false)
})

test('a stored hash cannot ask for more memory or time than a gateway should give', () => {
  const salt = 'c2FsdHNhbHRzYWx0c2FsdA'
  const hash = 'aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo'
  assert.ok(parsePhc(`$argon2id$v=19$m=19456,t=2,p=1$${salt}$${hash}`))
  assert.equal(parsePhc(`$argon2id$v=19$m=999999,t=2,p=1$${salt}$${hash}`), undefined)
  assert.equal(parsePhc(`$argon2id$v=19$m=19456,t=99,p=1$${salt}$${hash}`), undefined)
  assert.equal(parsePhc(`$argon2i$v=19$m=19456,t=2,p=1$${salt}$${hash}`), undefined)
})
