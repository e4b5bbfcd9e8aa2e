/**
 * One load generator: N connections, each with one request in flight, over the classic dialect, which both servers speak.
 * Runs as a process of its own, so that the server has its core. Frames are encoded once; answers are only measured.
 *
 *   node test/bench/support/load.ts '{"host":"127.0.0.1","port":8090,...}'
 *
 * Prints `measuring` when logins and warming up are over, and at the end one line of JSON.
 */
import { connect, type Socket } from 'node:net'
import { classicReplyShape, decodeReplyFrame, writeRequestFrame } from '../../../src/sdk/wire/classic/frame.ts'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import type { Request } from '../../../src/sdk/wire/commands/index.ts'
import { FrameAssembler } from '../../../src/sdk/wire/frame-assembler.ts'
import { encodeRecords } from '../../../src/sdk/wire/messages.ts'
import { Writer } from '../../../src/sdk/wire/writer.ts'

export interface LoadOrder {
  readonly host: string
  readonly port: number
  readonly username: string
  readonly password: string
  readonly connections: number
  readonly partitions: number
  readonly kind: 'send' | 'poll'
  readonly batch: number
  readonly payloadBytes: number
  /** Ends after this many requests over all connections, or after `seconds`, whichever comes first. */
  readonly requests: number
  readonly seconds: number
  /** Load before the measurement begins, so that neither server is measured while it compiles or allocates. */
  readonly warmUpSeconds?: number
  readonly stream: string
  readonly topic: string
}

export interface LoadResult {
  readonly requests: number
  readonly messages: number
  readonly seconds: number
  readonly messagesPerSecond: number
  readonly p50Us: number
  readonly p99Us: number
}

/** Latencies kept: enough for percentiles, bounded for long runs. */
const MAX_SAMPLES = 200_000

/** A connection that asks and waits: the whole client. */
export class RawClient {
  readonly #socket: Socket
  readonly #assembler = new FrameAssembler(classicReplyShape)
  #waiting: { resolve: (payload: Uint8Array) => void; reject: (error: Error) => void } | null = null

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk: Uint8Array) => this.#take(chunk))
    socket.on('error', (error) => this.#waiting?.reject(error))
    socket.on('close', () => this.#waiting?.reject(new Error('connection closed')))
  }

  static open(host: string, port: number): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port }, () => resolve(new RawClient(socket)))
      socket.once('error', reject)
    })
  }

  ask(frame: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#socket.write(frame)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(chunk: Uint8Array): void {
    this.#assembler.push(chunk)
    const frame = this.#assembler.next()
    if (frame === undefined) return
    const { status, payloadView } = decodeReplyFrame(frame)
    const waiting = this.#waiting
    this.#waiting = null
    if (status === 0) waiting?.resolve(payloadView)
    else waiting?.reject(new Error(`server answered ${status}`))
  }
}

export function frameOf(request: Request): Uint8Array {
  const writer = new Writer()
  writeRequestFrame(writer, request)
  return writer.writtenView.slice()
}

export const loginFrame = (username: string, password: string): Uint8Array =>
  frameOf({ code: CODE.loginUser, body: { username, password, version: 'bench', context: '' } })

export async function runLoad(order: LoadOrder, onMeasuring: () => void = () => {}): Promise<LoadResult> {
  const clients = await Promise.all(
    Array.from({ length: order.connections }, () => RawClient.open(order.host, order.port)),
  )
  for (const client of clients) await client.ask(loginFrame(order.username, order.password))
  const samples = new Float64Array(MAX_SAMPLES)
  let done = 0
  let messages = 0
  let isWarm = false
  const warmMs = performance.now() + (order.warmUpSeconds ?? 0) * 1000
  let startedMs = warmMs
  let endMs = warmMs + order.seconds * 1000
  const begin = () => {
    isWarm = true
    done = 0
    messages = 0
    startedMs = performance.now()
    endMs = startedMs + order.seconds * 1000
    onMeasuring()
  }
  const each = async (client: RawClient, index: number) => {
    const partitionId = index % order.partitions
    const send = order.kind === 'send' ? sendFrame(order, partitionId) : null
    let offset = 0n
    while (done < order.requests && performance.now() < endMs) {
      const askedMs = performance.now()
      if (!isWarm && askedMs >= warmMs) begin()
      const answer = await client.ask(send ?? pollFrame(order, partitionId, offset))
      samples[done % MAX_SAMPLES] = (performance.now() - askedMs) * 1000
      done++
      const count = send === null ? new DataView(answer.buffer, answer.byteOffset).getUint32(12, true) : order.batch
      if (count === 0) offset = 0n
      offset += BigInt(count)
      messages += count
    }
  }
  await Promise.all(clients.map(each))
  const seconds = (performance.now() - startedMs) / 1000
  for (const client of clients) client.close()
  const sorted = samples.slice(0, Math.min(done, MAX_SAMPLES)).sort()
  const at = (share: number) => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
  return { requests: done, messages, seconds, messagesPerSecond: messages / seconds, p50Us: at(0.5), p99Us: at(0.99) }
}

function sendFrame(order: LoadOrder, partitionId: number): Uint8Array {
  const payload = new Uint8Array(order.payloadBytes)
  for (let i = 0; i < payload.length; i++) payload[i] = 32 + ((i * 7 + partitionId) % 90)
  const message = { originUs: BigInt(Date.now()) * 1000n, payload }
  const batch = encodeRecords(Array.from({ length: order.batch }, () => message))
  const partitioning = { kind: 'partition', partitionId } as const
  return frameOf({ code: CODE.sendMessages, body: { stream: order.stream, topic: order.topic, partitioning, batch } })
}

function pollFrame(order: LoadOrder, partitionId: number, offset: bigint): Uint8Array {
  const strategy = { kind: 'offset', offset } as const
  const consumer = { kind: 'consumer', id: 1 } as const
  const body = {
    consumer,
    stream: order.stream,
    topic: order.topic,
    partitionId,
    strategy,
    count: order.batch,
    autoCommit: false,
  }
  return frameOf({ code: CODE.pollMessages, body })
}

if (import.meta.main) {
  const order = JSON.parse(process.argv[2] ?? '{}') as LoadOrder
  console.log(JSON.stringify(await runLoad(order, () => console.log('measuring'))))
}
