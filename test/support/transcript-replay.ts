/**
 * Plays a recorded session from the client's side against a running server and compares what comes back, field by field.
 *
 * What differs from run to run is named once, in `VARYING`. Ids and tokens that the server chose are put into the client's
 * later frames in place of the recorded ones; a frame whose bytes were cut in the recording is made again with as many
 * messages.
 */
import { readFileSync } from 'node:fs'
import { decodeReplyFrame, decodeRequestFrame } from '../../src/sdk/wire/classic/frame.ts'
import { writeSentMessages } from '../../src/sdk/wire/classic/message.ts'
import { CODE, type CommandCode, isCommandCode } from '../../src/sdk/wire/codes.ts'
import { decodeResponse } from '../../src/sdk/wire/commands/index.ts'
import { type Dialect, PROTOCOL_VERSION } from '../../src/sdk/wire/dialect.ts'
import { sharedKernel } from '../../src/sdk/wire/kernel/shared-kernel.ts'
import { decodeRecords, encodeRecords } from '../../src/sdk/wire/messages.ts'
import { Reader } from '../../src/sdk/wire/reader.ts'
import { bodyOf, decodeEviction, decodeReplyHead, decodeRequestHead, isEviction } from '../../src/sdk/wire/vsr/frame.ts'
import { writeSentBatch } from '../../src/sdk/wire/vsr/message.ts'
import { readOutcome, writeCommand } from '../../src/sdk/wire/vsr/reply.ts'
import { Writer } from '../../src/sdk/wire/writer.ts'
import { RawClient } from './protocol-server.ts'

interface Frame {
  readonly dir: 'c' | 's'
  readonly t_ms: number
  readonly hex?: string
  readonly note: string
}

interface Transcript {
  readonly client: string
  readonly dialect: string
  readonly connections: readonly { readonly connection: number; readonly frames: readonly Frame[] }[]
}

/** One frame, or the end of a connection, at its place in time. */
interface Step extends Frame {
  readonly connection: number
  readonly part: number
  readonly index: number
}

/** A request whose answer is still to come. */
interface Asked {
  readonly sent: Buffer
  readonly note: string
}

export interface Difference {
  readonly step: string
  readonly field: string
  readonly recorded: unknown
  readonly found: unknown
}

export interface ReplayResult {
  readonly stepCount: number
  readonly comparedCount: number
  readonly differences: readonly Difference[]
}

/** Fields that differ from run to run, whatever the command. */
const VARYING: ReadonlySet<string> = new Set([
  // Times and positions in the log of changes.
  'createdAtUs',
  'expiryAtUs',
  'appendTimeUs',
  'session',
  'metadataWatermark',
  // Long sends are recorded in part and filled up here; and VSR servers count their own batches.
  'sizeBytes',
  // Made by the server.
  'token',
  'clientId',
  'zipBytes',
  // Of the machine and the build.
  'address',
  'serverVersion',
  'serverSemver',
  'ip',
  'tcpPort',
  'quicPort',
  'httpPort',
  'websocketPort',
  'description',
  'processId',
  'cpuUsage',
  'totalCpuUsage',
  'memoryUsage',
  'totalMemory',
  'availableMemory',
  'runTimeUs',
  'startTimeUs',
  'readBytes',
  'writtenBytes',
  'messagesSizeBytes',
  'hostname',
  'osName',
  'osVersion',
  'kernelVersion',
  'threadsCount',
  'freeDiskSpace',
  'totalDiskSpace',
  // Segments are cut at other sizes.
  'segmentsCount',
])

