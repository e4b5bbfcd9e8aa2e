/** `message send`: reads what to send, packs it into bounded batches and sends them in order. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { EdgeError, messageOf } from '../../../errors.ts'
import type { Client, OutgoingMessage } from '../../../sdk/index.ts'
import type { Partitioning } from '../../../sdk/wire/primitives.ts'
import { decodeUserHeaders } from '../../../sdk/wire/user-headers.ts'
import { counted } from '../../counted.ts'
import type { CommandContext } from '../command.ts'
import { usageError, type Values } from '../grammar.ts'
import { parseHeaders } from '../header-text.ts'
import { parseMessageLine } from '../message-line.ts'
import { MAX_PARTITION, streamOf, topicOf } from '../nouns/arguments.ts'
import type { Output } from '../server-command.ts'
import { refuseAborted } from '../unless-aborted.ts'

/** One request takes so many at most: a file of any size goes through in constant memory. */
const BATCH_COUNT = 1000
const BATCH_BYTES = 1024 * 1024
/** What has come goes out when nothing more comes for so long: whoever writes into a pipe may write again tomorrow. */
const LINGER_MS = 100

export async function sendMessages(
  client: Client,
  values: Values,
  output: Output,
  { signal }: CommandContext,
): Promise<void> {
  const [stream, topic] = [streamOf(values), topicOf(values)]
  const partitioning = partitioningOf(values)
  const last: { confirmation: Awaited<ReturnType<Client['messages']['send']>> } = { confirmation: null }
  let [sentCount, requestCount] = [0, 0]
  try {
    for await (const batch of batchesOf(messagesOf(values, signal))) {
      last.confirmation = await client.messages.send(stream, topic, partitioning, batch)
      sentCount += batch.length
      requestCount++
    }
    refuseAborted(signal)
  } catch (error) {
    throw afterSome(error, sentCount)
  }
  if (sentCount === 0 && !values.has('input-file'))
    throw usageError('no message was given: expected arguments, --input-file or lines on standard input')
  const { partitionId, baseOffset } = last.confirmation ?? { partitionId: null, baseOffset: null }
  const from = requestCount === 1 ? 'from offset' : 'the last request from offset'
  const place = partitionId === null ? '' : ` (partition ${partitionId}, ${from} ${baseOffset})`
  output.done(`${counted(sentCount, 'message')} sent${place}`, {
    messages: sentCount,
    partition: partitionId,
    base_offset: baseOffset,
  })
}

/** Who sends the rest later must know where it begins. */
function afterSome(cause: unknown, sentCount: number): unknown {
  if (sentCount === 0 || !(cause instanceof EdgeError)) return cause
  const { code, details, message } = cause
  return new EdgeError(code, `after ${counted(sentCount, 'message')} sent: ${message}`, { details, cause })
}

function partitioningOf(values: Values): Partitioning {
  const key = values.text('message-key')
  if (key !== undefined && values.has('partition'))
    throw usageError('partition and message-key exclude each other: a key chooses the partition')
  if (key !== undefined) return { kind: 'key', keyView: Buffer.from(key) }
  if (!values.has('partition')) return { kind: 'balanced' }
  return { kind: 'partition', partitionId: values.integer('partition', 0, { min: 0, max: MAX_PARTITION }) }
}

async function* messagesOf(values: Values, signal: AbortSignal): AsyncGenerator<OutgoingMessage> {
  const headers = parseHeaders(values.all('headers'))
  const file = values.text('input-file')
  if (file !== undefined) {
    yield* messagesOfLines(linesOf(createReadStream(file), file, signal))
    return
  }
  const payloads = values.all('messages')
  if (payloads.length === 0 && process.stdin.isTTY !== true) {
    const lines = linesOf(process.stdin, 'standard input', signal)
    for await (const line of lines) yield { payload: Buffer.from(line), headers }
    return
  }
  for (const payload of payloads) yield { payload: Buffer.from(payload), headers }
}

async function* messagesOfLines(lines: AsyncIterable<string>): AsyncGenerator<OutgoingMessage> {
  let number = 0
  for await (const line of lines) {
    number++
    if (line.trim() === '') continue
    const { payload, headersBytes, id, originUs } = parseMessageLine(line, number)
    yield { payload, id, headers: decodeUserHeaders(headersBytes), ...(originUs === null ? {} : { originUs }) }
  }
}

/** Ends with the signal, behind what had been read by then. */
async function* linesOf(source: Readable, name: string, signal: AbortSignal): AsyncGenerator<string> {
  if (signal.aborted) return
  const lines = createInterface({ input: source, crlfDelay: Number.POSITIVE_INFINITY, signal })
  try {
    for await (const line of lines) yield line
  } catch (cause) {
    throw new EdgeError('EDGE_IO', `${name} cannot be read: ${messageOf(cause)}`, { cause })
  }
}

async function* batchesOf(messages: AsyncGenerator<OutgoingMessage>): AsyncGenerator<OutgoingMessage[]> {
  let batch: OutgoingMessage[] = []
  let sizeBytes = 0
  for (;;) {
    const coming = messages.next()
    if (batch.length > 0 && !(await comesWithin(coming, LINGER_MS))) {
      yield batch
      batch = []
      sizeBytes = 0
    }
    const { done, value: message } = await coming
    if (done === true) break
    if (batch.length === BATCH_COUNT || (batch.length > 0 && sizeBytes + message.payload.length > BATCH_BYTES)) {
      yield batch
      batch = []
      sizeBytes = 0
    }
    batch.push(message)
    sizeBytes += message.payload.length
  }
  if (batch.length > 0) yield batch
}

/** Also when what comes is an error: whoever waits for it is told. */
async function comesWithin(coming: Promise<unknown>, limitMs: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, limitMs, false)
  const came = () => true
  try {
    return await Promise.race([coming.then(came, came), late])
  } finally {
    clearTimeout(timer)
  }
}
