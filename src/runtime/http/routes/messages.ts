/** Send, poll and flush. */
import { EdgeError } from '../../../errors.ts'
import type { Receipt } from '../../../log/index.ts'
import type { Consumer, PollingStrategy } from '../../../sdk/wire/primitives.ts'
import type { PollRequest } from '../../broker/api.ts'
import { type HttpRequest, json, type Reply, type Route, type RouteContext } from '../http-types.ts'
import { packMessages, viewPoll } from '../message-records.ts'
import { sendBody } from '../message-shapes.ts'
import { parseIdentifier, pathIdentifier, pathText, pathU32 } from '../path-values.ts'
import type { Query } from '../query.ts'
import { wrongPath, wrongQuery } from '../rejection.ts'
import { viewSendResult } from '../views.ts'
import { readConsistency } from './consistency.ts'
import { DEFAULT_CONSUMER } from './offsets.ts'

const DEFAULT_COUNT = 10
const STRATEGIES: Readonly<Record<string, PollingStrategy['kind']>> = {
  offset: 'offset',
  o: 'offset',
  timestamp: 'timestamp',
  t: 'timestamp',
  first: 'first',
  f: 'first',
  last: 'last',
  l: 'last',
  next: 'next',
  n: 'next',
}

export function messageRoutes({ broker, clock }: RouteContext): readonly Route[] {
  const streamOf = (request: HttpRequest) => pathIdentifier(request, 'stream_id')
  const topicOf = (request: HttpRequest) => pathIdentifier(request, 'topic_id')

  async function send(request: HttpRequest): Promise<Reply> {
    const ack = request.query.oneOf('ack', ['replicated', 'none'])
    const { partitioning, messages } = await request.body(sendBody)
    if (messages.length === 0) throw new EdgeError('EDGE_BATCH_EMPTY', 'Invalid messages count')
    const batch = packMessages(messages, clock.wallUs())
    const pending = new PendingReceipt()
    const sent = broker.send(request.caller, streamOf(request), topicOf(request), partitioning, batch, pending)
    if (ack === 'none') {
      // Nobody waits for the promise; a failure is counted and logged by the log.
      pending.settlement.catch(() => undefined)
      return { status: 202, headers: { 'iggy-durability': 'none' } }
    }
    await pending.settlement
    const reply = json(viewSendResult(sent), 201)
    return { ...reply, headers: { ...reply.headers, 'iggy-durability': sent.promise } }
  }

  /** Guides name a group that nobody has made: it is made, and starts at the oldest message. */
  async function poll(request: HttpRequest): Promise<Reply> {
    readConsistency(request)
    const wanted = readPoll(request, streamOf(request), topicOf(request))
    const { id, kind } = wanted.consumer
    try {
      return await pollNow(request, wanted)
    } catch (error) {
      const isNewGroup = error instanceof EdgeError && error.code === 'EDGE_GROUP_NOT_FOUND' && kind === 'group'
      if (!isNewGroup || typeof id !== 'string') throw error
      await broker.createGroup(request.caller, wanted.stream, wanted.topic, id)
      return await pollNow(request, wanted)
    }
  }

  /** Encodes in the turn that brings the batches: their views live no longer. */
  function pollNow(request: HttpRequest, wanted: PollRequest): Reply | Promise<Reply> {
    const polled = broker.poll(request.caller, wanted)
    return polled instanceof Promise ? polled.then((result) => json(viewPoll(result))) : json(viewPoll(polled))
  }

  const path = '/streams/{stream_id}/topics/{topic_id}/messages'
  return [
    { method: 'GET', path, access: 'token', handle: poll },
    { method: 'POST', path, access: 'token', handle: send },
    {
      method: 'GET',
      path: `${path}/flush/{partition_id}/{fsync}`,
      access: 'token',
      async handle(request) {
        const fsync = pathText(request, 'fsync')
        if (fsync !== 'true' && fsync !== 'false') throw wrongPath(`Cannot parse \`${fsync}\` to a \`bool\``)
        await broker.flush(request.caller, streamOf(request), topicOf(request), pathU32(request, 'partition_id'))
        return { status: 200 }
      },
    },
  ]
}

function readPoll({ query }: HttpRequest, stream: PollRequest['stream'], topic: PollRequest['topic']): PollRequest {
  return {
    consumer: readConsumer(query),
    stream,
    topic,
    partitionId: query.u32('partition_id') ?? 0,
    strategy: readStrategy(query),
    count: query.u32('count') ?? DEFAULT_COUNT,
    autoCommit: query.boolean('auto_commit') ?? false,
  }
}

/** `consumer_group` is our own: Iggy knows no group over HTTP, though its guides show the call. */
function readConsumer(query: Query): Consumer {
  const group = query.text('consumer_group')
  if (group !== undefined) return { kind: 'group', id: readIdentifier(group) }
  const consumer = query.text('consumer_id')
  return { kind: 'consumer', id: consumer === undefined ? DEFAULT_CONSUMER : readIdentifier(consumer) }
}

function readIdentifier(text: string): Consumer['id'] {
  try {
    return parseIdentifier(text)
  } catch {
    throw wrongQuery('Invalid identifier')
  }
}

/** `strategy` is what guides call `kind`. */
function readStrategy(query: Query): PollingStrategy {
  const name = query.text('kind') ?? query.text('strategy') ?? 'offset'
  const kind = Object.hasOwn(STRATEGIES, name) ? STRATEGIES[name] : undefined
  const value = query.u64('value') ?? 0n
  switch (kind) {
    case undefined:
      throw wrongQuery('Invalid command')
    case 'offset':
      return { kind, offset: value }
    case 'timestamp':
      return { kind, timestampUs: value }
    default:
      return { kind }
  }
}

/** Turns the one call of a receipt into a promise. */
class PendingReceipt implements Receipt {
  readonly settlement: Promise<void>
  private readonly resolve: () => void
  private readonly reject: (error: EdgeError) => void

  constructor() {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.settlement = promise
    this.resolve = resolve
    this.reject = reject
  }

  settled(error: EdgeError | null): void {
    if (error === null) this.resolve()
    else this.reject(error)
  }
}
