/** What the server says of itself: ping, me, stats, options, client, cluster, snapshot. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EdgeError, toEdgeError } from '../../../errors.ts'
import type { ServerStats } from '../../../sdk/index.ts'
import { headerKindName, headerScalarOf } from '../../../sdk/wire/header-values.ts'
import { type ClientDetails, type ClientRecord, NOT_LOGGED_IN } from '../../../sdk/wire/records.ts'
import type { Command } from '../command.ts'
import { usageError } from '../grammar.ts'
import { bytes, type Cell, duration, nested, type Row, Shown, time } from '../output.ts'
import { serverCommand } from '../server-command.ts'
import { commandWords, VERBS } from '../words.ts'
import { present } from './arguments.ts'

const MAX_PINGS = 1000
const MAX_U32 = 2 ** 32 - 1
const TRANSPORTS = ['', 'tcp', 'quic', 'http', 'websocket']
const ROLES = ['leader', 'follower']
const NODE_STATES = ['healthy', 'starting', 'stopping', 'unreachable', 'maintenance']
/** Numbers of Iggy's protocol. */
const COMPRESSIONS = { stored: 1, deflated: 2, bzip2: 3, zstd: 4, lzma: 5, xz: 6 } as const
const SNAPSHOT_TYPES = {
  filesystem_overview: 1,
  process_list: 2,
  resource_usage: 3,
  test: 4,
  server_logs: 5,
  server_config: 6,
  all: 100,
} as const

export const SYSTEM_COMMANDS: readonly Command[] = [
  serverCommand({
    path: ['ping'],
    summary: 'Ask whether the server answers, and how fast.',
    arguments: [{ name: 'count', aliases: ['c'], summary: 'How often; default once.' }],
    async run(client, values, output, { signal }) {
      const count = values.integer('count', 1, { min: 1, max: MAX_PINGS })
      const rows: Row[] = []
      for (let i = 1; i <= count && !signal.aborted; i++) {
        const startMs = performance.now()
        await client.system.ping()
        rows.push({ ping: i, milliseconds: Number((performance.now() - startMs).toFixed(2)) })
      }
      output.rows(rows)
    },
  }),
  serverCommand({
    path: ['me'],
    summary: 'Show this connection as the server sees it.',
    arguments: [],
    run: async (client, _values, output) => output.row(clientDetails(await client.system.me())),
  }),
  serverCommand({
    path: ['stats'],
    summary: 'Show the statistics of the server.',
    arguments: [],
    run: async (client, _values, output) => output.row(statsRow(await client.system.stats())),
  }),
  serverCommand({
    path: ['options'],
    summary: 'List the options that topics, streams or users may have.',
    arguments: [{ name: 'scope', isPositional: true, summary: 'topic (default), stream or user.' }],
    async run(client, values, output) {
      const scope = values.choice('scope', 'topic', ['topic', 'stream', 'user'])
      const options = await client.system.describeOptions(scope)
      output.rows(
        options.map(({ key, kind, defaultBytes, description }) => ({
          key,
          kind: headerKindName(kind) ?? String(kind),
          default: defaultOf(kind, defaultBytes),
          description,
        })),
      )
    },
  }),
  serverCommand({
    ...commandWords(['client', 'c'], VERBS.list),
    summary: 'List who is connected.',
    arguments: [],
    run: async (client, _values, output) => output.rows((await client.system.clients()).map(clientRow)),
  }),
  serverCommand({
    ...commandWords(['client', 'c'], VERBS.get),
    summary: 'Show a connected client and its consumer groups.',
    arguments: [{ name: 'client', isPositional: true, isRequired: true, summary: 'Id, as client list shows it.' }],
    async run(client, values, output) {
      const id = values.integer('client', 0, { min: 0, max: MAX_U32 })
      output.row(clientDetails(present(await client.system.client(id), 'EDGE_CLIENT_NOT_FOUND', `client ${id}`)))
    },
  }),
  serverCommand({
    ...commandWords(['cluster', 'cl'], ['metadata', 'm']),
    summary: 'Show the nodes: an edge is one.',
    arguments: [],
    async run(client, _values, output) {
      const { name, nodes } = await client.system.cluster()
      output.rows(
        nodes.map((node) => ({
          cluster: name,
          node: node.name,
          ip: node.ip,
          tcp: node.tcpPort,
          quic: node.quicPort,
          http: node.httpPort,
          websocket: node.websocketPort,
          role: ROLES[node.role] ?? node.role,
          status: NODE_STATES[node.status] ?? node.status,
        })),
      )
    },
  }),
  serverCommand({
    path: ['snapshot'],
    summary: 'Save what the server knows of itself as a ZIP file, for a report.',
    arguments: [
      { name: 'compression', aliases: ['c'], summary: `One of ${Object.keys(COMPRESSIONS).join(', ')}.` },
      {
        name: 'snapshot-types',
        aliases: ['s'],
        isVariadic: true,
        summary: `Of ${Object.keys(SNAPSHOT_TYPES).join(', ')}.`,
      },
      { name: 'out-dir', aliases: ['o'], summary: 'Folder to write into; default this one.' },
    ],
    async run(client, values, output) {
      const compression = numberIn('compression', COMPRESSIONS, values.text('compression') ?? 'deflated')
      const given = values.all('snapshot-types').flatMap((each) => each.split(','))
      const types = (given.length === 0 ? ['all'] : given).map((each) =>
        numberIn('snapshot-types', SNAPSHOT_TYPES, each),
      )
      const zipBytes = await client.system.snapshot(compression, types)
      const name = `snapshot_${new Date().toISOString().replace(/[:.]/g, '-')}.zip`
      const path = join(values.text('out-dir') ?? '.', name)
      await writeFile(path, zipBytes).catch((cause: unknown) => {
        throw new EdgeError('EDGE_IO', `${path} cannot be written: ${toEdgeError(cause).message}`, { cause })
      })
      output.done(`${path} written, ${zipBytes.length} bytes`, { path, size: bytes(zipBytes.length) })
    },
  }),
]