/** @param names files of one session, in order: large recordings are cut into parts. */
export async function replayTranscript(paths: readonly string[], port: number): Promise<ReplayResult> {
  const parts = paths.map((path) => JSON.parse(readFileSync(path, 'utf8')) as Transcript)
  const dialect: Dialect = parts[0]?.dialect === 'classic' ? 'classic' : 'vsr'
  const steps = parts.flatMap(stepsOf)
  steps.sort((left, right) => left.t_ms - right.t_ms || left.part - right.part || left.index - right.index)
  // The command line's recordings leave out the login of each further connection.
  const player = new Player(dialect, port, clientHexOf(steps), parts[0]?.client.includes('cli') ?? false)
  try {
    for (const step of steps) await player.play(step)
  } finally {
    player.close()
  }
  return { stepCount: steps.length, comparedCount: player.comparedCount, differences: player.differences }
}

function stepsOf(transcript: Transcript, part: number): Step[] {
  return transcript.connections.flatMap(({ connection, frames }) => {
    return frames.map((frame, index) => ({ ...frame, connection, part, index }))
  })
}

/** All bytes the client sent: an id that is not among them was chosen by the server. */
function clientHexOf(steps: readonly Step[]): string {
  return steps.flatMap(({ dir, hex }) => (dir === 'c' && hex ? [hex] : [])).join(' ')
}

class Player {
  readonly differences: Difference[] = []
  comparedCount = 0
  private readonly dialect: Dialect
  private readonly port: number
  private readonly clientHex: string
  private readonly mustLogIn: boolean
  private readonly clients = new Map<number, { readonly raw: RawClient; readonly asked: Asked[] }>()
  /** Recorded bytes (hex) to ours: tokens and client ids. */
  private readonly swaps = new Map<string, string>()

  constructor(dialect: Dialect, port: number, clientHex: string, mustLogIn: boolean) {
    this.dialect = dialect
    this.port = port
    this.clientHex = clientHex
    this.mustLogIn = mustLogIn
  }

  async play(step: Step): Promise<void> {
    const place = `${step.t_ms} ms, connection ${step.connection}`
    try {
      if (!step.hex) this.end(step.connection)
      else if (step.dir === 'c') await this.ask(step, step.hex)
      else await this.answer(step, step.hex, place)
    } catch (cause) {
      throw new Error(`${place}: ${step.note.slice(0, 120)}`, { cause })
    }
  }

  private end(connection: number): void {
    this.clients.get(connection)?.raw.close()
    this.clients.delete(connection)
  }

  private async ask(step: Step, hex: string): Promise<void> {
    let client = this.clients.get(step.connection)
    if (client === undefined) {
      client = { raw: await RawClient.connect(this.port), asked: [] }
      this.clients.set(step.connection, client)
      if (this.mustLogIn && !step.note.startsWith('ping') && !step.note.startsWith('login'))
        await this.logIn(client.raw)
    }
    const sent = this.prepare(hex)
    client.raw.write(sent)
    client.asked.push({ sent, note: step.note })
  }

  private async answer(step: Step, hex: string, place: string): Promise<void> {
    const client = this.clients.get(step.connection)
    // One request at a time: answers to the ones before the last were dropped from the recording as repeats.
    while (client !== undefined && client.asked.length > 1) {
      client.asked.shift()
      await this.read(client.raw)
    }
    const asked = client?.asked.shift()
    // And the other way round: the request was dropped, its answer kept.
    if (client === undefined || asked === undefined) return
    const found = await this.read(client.raw)
    this.compare(
      `${place}: ${asked.note.slice(0, 120)}`,
      asked.sent,
      Buffer.from(hex.replace('...', ''), 'hex'),
      found,
      hex.endsWith('...'),
    )
  }

  private async read(raw: RawClient): Promise<Buffer> {
    return this.dialect === 'classic' ? (await raw.readClassic()).frame : raw.readVsr()
  }

