import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { Router } from '../../../../src/runtime/http/router.ts'

const router = new Router([
  { method: 'GET', path: '/' },
  { method: 'POST', path: '/users/login' },
  { method: 'GET', path: '/users/{user_id}' },
  { method: 'PUT', path: '/users/{user_id}' },
  { method: 'DELETE', path: '/users/logout' },
  { method: 'GET', path: '/streams' },
  { method: 'POST', path: '/streams' },
  { method: 'GET', path: '/streams/{stream_id}/topics/{topic_id}' },
  { method: 'DELETE', path: '/streams/{stream_id}/purge' },
])

const typeOf = (method: string, path: string): string => router.match(method, path).type

test('variable segments are decoded and named', () => {
  const match = router.match('GET', '/streams/str%C3%B8m%20x/topics/a%2Fb')
  assert.equal(match.type, 'found')
  if (match.type === 'found')
    assert.deepEqual(
      [...match.params],
      [
        ['stream_id', 'strøm x'],
        ['topic_id', 'a/b'],
      ],
    )
})

test('nothing is forgiven: trailing and double slashes are other paths', () => {
  for (const path of ['/streams/', '//streams', '/nope', '/streams/1/', '/streams//topics/1', ''])
    assert.equal(typeOf('GET', path), 'not-found')
  assert.equal(typeOf('GET', '/'), 'found')
})

test('HEAD goes where GET goes; other methods are told what is allowed', () => {
  assert.equal(typeOf('HEAD', '/streams'), 'found')
  assert.deepEqual(router.match('PATCH', '/streams'), { type: 'method-not-allowed', allow: 'GET,HEAD,POST' })
  assert.deepEqual(router.match('HEAD', '/users/login'), { type: 'method-not-allowed', allow: 'POST' })
  assert.equal(router.allow('/users/7'), 'GET,HEAD,PUT')
  assert.equal(router.allow('/nope'), undefined)
})

test('a fixed segment wins over a variable one, for all its methods', () => {
  assert.deepEqual(router.match('GET', '/users/login'), { type: 'method-not-allowed', allow: 'POST' })
  const match = router.match('GET', '/users/log')
  assert.equal(match.type === 'found' && match.params.get('user_id'), 'log')
})

test('a segment that is no UTF-8 is refused by its name', () => {
  assert.throws(
    () => router.match('GET', '/streams/%ff/topics/1'),
    (error) => error instanceof EdgeError && error.message === 'Invalid URL: Invalid UTF-8 in `stream_id`',
  )
})
