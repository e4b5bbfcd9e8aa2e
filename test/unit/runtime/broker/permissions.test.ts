import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Action,
  ALL_PERMISSIONS,
  compileRights,
  isAllowed,
  isAllowedSomewhere,
  NO_RIGHTS,
} from '../../../../src/runtime/broker/permissions.ts'
import {
  decodePermissions,
  encodePermissions,
  permissionsFromJson,
} from '../../../../src/runtime/broker/permissions-json.ts'
import type {
  GlobalPermissions,
  Permissions,
  StreamPermissions,
  TopicPermissions,
} from '../../../../src/sdk/wire/permissions.ts'

const ACTIONS: readonly Action[] = [
  'read-servers',
  'read-users',
  'manage-users',
  'list-streams',
  'get-stream',
  'create-stream',
  'manage-stream',
  'list-topics',
  'get-topic',
  'create-topic',
  'manage-topic',
  'poll',
  'send',
]
const STREAM = 4
const TOPIC = 7
const NONE: GlobalPermissions = Object.fromEntries(Object.keys(ALL_PERMISSIONS).map((key) => [key, false])) as never

const globally = (...flags: (keyof GlobalPermissions)[]): Permissions => ({ ...NONE, ...on(flags), streams: [] })
const onStream = (...flags: (keyof StreamPermissions)[]): Permissions => ({
  ...NONE,
  streams: [streamOf(on(flags), [])],
})
const onTopic = (...flags: (keyof TopicPermissions)[]): Permissions => ({
  ...NONE,
  streams: [
    streamOf({}, [
      { topicId: TOPIC, manageTopic: false, readTopic: false, pollMessages: false, sendMessages: false, ...on(flags) },
    ]),
  ],
})

function on(flags: readonly string[]): Record<string, boolean> {
  return Object.fromEntries(flags.map((flag) => [flag, true]))
}

function streamOf(flags: object, topics: readonly TopicPermissions[]): StreamPermissions {
  const none = {
    manageStream: false,
    readStream: false,
    manageTopics: false,
    readTopics: false,
    pollMessages: false,
    sendMessages: false,
  }
  return { streamId: STREAM, ...none, ...flags, topics }
}

function allowed(permissions: Permissions, streamId = STREAM, topicId = TOPIC): Action[] {
  const rights = compileRights(permissions)
  return ACTIONS.filter((action) => isAllowed(rights, action, streamId, topicId))
}

describe('what a right allows', () => {
  const readStreams: Action[] = ['list-streams', 'get-stream', 'list-topics', 'get-topic', 'poll']
  const manageTopics: Action[] = ['list-topics', 'get-topic', 'create-topic', 'manage-topic', 'poll', 'send']
  const CASES: readonly (readonly [string, Permissions, Action[]])[] = [
    ['global manage_servers', globally('manageServers'), ['read-servers']],
    ['global read_servers', globally('readServers'), ['read-servers']],
    ['global manage_users', globally('manageUsers'), ['read-users', 'manage-users']],
    ['global read_users', globally('readUsers'), ['read-users']],
    ['global manage_streams', globally('manageStreams'), ACTIONS.slice(3)],
    ['global read_streams', globally('readStreams'), readStreams],
    ['global manage_topics', globally('manageTopics'), manageTopics],
    ['global read_topics', globally('readTopics'), ['list-topics', 'get-topic', 'poll']],
    ['global poll_messages', globally('pollMessages'), ['poll']],
    ['global send_messages', globally('sendMessages'), ['send']],
    ['stream manage_stream', onStream('manageStream'), ['get-stream', 'manage-stream', ...manageTopics]],
    ['stream read_stream', onStream('readStream'), ['get-stream', 'list-topics', 'get-topic', 'poll']],
    ['stream manage_topics', onStream('manageTopics'), manageTopics],
    ['stream read_topics', onStream('readTopics'), ['list-topics', 'get-topic', 'poll']],
    ['stream poll_messages', onStream('pollMessages'), ['poll']],
    ['stream send_messages', onStream('sendMessages'), ['send']],
    ['topic manage_topic', onTopic('manageTopic'), ['get-topic', 'manage-topic', 'poll', 'send']],
    ['topic read_topic', onTopic('readTopic'), ['get-topic', 'poll']],
    ['topic poll_messages', onTopic('pollMessages'), ['poll']],
    ['topic send_messages', onTopic('sendMessages'), ['send']],
  ]
  for (const [name, permissions, actions] of CASES) {
    test(name, () => {
      assert.deepEqual(allowed(permissions), actions)
      const rights = compileRights(permissions)
      assert.deepEqual(
        ACTIONS.filter((action) => isAllowedSomewhere(rights, action)),
        actions,
      )
    })
  }
})

test('rights on one stream or topic say nothing of another', () => {
  assert.deepEqual(allowed(onStream('manageStream'), STREAM + 1), [])
  assert.deepEqual(allowed(onTopic('manageTopic'), STREAM, TOPIC + 1), [])
})

test('a missing stream is known to global rights only, so names cannot be probed', () => {
  assert.equal(isAllowed(compileRights(onStream('manageStream')), 'get-stream', undefined), false)
  assert.equal(isAllowed(compileRights(globally('readStreams')), 'get-stream', undefined), true)
})

test('without permissions nothing is allowed, with all of them everything', () => {
  assert.deepEqual(
    ACTIONS.filter((action) => isAllowed(NO_RIGHTS, action, STREAM, TOPIC)),
    [],
  )
  assert.deepEqual(compileRights(null), NO_RIGHTS)
  assert.deepEqual(allowed(ALL_PERMISSIONS), ACTIONS)
})

describe('permissions as JSON', () => {
  test('come back as they were', () => {
    for (const permissions of [ALL_PERMISSIONS, onStream('readTopics'), onTopic('sendMessages')]) {
      assert.deepEqual(decodePermissions(encodePermissions(permissions)), permissions)
    }
    assert.equal(decodePermissions(encodePermissions(null)), null)
    const flipped = encodePermissions(ALL_PERMISSIONS)?.replace('{', 'k') ?? null
    assert.equal(decodePermissions(flipped), null, 'nobody gets a right by what cannot be read')
  })

  test('name the first value that is missing or wrong', () => {
    const json = JSON.parse(encodePermissions(onStream('readTopics')) ?? '')
    assert.throws(() => permissionsFromJson({ ...json, global: {} }), /permissions\.global\.manage_servers/)
    assert.throws(() => permissionsFromJson({ ...json, streams: { x: {} } }), /permissions\.streams/)
    assert.throws(() => permissionsFromJson([]), { code: 'EDGE_COMMAND_MALFORMED' })
  })
})
