/** What the `iggy` command line is asked to do, one scenario a command. */
import { readFileSync } from 'node:fs'
import { expect, expectMatch, type Iggy, property, tableRows } from './iggy.ts'

export type CliScenario = (iggy: Iggy) => Promise<void>

/** The text of an error, or over HTTP its name in the answer's JSON. */
const MISSING = /not.found/i
const EXISTS = /already.exists/i

async function system(iggy: Iggy): Promise<void> {
  expectMatch(await iggy.ok('ping', '--count', '2'), /Ping statistics for 2 ping commands/)
  const stats = await iggy.ok('stats', '--output', 'json')
  const { process_id } = JSON.parse(stats.slice(stats.indexOf('{'), stats.lastIndexOf('}') + 1)) as {
    process_id: number
  }
  expect(process_id > 0, `the server has a process id: ${stats}`)
  expectMatch(await iggy.ok('cluster', 'metadata'), /leader\s*\| healthy/)
  const snapshot = property(await iggy.ok('snapshot', '--out-dir', iggy.home), 'File Path')
  expect(snapshot !== undefined, 'the snapshot has a path')
  expect(readFileSync(snapshot).toString('latin1', 0, 2) === 'PK', 'the snapshot is an archive')
  if (iggy.transport === 'http') return
  const transports: Record<string, string> = { tcp: 'TCP', websocket: 'WebSocket', quic: 'QUIC' }
  expectMatch(await iggy.ok('me'), new RegExp(`Transport \\| ${transports[iggy.transport]}`))
  const client = tableRows(await iggy.ok('client', 'list')).at(1)?.[0]
  expect(client !== undefined, 'a client is listed')
}

async function streams(iggy: Iggy): Promise<void> {
  await iggy.ok('stream', 'create', 'orders')
  await iggy.fails(EXISTS, 'stream', 'create', 'orders')
  expectMatch(await iggy.ok('stream', 'list', '--list-mode', 'list'), /\|orders\|/)
  const details = await iggy.ok('stream', 'get', 'orders')
  expect(property(details, 'Stream name') === 'orders', details)
  await iggy.ok('stream', 'update', 'orders', 'orders-renamed')
  await iggy.ok('stream', 'purge', 'orders-renamed')
  await iggy.ok('stream', 'delete', 'orders-renamed')
  expectMatch(await iggy.ok('stream', 'get', 'orders-renamed'), MISSING)
}

async function topics(iggy: Iggy): Promise<void> {
  await iggy.ok('stream', 'create', 'topics')
  await iggy.ok('topic', 'create', 'topics', 'events', '3', 'none', '1day', '2h')
  await iggy.fails(EXISTS, 'topic', 'create', 'topics', 'events', '3', 'none')
  const details = await iggy.ok('topic', 'get', 'topics', 'events')
  expect(property(details, 'Partitions count') === '3', details)
  expectMatch(details, /Message expiry\s*\| 1day 2h/)
  expectMatch(await iggy.ok('topic', 'list', 'topics', '--list-mode', 'list'), /events/)
  await iggy.ok('topic', 'update', 'topics', 'events', 'readings', 'none', 'none')
  const renamed = await iggy.ok('topic', 'get', 'topics', 'readings')
  expect(property(renamed, 'Message expiry') === 'unlimited', renamed)
  await iggy.ok('topic', 'purge', 'topics', 'readings')
  await iggy.ok('topic', 'delete', 'topics', 'readings')
  expectMatch(await iggy.ok('topic', 'get', 'topics', 'readings'), MISSING)
}

async function partitions(iggy: Iggy): Promise<void> {
  await withTopic(iggy, 'partitions', 1)
  const count = async () => property(await iggy.ok('topic', 'get', 'partitions', 'events'), 'Partitions count')
  await iggy.ok('partition', 'create', 'partitions', 'events', '3')
  expect((await count()) === '4', 'three partitions more')
  await iggy.ok('partition', 'delete', 'partitions', 'events', '2')
  expect((await count()) === '2', 'two partitions less')
}

