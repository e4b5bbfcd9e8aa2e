import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeTarget, parseConnectionString } from '../../../src/sdk/connection-string.ts'
import { bytesOf, countDecoded, textOf } from '../../support/mutated-bytes.ts'

test('mutated connection strings are read or refused, and what is said of them tells no secret', () => {
  const samples = [
    'iggy+tcp://user:hunter2@host.example:8090?reconnection_retries=3&tls=true&tls_domain=x',
    `edge+wt://hunter2@[::1]:8443/?certificate_sha256=${'ab'.repeat(32)}`,
    'iggy://iggypat-hunter2@127.0.0.1:8090',
    'http://user:hunter2@host:3000/',
  ].map(bytesOf)
  const decoded = countDecoded({ samples, rounds: 50_000, seed: 3 }, (bytes) => {
    const target = parseConnectionString(textOf(bytes))
    assert.doesNotMatch(describeTarget(target), /hunter2@/)
    return target
  })
  assert.ok(decoded > 500, `${decoded}`)
})
