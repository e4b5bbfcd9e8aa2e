import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { permissions } from '../../../../src/runtime/http/permission-shapes.ts'
import { rejectionStatus } from '../../../../src/runtime/http/rejection.ts'

const NONE = {
  global: Object.fromEntries(
    ['servers', 'users', 'streams', 'topics']
      .flatMap((of) => [`manage_${of}`, `read_${of}`])
      .concat('poll_messages', 'send_messages')
      .map((right) => [right, false]),
  ),
}
const STREAM = {
  manage_stream: true,
  read_stream: false,
  manage_topics: false,
  read_topics: false,
  poll_messages: false,
  send_messages: false,
}

test('streams are named by their numbers, each in one form, so that nobody has two sets of rights in one', () => {
  const { streams } = permissions({ ...NONE, streams: { 0: STREAM, 4294967295: STREAM } }, '')
  assert.deepEqual(
    streams?.map(({ streamId }) => streamId),
    [0, 0xffff_ffff],
  )
  for (const key of ['01', '+1', '-1', '1.0', ' 1', '', 'x', '4294967296'])
    assert.throws(
      () => permissions({ ...NONE, streams: { [key]: STREAM } }, ''),
      (error) => error instanceof EdgeError && rejectionStatus(error) === 400,
      JSON.stringify(key),
    )
})