function clientRow(client: ClientRecord): Row {
  return {
    id: client.clientId,
    user: client.userId === NOT_LOGGED_IN ? null : client.userId,
    transport: TRANSPORTS[client.transport] ?? String(client.transport),
    address: client.address,
    groups: client.groupsCount,
  }
}

function clientDetails(client: ClientDetails): Row {
  const groups = client.groups.map(({ streamId, topicId, groupId }) => ({
    stream: streamId,
    topic: topicId,
    group: groupId,
  }))
  const text = groups.map(({ stream, topic, group }) => `stream ${stream} topic ${topic} group ${group}`).join('; ')
  return { ...clientRow(client), groups: new Shown(nested(groups).value, text === '' ? 'none' : text) }
}

function statsRow(stats: ServerStats): Row {
  return {
    server: `${stats.serverVersion} on ${stats.hostname}, process ${stats.processId}`,
    system: `${stats.osName} ${stats.osVersion}, kernel ${stats.kernelVersion}`,
    started_at: time(stats.startTimeUs),
    run_time: duration(stats.runTimeUs),
    cpu_usage: percent(stats.cpuUsage),
    total_cpu_usage: percent(stats.totalCpuUsage),
    memory_usage: bytes(stats.memoryUsage),
    available_memory: bytes(stats.availableMemory),
    total_memory: bytes(stats.totalMemory),
    free_disk_space: bytes(stats.freeDiskSpace),
    total_disk_space: bytes(stats.totalDiskSpace),
    read_bytes: bytes(stats.readBytes),
    written_bytes: bytes(stats.writtenBytes),
    messages_size: bytes(stats.messagesSizeBytes),
    messages: stats.messagesCount,
    streams: stats.streamsCount,
    topics: stats.topicsCount,
    partitions: stats.partitionsCount,
    segments: stats.segmentsCount,
    clients: stats.clientsCount,
    consumer_groups: stats.consumerGroupsCount,
  }
}

const percent = (value: number): Shown => new Shown(value, `${value.toFixed(1)} %`)

function defaultOf(kind: number, valueBytes: Uint8Array): Cell {
  const name = headerKindName(kind)
  if (name === undefined || valueBytes.length === 0) return null
  const value = headerScalarOf({ kind: name, bytes: valueBytes })
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value
}

function numberIn(name: string, table: Readonly<Record<string, number>>, word: string): number {
  const key = word.trim().toLowerCase().replaceAll('-', '_')
  const number = Object.hasOwn(table, key) ? table[key] : undefined
  if (number === undefined) throw usageError(`${name}: found "${word}", expected ${Object.keys(table).join(', ')}`)
  return number
}