async function messages(iggy: Iggy): Promise<void> {
  await withTopic(iggy, 'messages', 4)
  await iggy.ok(
    'message',
    'send',
    '--partition-id',
    '0',
    '--headers',
    'unit:string:celsius',
    'messages',
    'events',
    'a',
    'b',
  )
  await iggy.ok('message', 'send', '--partition-id', '0', 'messages', 'events', 'c')
  const payloads = async (...words: string[]) => {
    const output = await iggy.ok('message', 'poll', ...words)
    return tableRows(output).flatMap((row) => (/^\d+$/.test(row[0] ?? '') ? [row[4]] : []))
  }
  const expectPayloads = async (expected: string, ...words: string[]) => {
    const found = (await payloads(...words)).join(' ')
    expect(found === expected, `iggy message poll ${words.join(' ')}: expected ${expected}, found ${found}`)
  }
  const place = ['messages', 'events', '0']
  await expectPayloads('a b c', '--first', '--message-count', '10', ...place)
  await expectPayloads('b c', '--offset', '1', '--message-count', '10', ...place)
  await expectPayloads('c', '--last', '--message-count', '1', ...place)
  await expectPayloads('a', '--next', '--message-count', '1', '--auto-commit', '--consumer', '9', ...place)
  await expectPayloads('b', '--next', '--message-count', '1', '--auto-commit', '--consumer', '9', ...place)
  expectMatch(await iggy.ok('message', 'poll', '--first', '--show-headers', ...place), /Header: unit[\s\S]*celsius/)
  // As on Iggy: key-1 lands in partition 1 of 4.
  await iggy.ok('message', 'send', '--message-key', 'key-1', 'messages', 'events', 'by-key')
  await expectPayloads('by-key', '--first', '--message-count', '10', 'messages', 'events', '1')
}

async function consumerGroups(iggy: Iggy): Promise<void> {
  await withTopic(iggy, 'groups', 2)
  await iggy.ok('consumer-group', 'create', 'groups', 'events', 'processors')
  await iggy.fails(EXISTS, 'consumer-group', 'create', 'groups', 'events', 'processors')
  const details = await iggy.ok('consumer-group', 'get', 'groups', 'events', 'processors')
  expect(property(details, 'Partitions count') === '2', details)
  expect(property(details, 'Members count') === '0', details)
  expectMatch(await iggy.ok('consumer-group', 'list', 'groups', 'events'), /processors/)
  await iggy.ok('consumer-group', 'delete', 'groups', 'events', 'processors')
  expectMatch(await iggy.ok('consumer-group', 'get', 'groups', 'events', 'processors'), MISSING)
}

async function consumerOffsets(iggy: Iggy): Promise<void> {
  await withTopic(iggy, 'offsets', 1)
  await iggy.ok('message', 'send', '--partition-id', '0', 'offsets', 'events', 'a', 'b', 'c')
  const place = ['offsets', 'events', '0']
  expectMatch(await iggy.ok('consumer-offset', 'get', '5', ...place), MISSING)
  await iggy.ok('consumer-offset', 'set', '5', ...place, '1')
  const stored = await iggy.ok('consumer-offset', 'get', '5', ...place)
  expect(property(stored, 'Stored offset') === '1' && property(stored, 'Current offset') === '2', stored)
  await iggy.ok('consumer-group', 'create', 'offsets', 'events', 'processors')
  expectMatch(await iggy.ok('consumer-offset', 'get', 'processors', ...place, '--kind', 'consumer-group'), MISSING)
}

