/** One request and one response of every command, with every optional part present. */
import type { CommandCode } from '../../../../../src/sdk/wire/codes.ts'
import type { RequestBody, ResponseBody } from '../../../../../src/sdk/wire/commands/index.ts'
import { headerKindCode } from '../../../../../src/sdk/wire/header-values.ts'
import { encodeRecords, type OutgoingMessage } from '../../../../../src/sdk/wire/messages.ts'
import type { Option } from '../../../../../src/sdk/wire/options.ts'
import type { Permissions } from '../../../../../src/sdk/wire/permissions.ts'
import { storedBatch } from './batches.ts'

type Samples = { readonly [C in CommandCode]: { readonly request: RequestBody<C>; readonly response: ResponseBody<C> } }

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const option = (key: string, kind: 'string' | 'uint64', valueBytes: Uint8Array): Option => ({
  key,
  kind: headerKindCode(kind),
  valueBytes,
})

const permissions: Permissions = {
  manageServers: false,
  readServers: true,
  manageUsers: false,
  readUsers: true,
  manageStreams: false,
  readStreams: true,
  manageTopics: false,
  readTopics: true,
  pollMessages: true,
  sendMessages: false,
  streams: [
    {
      streamId: 3,
      manageStream: true,
      readStream: false,
      manageTopics: true,
      readTopics: false,
      pollMessages: true,
      sendMessages: false,
      topics: [
        { topicId: 4, manageTopic: true, readTopic: false, pollMessages: true, sendMessages: false },
        { topicId: 5, manageTopic: false, readTopic: true, pollMessages: false, sendMessages: true },
      ],
    },
    {
      streamId: 9,
      manageStream: false,
      readStream: true,
      manageTopics: false,
      readTopics: true,
      pollMessages: false,
      sendMessages: true,
      topics: [],
    },
  ],
}

const messages: readonly OutgoingMessage[] = [
  { payload: bytes('first'), id: 11n, originUs: 1_700_000_000_000_000n },
  { payload: bytes(''), id: (1n << 127n) | 1n, originUs: 1_700_000_000_000_001n },
  { payload: bytes('third'), userHeaders: bytes('headers'), id: 13n, originUs: 1_700_000_000_000_900n },
]

const topicTarget = { stream: 'sensors', topic: 7 }
const groupTarget = { ...topicTarget, group: 'readers' }
const consumer = { kind: 'group', id: 'readers' } as const
const offsetTarget = { consumer, ...topicTarget, partitionId: 2 }
const pollRequest = {
  consumer,
  ...topicTarget,
  partitionId: null,
  strategy: { kind: 'timestamp', timestampUs: 1_700_000_000_000_000n },
  count: 100,
  autoCommit: true,
} as const
const pollResponse = {
  partitionId: 2,
  currentOffset: 102n,
  messageCount: 3,
  batches: [storedBatch(messages, { idSeed: 0n })],
}
const options = [option('durability', 'string', bytes('persisted'))]
const stream = {
  id: 1,
  createdAtUs: 5n,
  topicsCount: 1,
  sizeBytes: 6n,
  messagesCount: 7n,
  name: 'sensors',
  options,
}
const topic = {
  id: 2,
  createdAtUs: 5n,
  partitionsCount: 1,
  messageExpiryUs: 0xffff_ffff_ffff_ffffn,
  compression: 1,
  maxTopicSizeBytes: 0xffff_ffff_ffff_ffffn,
  replicationFactor: 1,
  sizeBytes: 6n,
  messagesCount: 7n,
  name: 'readings',
  explicitOptions: options,
  derivedOptions: options,
}
const partition = { id: 0, createdAtUs: 5n, segmentsCount: 1, currentOffset: 4n, sizeBytes: 6n, messagesCount: 5n }
const topicDetails = { ...topic, partitions: [partition, { ...partition, id: 1 }] }
const group = { id: 3, partitionsCount: 2, membersCount: 1, name: 'readers' }
const client = { clientId: 77, userId: 0, transport: 1, address: '127.0.0.1:4000', groupsCount: 1 }
const clientDetails = { ...client, groups: [{ streamId: 1, topicId: 2, groupId: 3 }] }
const user = { id: 4, createdAtUs: 5n, status: 1, username: 'reader', options: [] }
const userDetails = { ...user, permissions }
const topicFields = {
  name: 'readings',
  replicationFactor: 1,
  options: [
    { key: 'compression_algorithm', kind: headerKindCode('uint8'), valueBytes: Uint8Array.of(2) },
    option('message_expiry', 'uint64', Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)),
    option('max_topic_size', 'uint64', Uint8Array.of(8, 7, 6, 5, 4, 3, 2, 1)),
  ],
}
const session = { clientId: 1n << 100n, session: 71n, metadataWatermark: 9n }
const node = {
  name: 'edge',
  ip: '127.0.0.1',
  tcpPort: 8090,
  quicPort: 8080,
  httpPort: 3000,
  websocketPort: 8092,
  role: 0,
  status: 0,
}
const route = { ...session, node }

