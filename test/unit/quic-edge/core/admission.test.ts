import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Admission } from '../../../../src/quic-edge/core/admission.ts'

const LIMITS = { maxSessions: 3, maxSessionsPerPeer: 2, handshakeTimeoutMs: 5000 }
const IS_PATH_KNOWN = true

test('an unknown path is 404 and no refusal', () => {
  const admission = new Admission(LIMITS)
  assert.equal(admission.admit(from(undefined), !IS_PATH_KNOWN, 0), 404)
  assert.equal(admission.refusedCount, 0)
})

test('sessions count from their admission on until they are closed', () => {
  const admission = new Admission(LIMITS)
  const statuses = [1, 2, 3, 4].map(() => admission.admit(from(undefined), IS_PATH_KNOWN, 0))
  assert.deepEqual(statuses, [200, 200, 200, 503])
  for (let count = 0; count < 3; count++) admission.opened(undefined)
  assert.equal(admission.admit(from(undefined), IS_PATH_KNOWN, 60_000), 503)
  admission.closed(undefined)
  assert.equal(admission.admit(from(undefined), IS_PATH_KNOWN, 60_000), 200)
  assert.equal(admission.refusedCount, 2)
})

test('an admission that was never used expires', () => {
  const admission = new Admission({ ...LIMITS, maxSessions: 1 })
  assert.equal(admission.admit(from('192.0.2.1:1'), IS_PATH_KNOWN, 0), 200)
  assert.equal(admission.admit(from('192.0.2.2:1'), IS_PATH_KNOWN, 4999), 503)
  assert.equal(admission.admit(from('192.0.2.2:1'), IS_PATH_KNOWN, 5000), 200)
})

test('one address cannot take all sessions; ports do not matter, other addresses are not held back', () => {
  const admission = new Admission(LIMITS)
  for (const port of [1, 2]) assert.equal(admission.admit(from(`2001:db8::1:${port}`), IS_PATH_KNOWN, 0), 200)
  assert.equal(admission.admit(from('2001:db8::1:3'), IS_PATH_KNOWN, 0), 503)
  assert.equal(admission.admit(from('2001:db8:0:1::2:1'), IS_PATH_KNOWN, 0), 200)
})

test('of IPv6 a whole network of 64 bits counts as one peer', () => {
  const admission = new Admission(LIMITS)
  assert.equal(admission.admit(from('[2001:db8:1:2::1]:1'), IS_PATH_KNOWN, 0), 200)
  assert.equal(admission.admit(from('[2001:db8:1:2:a:b:c:d]:1'), IS_PATH_KNOWN, 0), 200)
  assert.equal(admission.admit(from('[2001:db8:1:2:ffff::9]:1'), IS_PATH_KNOWN, 0), 503)
  assert.equal(admission.admit(from('[2001:db8:1:3::1]:1'), IS_PATH_KNOWN, 0), 200)
})

test('what came to nothing makes room at once', () => {
  const admission = new Admission(LIMITS)
  for (const port of [1, 2]) assert.equal(admission.admit(from(`192.0.2.1:${port}`), IS_PATH_KNOWN, 0), 200)
  admission.abandoned('192.0.2.1:1')
  assert.equal(admission.admit(from('192.0.2.1:3'), IS_PATH_KNOWN, 0), 200)
  assert.equal(admission.admit(from('192.0.2.1:4'), IS_PATH_KNOWN, 0), 503)
  admission.abandoned('192.0.2.9:1')
  assert.equal(admission.admit(from('192.0.2.2:1'), IS_PATH_KNOWN, 5000), 200, 'the others have expired meanwhile')
  admission.abandoned('192.0.2.1:2')
})

test('while stopping everything is refused', () => {
  const admission = new Admission(LIMITS)
  admission.stop()
  assert.equal(admission.admit(from(undefined), IS_PATH_KNOWN, 0), 503)
})

function from(peer: string | undefined) {
  return { path: '/iggy', peer, origin: undefined }
}
