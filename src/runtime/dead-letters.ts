/** Keeps records that an upstream refuses for good, in a topic of their own: nothing is thrown away, and the next one goes on. */
import { concatBytes } from '../byte-concat.ts'
import type { EdgeError } from '../errors.ts'
import { MAX_USER_HEADERS_BYTES } from '../sdk/wire/batch.ts'
import { stringHeader } from '../sdk/wire/header-values.ts'
import { encodeRecords } from '../sdk/wire/messages.ts'
import { decodeUserHeaders, encodeUserHeaders, type UserHeader } from '../sdk/wire/user-headers.ts'
import type { DeadLetter, DeadLetterSink } from '../sync/index.ts'
import type { Broker, Caller } from './broker/index.ts'

export const DEAD_LETTER_STREAM = 'edge'
export const DEAD_LETTER_TOPIC = 'dead-letters'
/** Header values are at most 255 bytes. */
const MAX_HEADER_BYTES = 255

/** The edge itself acts, with the rights of its root user. */
const EDGE_CALLER: Caller = { dialect: 'edge', userId: 0, client: null }

export function createDeadLetters(broker: Broker): DeadLetterSink {
  let ensuring: Promise<void> | null = null
  return {
    async add(letter) {
      // A route that carries all topics carries this one as well. What is refused of it is kept already.
      if (letter.streamName === DEAD_LETTER_STREAM && letter.topicName === DEAD_LETTER_TOPIC) return
      ensuring ??= ensureTopic(broker).finally(() => {
        ensuring = null
      })
      await ensuring
      const userHeaders = fittingHeaders(originalHeaders(letter), headersOf(letter))
      const batch = encodeRecords([{ payload: letter.payloadBytes, userHeaders, originUs: letter.originUs }])
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const settled = (error: EdgeError | null) => (error === null ? resolve() : reject(error))
      broker.send(EDGE_CALLER, DEAD_LETTER_STREAM, DEAD_LETTER_TOPIC, { kind: 'balanced' }, batch, { settled })
      await promise
    },
  }
}

async function ensureTopic(broker: Broker): Promise<void> {
  if (broker.stream(EDGE_CALLER, DEAD_LETTER_STREAM) === undefined) {
    await broker.createStream(EDGE_CALLER, DEAD_LETTER_STREAM)
  }
  if (broker.topic(EDGE_CALLER, DEAD_LETTER_STREAM, DEAD_LETTER_TOPIC) !== undefined) return
  const request = { name: DEAD_LETTER_TOPIC, partitionCount: 1, options: { durability: 'durable' } } as const
  await broker.createTopic(EDGE_CALLER, DEAD_LETTER_STREAM, request)
}

/** The record's own are kept whole: of the others, as many as fit behind them. */
function fittingHeaders(originals: readonly UserHeader[], others: readonly UserHeader[]): Uint8Array {
  let encoded = encodeUserHeaders(originals)
  for (const other of others) {
    const one = encodeUserHeaders([other])
    if (encoded.length + one.length <= MAX_USER_HEADERS_BYTES) encoded = concatBytes([encoded, one])
  }
  return encoded
}

/** Where it came from and why it was refused. */
function headersOf(letter: DeadLetter): readonly UserHeader[] {
  const facts: Readonly<Record<string, string>> = {
    'dead_letter.route': letter.route,
    'dead_letter.stream': letter.streamName,
    'dead_letter.topic': letter.topicName,
    'dead_letter.partition': String(letter.partitionId),
    'dead_letter.offset': String(letter.offset),
    'dead_letter.code': letter.reason.code,
    'dead_letter.reason': letter.reason.message,
  }
  return Object.entries(facts).map(([key, value]) => ({ key: stringHeader(key), value: stringHeader(clip(value)) }))
}

function originalHeaders({ userHeadersBytes }: DeadLetter): readonly UserHeader[] {
  if (userHeadersBytes === null) return []
  try {
    return decodeUserHeaders(userHeadersBytes)
  } catch {
    return [] // headers that nobody can read may be why it was refused
  }
}

function clip(text: string): string {
  const bytes = new TextEncoder().encode(text)
  return bytes.length <= MAX_HEADER_BYTES
    ? text || '-'
    : new TextDecoder().decode(bytes.subarray(0, MAX_HEADER_BYTES - 3)).replace(/\uFFFD$/, '')
}