  private async logIn(raw: RawClient): Promise<void> {
    if (this.dialect === 'classic') {
      raw.write(Buffer.from('1600000026000000046967677904696767790000000000000000', 'hex'))
      await raw.readClassic()
      return
    }
    const login = { kind: 'password', username: 'iggy', password: 'iggy' } as const
    const body = {
      protocolVersion: PROTOCOL_VERSION,
      sdkName: 'rust-sdk',
      sdkVersion: '0.11.0',
      credentials: login,
      context: '',
    }
    const writer = new Writer()
    writeCommand(writer, { clientId: 99n, session: 0n, requestNumber: 0n }, { code: CODE.loginRegister, body })
    raw.write(writer.toBytes())
    await raw.readVsr()
  }

  close(): void {
    for (const { raw } of this.clients.values()) raw.close()
  }

  /** The recorded request with our tokens and ids in it. */
  private prepare(hex: string): Buffer {
    const isCut = hex.endsWith('...')
    let text = hex.replace('...', '')
    for (const [recorded, ours] of this.swaps) text = text.replaceAll(recorded, ours)
    const bytes = Buffer.from(text, 'hex')
    if (isCut) return this.dialect === 'classic' ? completeClassic(bytes) : completeVsr(bytes)
    if (this.dialect === 'vsr') restamp(bytes)
    return bytes
  }

  private compare(step: string, sent: Buffer, recorded: Buffer, found: Buffer, isCut: boolean): void {
    this.comparedCount++
    const code = this.dialect === 'classic' ? decodeRequestFrame(sent).code : decodeRequestHead(sent).code
    const left = this.outcomeOf(code, recorded, isCut)
    const right = this.outcomeOf(code, found, false)
    this.learn(left.body, right.body)
    for (const difference of differencesOf(left, right, '')) {
      if (!this.isChosenId(difference)) this.differences.push({ step, ...difference })
    }
  }

  private isChosenId({ field, recorded }: Omit<Difference, 'step'>): boolean {
    if (!field.endsWith('].id') || typeof recorded !== 'bigint') return false
    const bytes = Buffer.from(recorded.toString(16).padStart(32, '0'), 'hex').reverse()
    return !this.clientHex.includes(bytes.toString('hex'))
  }

  private outcomeOf(code: number, frame: Buffer, isCut: boolean): { outcome: string; body: unknown } {
    if (this.dialect === 'classic') {
      const reply = decodeReplyFrame(frame)
      if (reply.status !== 0) return { outcome: `status ${reply.status}`, body: null }
      return { outcome: 'ok', body: isCut ? 'cut' : this.bodyOf(code, reply.payloadView) }
    }
    if (isEviction(frame)) {
      const { reason, newestVersion, oldestVersion } = decodeEviction(frame)
      return { outcome: `eviction ${reason}`, body: { newestVersion, oldestVersion } }
    }
    const head = decodeReplyHead(frame)
    const outcome = readOutcome(head, bodyOf(frame))
    const channel = head.status === 0 ? 'result' : 'status'
    const echoed = `operation ${head.operation} number ${head.requestNumber}`
    if (outcome.error !== 0) return { outcome: `${channel} ${outcome.error} ${echoed}`, body: null }
    return { outcome: `ok ${echoed}`, body: isCut ? 'cut' : this.bodyOf(code, outcome.payloadView) }
  }

  private bodyOf(code: number, payloadView: Uint8Array): unknown {
    if (!isCommandCode(this.dialect, code)) return Buffer.from(payloadView).toString('hex')
    return plain(decodeResponse(this.dialect, code as CommandCode, payloadView))
  }

  /** Remembers what the server chose differently, where both answers have it. */
  private learn(recorded: unknown, found: unknown): void {
    if (Array.isArray(recorded) && Array.isArray(found)) {
      for (const [index, value] of recorded.entries()) this.learn(value, found[index])
    } else if (isRecord(recorded) && isRecord(found)) {
      for (const [key, value] of Object.entries(recorded)) this.learnField(key, value, found[key])
    }
  }

