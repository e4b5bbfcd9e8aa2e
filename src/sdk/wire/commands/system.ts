/** Ping, statistics, snapshot, cluster, option catalogue, clients (protocol section 7.2). */
import {
  type Codec,
  f32,
  list,
  listToEnd,
  longBytes,
  name,
  nothing,
  orEmpty,
  rest,
  struct,
  text,
  u8,
  u32,
  u64,
} from '../codec.ts'
import { CODE } from '../codes.ts'
import { clientDetails, clientRecord, nodeRecord } from '../records.ts'
import { command } from './command.ts'

export const ping = command(CODE.ping, nothing, nothing)

/** Always 64-bit on the wire. Servers before 0.7 end after `kernelVersion`; they are not spoken to. */
export const stats = struct({
  processId: u32,
  cpuUsage: f32,
  totalCpuUsage: f32,
  memoryUsage: u64,
  totalMemory: u64,
  availableMemory: u64,
  runTimeUs: u64,
  startTimeUs: u64,
  readBytes: u64,
  writtenBytes: u64,
  messagesSizeBytes: u64,
  streamsCount: u32,
  topicsCount: u32,
  partitionsCount: u32,
  segmentsCount: u32,
  messagesCount: u64,
  clientsCount: u32,
  consumerGroupsCount: u32,
  hostname: text,
  osName: text,
  osVersion: text,
  kernelVersion: text,
  serverVersion: text,
  /** major * 1,000,000 + minor * 1,000 + patch; 0 = unknown. */
  serverSemver: u32,
  cacheMetrics: list(
    u32,
    struct({ streamId: u32, topicId: u32, partitionId: u32, hits: u64, misses: u64, hitRatio: f32 }),
  ),
  threadsCount: u32,
  freeDiskSpace: u64,
  totalDiskSpace: u64,
})

export const getStats = command(CODE.getStats, nothing, stats)

/** Compression 1..6, then up to 255 kinds of snapshot; the reply is a ZIP file. */
export const getSnapshot = command(
  CODE.getSnapshot,
  struct({ compression: u8, types: list(u8, u8) }),
  struct({ zipBytes: rest }),
)

export const getClusterMetadata = command(
  CODE.getClusterMetadata,
  nothing,
  struct({ name: text, nodes: list(u32, nodeRecord) }),
)

export const OPTION_SCOPE = { topic: 1, stream: 2, user: 3 } as const

const optionScope: Codec<number> = {
  read(reader) {
    const scope = reader.u8()
    if (scope < OPTION_SCOPE.topic || scope > OPTION_SCOPE.user) {
      throw reader.fail('EDGE_COMMAND_MALFORMED', 'option scope 1, 2 or 3', `${scope}`)
    }
    return scope
  },
  write: (writer, scope) => writer.u8(scope),
}

export const describeOptions = command(
  CODE.describeOptions,
  struct({ scope: optionScope }),
  struct({ options: list(u32, struct({ key: name, kind: u8, defaultBytes: longBytes, description: text })) }),
)

export const getMe = command(CODE.getMe, nothing, clientDetails)
export const getClient = command(CODE.getClient, struct({ clientId: u32 }), orEmpty(clientDetails))
export const getClients = command(CODE.getClients, nothing, struct({ clients: listToEnd(clientRecord) }))
