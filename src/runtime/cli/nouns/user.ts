/** `user`: create, list, get, delete, name, status, password, permissions. */
import { USER_ACTIVE } from '../../../sdk/wire/commands/users.ts'
import type { UserRecord } from '../../../sdk/wire/records.ts'
import type { Command } from '../command.ts'
import type { Argument, Values } from '../grammar.ts'
import { type Row, time } from '../output.ts'
import { formatPermissions, parsePermissions } from '../permission-text.ts'
import { askNewPassword, askPassword } from '../prompt.ts'
import { serverCommand } from '../server-command.ts'
import { commandWords, identifierOf, VERBS } from '../words.ts'
import { present } from './arguments.ts'

const words = (verbs: readonly string[]) => commandWords(['user', 'u'], verbs)

const USER: Argument = {
  name: 'user',
  aliases: ['user-id'],
  isPositional: true,
  isRequired: true,
  summary: 'Id or name of the user.',
}
const GLOBAL: Argument = {
  name: 'global-permissions',
  aliases: ['g'],
  summary: 'Rights everywhere: manage_servers,read_users .. or short m_srv,r_usr ..',
}
const STREAMS: Argument = {
  name: 'stream-permissions',
  aliases: ['s'],
  isVariadic: true,
  summary: 'Rights in one stream: STREAM_ID:read_stream,poll_messages#TOPIC_ID:send_messages; may be repeated.',
}
const STATUSES = ['active', 'inactive'] as const

const userOf = (values: Values): number | string => identifierOf(values.required('user'))
const permissionsOf = (values: Values) =>
  parsePermissions(values.text('global-permissions'), values.all('stream-permissions'))

export const USER_COMMANDS: readonly Command[] = [
  serverCommand({
    ...words(VERBS.create),
    summary: 'Create a user.',
    arguments: [
      { name: 'name', isPositional: true, isRequired: true, summary: 'Name, 3 to 50 bytes.' },
      { name: 'new-password', isPositional: true, isRequired: true, summary: 'Password, 3 to 100 bytes.' },
      { name: 'user-status', aliases: ['u'], summary: 'active (default) or inactive.' },
      GLOBAL,
      STREAMS,
    ],
    async run(client, values, output) {
      const user = await client.users.create({
        username: values.required('name'),
        password: values.required('new-password'),
        isActive: values.choice('user-status', 'active', STATUSES) === 'active',
        permissions: permissionsOf(values),
      })
      output.done(`user "${user.username}" created, id ${user.id}`, userRow(user))
    },
  }),
  serverCommand({
    ...words(VERBS.list),
    summary: 'List all users.',
    arguments: [],
    async run(client, _values, output) {
      output.rows((await client.users.list()).map(userRow))
    },
  }),
  serverCommand({
    ...words(VERBS.get),
    summary: 'Show a user and what it may do.',
    arguments: [USER],
    async run(client, values, output) {
      const id = userOf(values)
      const user = present(await client.users.get(id), 'EDGE_USER_NOT_FOUND', `user "${id}"`)
      output.row({ ...userRow(user), permissions: formatPermissions(user.permissions) })
    },
  }),
  serverCommand({
    ...words(VERBS.delete),
    summary: 'Delete a user.',
    arguments: [USER],
    async run(client, values, output) {
      const user = userOf(values)
      await client.users.delete(user)
      output.done(`user "${user}" deleted`, { user })
    },
  }),
  serverCommand({
    ...words(['name', 'n']),
    summary: 'Give a user another name.',
    arguments: [USER, { name: 'name', isPositional: true, isRequired: true, summary: 'New name.' }],
    async run(client, values, output) {
      const [user, username] = [userOf(values), values.required('name')]
      await client.users.update(user, { username })
      output.done(`user "${user}" is now "${username}"`, { user, name: username })
    },
  }),
  serverCommand({
    ...words(['status', 's']),
    summary: 'Let a user in or keep it out.',
    arguments: [USER, { name: 'status', isPositional: true, isRequired: true, summary: 'active or inactive.' }],
    async run(client, values, output) {
      const [user, status] = [userOf(values), values.choice('status', 'active', STATUSES)]
      await client.users.update(user, { isActive: status === 'active' })
      output.done(`user "${user}" is ${status}`, { user, status })
    },
  }),
  serverCommand({
    ...words(['password', 'pwd']),
    summary: "Change a user's password.",
    arguments: [
      USER,
      { name: 'current-password', isPositional: true, summary: 'Asked for when it is left out.' },
      { name: 'new-password', isPositional: true, summary: 'Asked for when it is left out.' },
    ],
    async run(client, values, output, { signal }) {
      const user = userOf(values)
      const current = values.text('current-password') ?? (await askPassword(`user ${user} now`, signal))
      const next = values.text('new-password') ?? (await askNewPassword(`user ${user}`, signal))
      await client.users.changePassword(user, current, next)
      output.done(`password of user "${user}" changed`, { user })
    },
  }),
  serverCommand({
    ...words(['permissions', 'p']),
    summary: 'Set what a user may do; without any option, nothing.',
    arguments: [USER, GLOBAL, STREAMS],
    async run(client, values, output) {
      const user = userOf(values)
      const permissions = permissionsOf(values)
      await client.users.setPermissions(user, permissions)
      output.done(`permissions of user "${user}" set`, { user, permissions: formatPermissions(permissions) })
    },
  }),
]

function userRow(user: UserRecord): Row {
  return {
    id: user.id,
    name: user.username,
    status: user.status === USER_ACTIVE ? 'active' : 'inactive',
    created_at: time(user.createdAtUs),
  }
}