  private learnField(key: string, recorded: unknown, found: unknown): void {
    if (key === 'token' && typeof recorded === 'string' && typeof found === 'string') {
      this.swaps.set(Buffer.from(recorded).toString('hex'), Buffer.from(found).toString('hex'))
    } else if (key === 'clientId' && typeof recorded === 'number' && typeof found === 'number') {
      const asRequest = (id: number) => u32Hex(CODE.getClient) + u32Hex(id)
      this.swaps.set(asRequest(recorded), asRequest(found))
    } else this.learn(recorded, found)
  }
}

function* differencesOf(recorded: unknown, found: unknown, path: string): Generator<Omit<Difference, 'step'>> {
  if (recorded === 'cut' || found === 'cut') return
  if (Array.isArray(recorded) && Array.isArray(found)) {
    if (recorded.length !== found.length)
      yield { field: `${path}.length`, recorded: recorded.length, found: found.length }
    for (const [index, value] of recorded.entries()) yield* differencesOf(value, found[index], `${path}[${index}]`)
  } else if (isRecord(recorded) && isRecord(found)) {
    if (typeof found.payloadView === 'string' && found.payloadView.startsWith(MADE_AGAIN.toString('hex'))) return
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(found)])) {
      if (!VARYING.has(key)) yield* differencesOf(recorded[key], found[key], `${path}.${key}`)
    }
  } else if (recorded !== found) yield { field: path, recorded, found }
}

/** Batches as messages, bytes as hex, so that two answers compare by value. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return value.map(plain)
  if (!isRecord(value)) return value
  if ('batches' in value && Array.isArray(value.batches)) {
    const { batches, ...head } = value
    return {
      ...head,
      messages: batches.flatMap((batch) => decodeRecords(batch).map((message) => ({ ...message }))).map(plain),
    }
  }
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, plain(field)]))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function u32Hex(value: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes.toString('hex')
}

/** Makes a send whole again whose recording was cut: the same target, as many messages, other payloads. */
function completeClassic(bytes: Buffer): Buffer {
  const writer = new Writer()
  const count = copyMetadata(bytes.subarray(8), writer)
  writeSentMessages(writer, messagesOf(count), sharedKernel())
  const head = Buffer.alloc(8)
  head.writeUInt32LE(writer.length + 4, 0)
  head.writeUInt32LE(CODE.sendMessages, 4)
  return Buffer.concat([head, writer.toBytes()])
}

function completeVsr(bytes: Buffer): Buffer {
  const writer = new Writer()
  const count = copyMetadata(bytes.subarray(256), writer)
  writeSentBatch(writer, messagesOf(count), sharedKernel())
  const head = Buffer.from(bytes.subarray(0, 256))
  head.writeUInt32LE(256 + writer.length, 48)
  return Buffer.concat([head, writer.toBytes()])
}

/** @returns the count that ends the metadata. */
function copyMetadata(body: Buffer, writer: Writer): number {
  const size = new Reader(body, 'metadata').u32()
  writer.bytes(body.subarray(0, 4 + size))
  return body.readUInt32LE(size)
}

/** Marks messages that are not the recorded ones. */
const MADE_AGAIN = Buffer.from('made again ')

function messagesOf(count: number) {
  const message = (index: number) => ({
    payload: Buffer.concat([MADE_AGAIN, Buffer.from(`${index}`)]),
    id: BigInt(index + 1),
    originUs: 1n,
  })
  return encodeRecords(Array.from({ length: count }, (_, index) => message(index)))
}

/** A body that was changed has another checksum; the head carries it where it was stamped. */
function restamp(bytes: Buffer): void {
  if (bytes.readBigUInt64LE(144) !== 0n) bytes.writeBigUInt64LE(sharedKernel().xxh3(bytes.subarray(256)), 144)
}

/** For messages of failing tests. */
export function formatDifferences(differences: readonly Difference[]): string {
  const lines = differences.map(
    ({ step, field, recorded, found }) => `${step}\n    ${field}: recorded ${String(recorded)}, found ${String(found)}`,
  )
  return lines.join('\n')
}