async function users(iggy: Iggy): Promise<void> {
  await iggy.ok('stream', 'create', 'of-users')
  await iggy.ok('user', 'create', 'reader', 'secret-1', '--global-permissions', 'read_streams,read_topics')
  await iggy.fails(EXISTS, 'user', 'create', 'reader', 'secret-1')
  expectMatch(await iggy.ok('user', 'list'), /reader/)
  const reader = (password: string) => ['--username', 'reader', '--password', password]
  const listed = await iggy.runWith(reader('secret-1'), 'stream', 'list')
  expect(listed.code === 0 && listed.output.includes('of-users'), listed.output)
  const denied = await iggy.runWith(reader('secret-1'), 'stream', 'create', 'not-allowed')
  expect(denied.code !== 0 && /unauthorized|403/i.test(denied.output), denied.output)
  await iggy.ok('user', 'password', 'reader', 'secret-1', 'secret-2')
  const old = await iggy.runWith(reader('secret-1'), 'stream', 'list')
  expect(old.code !== 0, `the old password is refused: ${old.output}`)
  await iggy.ok('user', 'permissions', 'reader', '--global-permissions', 'm_str')
  const allowed = await iggy.runWith(reader('secret-2'), 'stream', 'create', 'allowed')
  expect(allowed.code === 0, allowed.output)
  await iggy.ok('user', 'status', 'reader', 'inactive')
  const inactive = await iggy.runWith(reader('secret-2'), 'stream', 'list')
  expect(inactive.code !== 0, `an inactive user is refused: ${inactive.output}`)
  await iggy.ok('user', 'name', 'reader', 'renamed')
  expectMatch(await iggy.ok('user', 'get', 'renamed'), /inactive/)
  await iggy.ok('user', 'delete', 'renamed')
  expectMatch(await iggy.ok('user', 'get', 'renamed'), MISSING)
}

async function tokens(iggy: Iggy): Promise<void> {
  const created = await iggy.ok('pat', 'create', 'gateway', '1day')
  const token = /Token: (\S+)/.exec(created)?.[1]
  expect(token !== undefined, created)
  expectMatch(await iggy.ok('pat', 'list'), /gateway/)
  const used = await iggy.runWith(['--token', token], 'stream', 'create', 'by-token')
  expect(used.code === 0, used.output)
  // 0.14.0 looks for the token in the desktop's keyring before it asks the server to delete it.
  if (iggy.version === '0.14.0') return
  await iggy.ok('pat', 'delete', 'gateway')
  const late = await iggy.runWith(['--token', token], 'stream', 'list')
  expect(late.code !== 0, `a deleted token is refused: ${late.output}`)
}

async function errors(iggy: Iggy): Promise<void> {
  await iggy.fails(MISSING, 'stream', 'delete', 'no-such-stream')
  await iggy.fails(MISSING, 'topic', 'delete', 'no-such-stream', 'no-such-topic')
  await iggy.fails(MISSING, 'topic', 'create', 'no-such-stream', 'events', '1', 'none')
  await withTopic(iggy, 'errors', 1)
  await iggy.fails(MISSING, 'message', 'send', '--partition-id', '0', 'errors', 'no-such-topic', 'x')
  await iggy.fails(MISSING, 'message', 'poll', '--first', 'errors', 'events', '7')
  await iggy.fails(MISSING, 'consumer-group', 'delete', 'errors', 'events', 'no-such-group')
  const wrong = await iggy.runWith(['--username', 'iggy', '--password', 'wrong'], 'stream', 'list')
  expect(wrong.code !== 0, `a wrong password is refused: ${wrong.output}`)
}

async function withTopic(iggy: Iggy, stream: string, partitionCount: number): Promise<void> {
  await iggy.ok('stream', 'create', stream)
  await iggy.ok('topic', 'create', stream, 'events', String(partitionCount), 'none')
}

export const CLI_PROGRAM: Readonly<Record<string, CliScenario>> = {
  system,
  streams,
  topics,
  partitions,
  messages,
  'consumer-groups': consumerGroups,
  'consumer-offsets': consumerOffsets,
  users,
  tokens,
  errors,
}