export const SAMPLES: Samples = {
  1: { request: null, response: null },
  10: {
    request: null,
    response: {
      processId: 1,
      cpuUsage: 0.5,
      totalCpuUsage: 0.25,
      memoryUsage: 2n,
      totalMemory: 3n,
      availableMemory: 4n,
      runTimeUs: 5n,
      startTimeUs: 6n,
      readBytes: 7n,
      writtenBytes: 8n,
      messagesSizeBytes: 9n,
      streamsCount: 10,
      topicsCount: 11,
      partitionsCount: 12,
      segmentsCount: 13,
      messagesCount: 14n,
      clientsCount: 15,
      consumerGroupsCount: 16,
      hostname: 'gateway',
      osName: 'Linux',
      osVersion: '12',
      kernelVersion: '6.1',
      serverVersion: '0.1.0',
      serverSemver: 1000,
      cacheMetrics: [{ streamId: 1, topicId: 2, partitionId: 3, hits: 4n, misses: 5n, hitRatio: 0.5 }],
      threadsCount: 1,
      freeDiskSpace: 17n,
      totalDiskSpace: 18n,
    },
  },
  11: { request: { compression: 2, types: [1, 4, 5] }, response: { zipBytes: bytes('PK..') } },
  12: { request: null, response: { name: 'single-node', nodes: [node] } },
  13: {
    request: { scope: 1 },
    response: { options: [{ key: 'durability', kind: 2, defaultBytes: bytes('replicated'), description: 'promise' }] },
  },
  14: { request: session, response: null },
  20: { request: null, response: clientDetails },
  21: { request: { clientId: 77 }, response: clientDetails },
  22: { request: null, response: { clients: [client, { ...client, clientId: 78 }] } },
  31: { request: { user: 'reader' }, response: userDetails },
  32: { request: null, response: { users: [user, { ...user, id: 5 }] } },
  33: {
    request: { username: 'reader', password: 'secret', status: 1, permissions, options: [] },
    response: userDetails,
  },
  34: { request: { user: 4 }, response: null },
  35: { request: { user: 4, username: 'writer', status: 2, options: [] }, response: null },
  36: { request: { user: 4, permissions }, response: null },
  37: { request: { user: 4, currentPassword: 'secret', newPassword: 'better' }, response: null },
  38: { request: { username: 'iggy', password: 'iggy', version: '0.10.0', context: '' }, response: { userId: 0 } },
  39: { request: null, response: null },
  40: {
    request: {
      protocolVersion: 11264,
      sdkName: 'rust-sdk',
      sdkVersion: '0.11.0',
      credentials: { kind: 'password', username: 'iggy', password: 'iggy' },
      context: '',
    },
    response: { userId: 0, session: 3n, protocolVersion: 11264, serverVersion: '0.1.0' },
  },
  41: {
    request: null,
    response: {
      tokens: [
        { name: 'ci', expiryAtUs: 0n },
        { name: 'page', expiryAtUs: 9n },
      ],
    },
  },
  42: { request: { name: 'ci', expiryUs: 60n }, response: { token: 'token-text' } },
  43: { request: { name: 'ci' }, response: null },
  44: { request: { token: 'token-text' }, response: { userId: 0 } },
  100: { request: pollRequest, response: pollResponse },
  101: {
    request: {
      ...topicTarget,
      partitioning: { kind: 'key', keyView: bytes('device-1') },
      batch: encodeRecords(messages),
    },
    response: { confirmations: [{ streamId: 1, topicId: 2, partitionId: 3, baseOffset: 100n }] },
  },
  102: { request: { ...topicTarget, partitionId: 2, isFsync: true }, response: null },
  103: { request: pollRequest, response: route },
  104: {
    request: { ...pollRequest, strategy: { kind: 'offset', offset: 5n }, partitionId: 1 },
    response: pollResponse,
  },
  120: { request: offsetTarget, response: { partitionId: 2, currentOffset: 9n, storedOffset: 4n } },
  121: { request: { ...offsetTarget, offset: 41n, ack: 1 }, response: null },
  122: { request: { ...offsetTarget, ack: 1 }, response: null },
  123: { request: offsetTarget, response: route },
  200: { request: { stream: 1 }, response: { ...stream, topics: [topic, { ...topic, id: 3 }] } },
  201: { request: null, response: { streams: [stream, { ...stream, id: 2 }] } },
  202: { request: { name: 'sensors', options: [] }, response: stream },
  203: { request: { stream: 1 }, response: null },
  204: { request: { stream: 1, name: 'meters', options: [] }, response: null },
  205: { request: { stream: 1 }, response: null },
  300: { request: topicTarget, response: topicDetails },
  301: { request: { stream: 1 }, response: { topics: [topic, { ...topic, id: 3 }] } },
  302: { request: { stream: 1, partitionsCount: 2, ...topicFields }, response: topicDetails },
  303: { request: topicTarget, response: null },
  304: { request: { ...topicTarget, ...topicFields }, response: null },
  305: { request: topicTarget, response: null },
  402: { request: { ...topicTarget, count: 3 }, response: null },
  403: { request: { ...topicTarget, count: 3 }, response: null },
  503: { request: { ...topicTarget, partitionId: 2, segmentsCount: 1 }, response: null },
  600: {
    request: groupTarget,
    response: {
      ...group,
      members: [
        { id: 0, partitions: [0, 1] },
        { id: 1, partitions: [] },
      ],
    },
  },
  601: { request: topicTarget, response: { groups: [group, { ...group, id: 4 }] } },
  602: { request: { ...topicTarget, name: 'readers' }, response: group },
  603: { request: groupTarget, response: null },
  604: { request: groupTarget, response: null },
  605: { request: groupTarget, response: null },
  606: { request: groupTarget, response: { generation: 3n, partitions: [0, 2] } },
}
