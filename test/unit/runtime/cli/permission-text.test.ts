import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatPermissions, parsePermissions } from '../../../../src/runtime/cli/permission-text.ts'

test('long and short words mean the same, and come back as long ones', () => {
  const long = parsePermissions('manage_servers,send_messages', [
    '1:read_stream,poll_messages#2:manage_topic#3:send_messages',
  ])
  const short = parsePermissions('m_srv,s_msg', ['1:r_str,p_msg#2:m_top#3:s_msg'])
  assert.deepEqual(long, short)
  assert.equal(
    formatPermissions(long),
    'manage_servers,send_messages 1:read_stream,poll_messages#2:manage_topic#3:send_messages',
  )
})

test('nothing given is no permissions, not empty ones', () => {
  assert.equal(parsePermissions(undefined, []), null)
  assert.equal(formatPermissions(null), '')
  assert.equal(parsePermissions('', [])?.readServers, false)
})

test('a wrong word is named with the right ones', () => {
  assert.throws(() => parsePermissions('read_everything', []), /found "read_everything", expected manage_servers/)
  assert.throws(() => parsePermissions(undefined, ['orders:r_str']), /found "orders:r_str", expected ID/)
  assert.throws(() => parsePermissions(undefined, ['1:r_srv']), /found "r_srv", expected manage_stream/)
})
