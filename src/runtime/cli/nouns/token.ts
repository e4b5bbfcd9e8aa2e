/** `token`: personal access tokens of the own user, and tokens for devices. */
import { parseDurationWithUnit, UNLIMITED } from '../../amount-text.ts'
import type { Command } from '../command.ts'
import { type Argument, usageError, type Values } from '../grammar.ts'
import { httpCommand } from '../http-command.ts'
import { list, time } from '../output.ts'
import { serverCommand } from '../server-command.ts'
import { commandWords, VERBS } from '../words.ts'

const words = (verbs: readonly string[]) => commandWords(['token', 'pat'], verbs)

const NAME: Argument = { name: 'name', isPositional: true, isRequired: true, summary: 'Name, 3 to 30 bytes.' }
const EXPIRY: Argument = {
  name: 'expiry',
  isPositional: true,
  isVariadic: true,
  summary: 'How long it is good for: 1day, 12h 30m, never (default).',
}

const ROUTE = '/edge/device-tokens'

/** As the route answers it. */
interface DeviceToken {
  readonly name: string
  readonly user: string
  readonly device: string
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
  readonly any_key: boolean
  readonly expires_at: number | bigint | null
}

export const TOKEN_COMMANDS: readonly Command[] = [
  serverCommand({
    ...words(VERBS.create),
    summary: 'Create a personal access token; it is shown this once.',
    arguments: [NAME, EXPIRY],
    async run(client, values, output) {
      const name = values.required('name')
      const token = await client.tokens.create(name, lifetimeOf(values))
      output.once(token, { name, token })
    },
  }),
  serverCommand({
    ...words(VERBS.list),
    summary: 'List the personal access tokens of the user.',
    arguments: [],
    async run(client, _values, output) {
      output.rows(
        (await client.tokens.list()).map(({ name, expiresAtUs }) => ({ name, expires_at: time(expiresAtUs) })),
      )
    },
  }),
  serverCommand({
    ...words(VERBS.delete),
    summary: 'Delete a personal access token.',
    arguments: [NAME],
    async run(client, values, output) {
      const name = values.required('name')
      await client.tokens.delete(name)
      output.done(`token "${name}" deleted`, { name })
    },
  }),
  httpCommand({
    ...words(['create-device', 'cd']),
    summary: 'Create a token for devices (QUIC, device protocol); it is shown this once.',
    arguments: [
      NAME,
      { name: 'device', isRequired: true, summary: 'Device names it is good for, * as wildcard: dev-0042, dev-*.' },
      {
        name: 'publish',
        isVariadic: true,
        summary: "Topics it may publish to: 'sensors/*'; {device} is the name. Repeatable.",
      },
      { name: 'subscribe', isVariadic: true, summary: "Topics it may read: 'commands/*'. May be repeated." },
      { name: 'any-key', isFlag: true, summary: 'It may also read messages that are for other devices.' },
      { ...EXPIRY, isPositional: false },
    ],
    async run(http, values, output) {
      const name = values.required('name')
      const body = {
        name,
        device: values.required('device'),
        publish: values.all('publish'),
        subscribe: values.all('subscribe'),
        any_key: values.has('any-key'),
        expiry: lifetimeOf(values) ?? 0n,
      }
      const created = (await http.succeed({ method: 'POST', path: ROUTE, body })) as { token: string }
      output.once(created.token, { name, token: created.token })
    },
  }),
  httpCommand({
    ...words(['list-devices', 'list-device', 'ld']),
    summary: 'List the tokens of devices.',
    arguments: [],
    async run(http, _values, output) {
      const found = (await http.succeed({ method: 'GET', path: ROUTE })) as readonly DeviceToken[]
      output.rows(
        found.map((token) => ({
          name: token.name,
          user: token.user,
          device: token.device,
          publish: list(token.publish),
          subscribe: list(token.subscribe),
          any_key: token.any_key,
          expires_at: time(token.expires_at === null ? null : BigInt(token.expires_at)),
        })),
      )
    },
  }),
  httpCommand({
    ...words(['delete-device', 'dd']),
    summary: 'Delete a token of devices: they cannot connect with it any more.',
    arguments: [NAME],
    async run(http, values, output) {
      const name = values.required('name')
      await http.succeed({ method: 'DELETE', path: `${ROUTE}/${encodeURIComponent(name)}` })
      output.done(`device token "${name}" deleted`, { name })
    },
  }),
]

/** @returns µs; null = it never expires. */
function lifetimeOf(values: Values): bigint | null {
  const text = values.all('expiry').join(' ')
  if (text === '') return null
  const lifetimeUs = parseDurationWithUnit(text)
  if (lifetimeUs === undefined) throw usageError(`expiry: found "${text}", expected "7 days", "12h" or "never"`)
  return lifetimeUs === UNLIMITED || lifetimeUs === 0n ? null : lifetimeUs
}
