/** What a connection of the protocol server needs around it, and frames of the classic generation to send it. */
import { silentLogger } from '../../src/logger.ts'
import { connectionLimitsOf, TCP_SETTINGS } from '../../src/runtime/server/defaults.ts'
import { createServerContext, type ServerContext } from '../../src/runtime/server/server-context.ts'
import { writeRequestFrame } from '../../src/sdk/wire/classic/frame.ts'
import { CODE } from '../../src/sdk/wire/codes.ts'
import type { Request } from '../../src/sdk/wire/commands/index.ts'
import { Writer } from '../../src/sdk/wire/writer.ts'
import { defaultsOf } from '../../src/setting.ts'
import { type BrokerWorld, batchOf, createBrokerWorld } from './broker-world.ts'

export const frameOf = (request: Request): Buffer => {
  const writer = new Writer()
  writeRequestFrame(writer, request)
  return Buffer.from(writer.toBytes())
}

export const LOGIN = frameOf({
  code: CODE.loginUser,
  body: { username: 'iggy', password: 'iggy', version: '', context: '' },
})
export const PING = frameOf({ code: CODE.ping, body: null })
export const JOIN = frameOf({ code: CODE.joinConsumerGroup, body: { stream: 's', topic: 't', group: 'g' } })
export const POLL = frameOf({
  code: CODE.pollMessages,
  body: {
    consumer: { kind: 'consumer', id: 1 },
    stream: 's',
    topic: 't',
    partitionId: 0,
    strategy: { kind: 'first' },
    count: 1000,
    autoCommit: false,
  },
})
export const send = (text = 'a'): Buffer =>
  frameOf({
    code: CODE.sendMessages,
    body: { stream: 's', topic: 't', partitioning: { kind: 'partition', partitionId: 0 }, batch: batchOf([0n, text]) },
  })

export interface ServerWorld {
  readonly world: BrokerWorld
  readonly server: ServerContext
  /** The topic that the frames are about. */
  createTopic(): Promise<void>
}

export async function createServerWorld(maxInFlightBytes = 1_000_000): Promise<ServerWorld> {
  const world = await createBrokerWorld()
  const { broker, log, clock } = world
  const server = createServerContext({
    broker,
    log,
    clock,
    logger: silentLogger,
    limits: connectionLimitsOf(defaultsOf(TCP_SETTINGS)),
    maxInFlightBytes,
    serverVersion: '0.9.0',
  })
  return {
    world,
    server,
    async createTopic() {
      await broker.createStream(world.root, 's')
      await broker.createTopic(world.root, 's', { name: 't', partitionCount: 1, options: {} })
    },
  }
}
