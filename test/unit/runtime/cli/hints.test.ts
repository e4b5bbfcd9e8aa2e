import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { formatError } from '../../../../src/runtime/cli/hints.ts'
import { errorOfStatus } from '../../../../src/sdk/client/server-error.ts'

test('an error says what is wrong, then what to do', () => {
  assert.equal(
    formatError(new EdgeError('EDGE_STORE_IN_USE', 'data folder /d is in use by process 7')),
    'data folder /d is in use by process 7; stop the service first, or ask it: iggy-edge status',
  )
})

test('what is not there and is not named by its kind comes with where to look', () => {
  assert.match(formatError(errorOfStatus(20, 'send_messages')), /\(resource_not_found\); iggy-edge stream list/)
  assert.match(formatError(errorOfStatus(20, 'delete_user')), /; iggy-edge user list shows/)
  assert.match(formatError(errorOfStatus(20, 'delete_personal_access_token')), /; iggy-edge token list shows/)
})

test('messages that a server does not take come with where it says why', () => {
  assert.match(
    formatError(errorOfStatus(4010, 'send_messages')),
    /4010 .*; its disk refuses .* iggy-edge status tells why/,
  )
})

test('a command that a server has not is told from a feature that is missing here', () => {
  assert.match(formatError(errorOfStatus(5, 'flush')), /; the server has no such command/)
  assert.equal(formatError(new EdgeError('EDGE_FEATURE_UNAVAILABLE', 'no engine')), 'no engine')
})

test('a folder or a configuration without rights comes with who has them, a broken disk does not', () => {
  const refused = (code: string) => formatError(new EdgeError('EDGE_IO', `${code} on /d`, { details: { code } }))
  assert.match(refused('EACCES'), /^EACCES on \/d; run it as root or as the user of the service/)
  const config = new EdgeError('EDGE_CONFIG_INVALID', 'EACCES on edge.toml', { details: { code: 'EACCES' } })
  assert.match(formatError(config), /^EACCES on edge\.toml; run it as root /)
  assert.equal(refused('EIO'), 'EIO on /d')
})

test('a listener whose address or port it may not have comes with why', () => {
  const refused = (code: string) => {
    const cause = Object.assign(new Error(`listen ${code}`), { code, syscall: 'listen' })
    return formatError(new EdgeError('EDGE_IO', `listening on 10.0.0.1:80: ${cause.message}`, { cause }))
  }
  assert.match(refused('EADDRNOTAVAIL'), /: listen EADDRNOTAVAIL; no interface of this machine has the address now/)
  assert.match(refused('EACCES'), /; ports below 1024 are for root/)
  assert.equal(refused('EMFILE'), 'listening on 10.0.0.1:80: listen EMFILE')
})

test('a certificate that is not trusted comes with how to trust it, not with whether the server runs', () => {
  const own = Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  for (const cause of [own, new TypeError('fetch failed', { cause: own })]) {
    const text = formatError(
      new EdgeError('EDGE_UPSTREAM_UNREACHABLE', 'edge:8090: self-signed certificate', { cause }),
    )
    assert.match(text, /; a file with the certificates to trust is named with --tcp-tls-ca-file/)
    assert.doesNotMatch(text, /running there/)
  }
})
