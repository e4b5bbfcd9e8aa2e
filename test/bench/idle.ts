/**
 * What things cost while nothing happens: private memory for topics, for groups, and for clients that are connected, logged
 * in and members of a group; each step by itself. To be kept: a client within 20 KiB, all together within 60 MB.
 */

import { frameOf, type RawClient } from '../../src/runtime/bench/raw-client.ts'
import { CODE } from '../../src/sdk/wire/codes.ts'
import { decodeResponse, type Request } from '../../src/sdk/wire/commands/index.ts'
import { loginFrame, openRawClient } from './support/load.ts'
import { type MeasuredServer, memoryOf, startEdgeServer } from './support/servers.ts'

const STREAMS = 10
const TOPICS = 1000
const GROUPS = 200
const CLIENTS = 1000
/** Until the collector and the allocator have given back what the step itself took. */
const SETTLE_MS = 10_000

const kib = (bytes: number) => `${(bytes / 1024).toFixed(1)} KiB`
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
const ask = (client: RawClient, request: Request) => client.ask(frameOf(request))

export async function benchIdle(): Promise<void> {
  console.log(`\nprivate memory of what is idle: ${TOPICS} topics, ${GROUPS} groups, ${CLIENTS} clients`)
  await using server = await startEdgeServer({ EDGE_TCP__MAX_CONNECTIONS: String(2 * CLIENTS) })
  const admin = await openRawClient(server.host, server.port)
  await admin.ask(loginFrame(server.username, server.password))
  const before = await settled(server)
  await createTopics(admin)
  const withTopics = await settled(server)
  await createGroups(admin)
  const withGroups = await settled(server)
  const clients = await connectClients(server, admin)
  const withClients = await settled(server)
  console.log(`  before                ${megabytes(before)}`)
  console.log(`  a topic               ${kib((withTopics - before) / TOPICS)}`)
  console.log(`  a group               ${kib((withGroups - withTopics) / GROUPS)}`)
  console.log(`  a client              ${kib((withClients - withGroups) / CLIENTS)}   (20 KiB)`)
  console.log(`  all together          ${megabytes(withClients - before)}   (60 MB)`)
  for (const client of [...clients, admin]) client.close()
}

async function settled(server: MeasuredServer): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  return memoryOf(server.pid).privateBytes
}

async function createTopics(admin: RawClient): Promise<void> {
  for (let stream = 0; stream < STREAMS; stream++) {
    await ask(admin, { code: CODE.createStream, body: { name: `stream-${stream}`, options: [] } })
    for (let topic = 0; topic < TOPICS / STREAMS; topic++) {
      const body = { stream, name: `topic-${topic}`, partitionsCount: 1, options: [], replicationFactor: 1 }
      await ask(admin, { code: CODE.createTopic, body })
    }
  }
}

async function createGroups(admin: RawClient): Promise<void> {
  for (let group = 0; group < GROUPS; group++) {
    await ask(admin, { code: CODE.createConsumerGroup, body: { ...placeOf(group), name: `group-${group}` } })
  }
}

/** With a token: a thousand passwords would take a minute to check. */
async function connectClients(server: MeasuredServer, admin: RawClient): Promise<RawClient[]> {
  const answer = await ask(admin, {
    code: CODE.createPersonalAccessToken,
    body: { name: 'idle-clients', expiryUs: 0n },
  })
  const { token } = decodeResponse('classic', CODE.createPersonalAccessToken, answer)
  const clients: RawClient[] = []
  for (let index = 0; index < CLIENTS; index++) {
    const client = await openRawClient(server.host, server.port)
    await ask(client, { code: CODE.loginWithPersonalAccessToken, body: { token } })
    const group = index % GROUPS
    await ask(client, { code: CODE.joinConsumerGroup, body: { ...placeOf(group), group: `group-${group}` } })
    clients.push(client)
  }
  return clients
}

const placeOf = (group: number) => ({ stream: group % STREAMS, topic: Math.floor(group / STREAMS) })
