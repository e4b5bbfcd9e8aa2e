/** The diagnosis archive: what an operator sends along with a question. No message, no secret is in it. */
import { readdirSync } from 'node:fs'
import { crc32, deflateRawSync } from 'node:zlib'
import { EdgeError } from '../../errors.ts'
import type { ClusterView, StatsView } from './api.ts'
import type { BrokerContext } from './context.ts'
import { dosTimeOf, encodeZip, type ZipEntry } from './zip.ts'

/** Iggy's numbers. Other compressions than these two are answered with deflate: an archive says itself what it is. */
const COMPRESSION_STORED = 1
const MAX_COMPRESSION = 6
const TYPE = { filesystem: 1, processes: 2, resources: 3, test: 4, logs: 5, config: 6, all: 100 } as const

export function createSnapshot(
  context: BrokerContext,
  stats: StatsView,
  cluster: ClusterView,
  request: { compression: number; types: readonly number[] },
): Uint8Array {
  const { compression } = request
  if (compression < 1 || compression > MAX_COMPRESSION)
    throw malformed(`compression 1..${MAX_COMPRESSION}`, compression)
  const types = typesOf(request.types)
  const { recentLog } = context.identity
  const sources: readonly (readonly [number, string, () => string])[] = [
    [TYPE.filesystem, 'filesystem.json', () => json(context.log.stats())],
    [
      TYPE.processes,
      'process.json',
      () =>
        json({ pid: process.pid, threads: stats.threadsCount, versions: process.versions, handles: countHandles() }),
    ],
    [TYPE.resources, 'resources.json', () => json({ stats, cluster, memory: process.memoryUsage() })],
    [TYPE.test, 'test.txt', () => 'test\n'],
    [TYPE.logs, 'findings.json', () => json(context.log.findings())],
    ...(recentLog === undefined ? [] : [[TYPE.logs, 'server_logs.txt', recentLog] as const]),
    [TYPE.config, 'config.toml', () => context.identity.config()],
  ]
  const entries = sources
    .filter(([type]) => types.has(type))
    .map(([, name, read]) => entryOf(name, read(), compression))
  return encodeZip(entries, dosTimeOf(context.clock.wallUs()))
}

/** `all` stands alone. */
function typesOf(types: readonly number[]): ReadonlySet<number> {
  const known = new Set<number>(Object.values(TYPE))
  const unknown = types.find((type) => !known.has(type))
  if (unknown !== undefined) throw malformed('snapshot types 1..6 or 100', unknown)
  if (!types.includes(TYPE.all)) return new Set(types)
  if (types.length > 1) throw malformed('snapshot type 100 alone', types.length)
  return known
}

function entryOf(name: string, text: string, compression: number): ZipEntry {
  const raw = Buffer.from(text)
  const isStored = compression === COMPRESSION_STORED
  return {
    name,
    dataBytes: isStored ? raw : deflateRawSync(raw),
    rawSize: raw.length,
    crc32: crc32(raw),
    method: isStored ? 'stored' : 'deflate',
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, (_, field) => (typeof field === 'bigint' ? field.toString() : field), 2)}\n`
}

function countHandles(): number {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return 0
  }
}

function malformed(expected: string, found: number): EdgeError {
  return new EdgeError('EDGE_COMMAND_MALFORMED', `snapshot: expected ${expected}, found ${found}`)
}
