/** Small clients of both generations over a raw socket: one request, one outcome. For tests that look at single answers. */
import { decodeReplyFrame, writeRequestFrame } from '../../src/sdk/wire/classic/frame.ts'
import { CODE, type CommandCode, operationOf } from '../../src/sdk/wire/codes.ts'
import { decodeResponse, encodeCommand, type Request, type ResponseBody } from '../../src/sdk/wire/commands/index.ts'
import { PROTOCOL_VERSION } from '../../src/sdk/wire/dialect.ts'
import {
  bodyOf,
  decodeEviction,
  decodeReplyHead,
  isEviction,
  type VsrRequestHead,
  writeRequest,
} from '../../src/sdk/wire/vsr/frame.ts'
import { readOutcome } from '../../src/sdk/wire/vsr/reply.ts'
import { Writer } from '../../src/sdk/wire/writer.ts'
import { RawClient } from './protocol-server.ts'

export type BodyOf<C extends CommandCode> = Extract<Request, { code: C }>['body']

export interface Answer<C extends CommandCode> {
  /** "ok", "status 41", "result 1009", "eviction 9". */
  readonly outcome: string
  readonly body: ResponseBody<C> | null
}

export class ClassicClient implements Disposable {
  readonly raw: RawClient

  constructor(raw: RawClient) {
    this.raw = raw
  }

  static async connect(
    port: number,
    login: readonly [string, string] | null = ['iggy', 'iggy'],
  ): Promise<ClassicClient> {
    const client = new ClassicClient(await RawClient.connect(port))
    if (login === null) return client
    const [username, password] = login
    const { outcome } = await client.ask(CODE.loginUser, { username, password, version: '', context: '' })
    if (outcome !== 'ok') throw new Error(`login: ${outcome}`)
    return client
  }

  async ask<C extends CommandCode>(code: C, body: BodyOf<C>): Promise<Answer<C>> {
    const writer = new Writer()
    writeRequestFrame(writer, { code, body } as Request)
    return this.askRaw(code, writer.toBytes())
  }

  async askRaw<C extends CommandCode>(code: C, frame: Uint8Array): Promise<Answer<C>> {
    this.raw.write(frame)
    const reply = decodeReplyFrame((await this.raw.readClassic()).frame)
    if (reply.status !== 0) return { outcome: `status ${reply.status}`, body: null }
    return { outcome: 'ok', body: decodeResponse('classic', code, reply.payloadView) }
  }

  /** A frame made by hand: any code, any payload. */
  async askBytes(code: number, payloadHex: string): Promise<string> {
    const payload = Buffer.from(payloadHex, 'hex')
    const head = Buffer.alloc(8)
    head.writeUInt32LE(payload.length + 4, 0)
    head.writeUInt32LE(code, 4)
    this.raw.write(Buffer.concat([head, payload]))
    const { status } = await this.raw.readClassic()
    return status === 0 ? 'ok' : `status ${status}`
  }

  [Symbol.dispose](): void {
    this.raw.close()
  }
}

export class VsrClient implements Disposable {
  readonly raw: RawClient
  clientId = 77n
  session = 0n
  requestNumber = 1n

  constructor(raw: RawClient) {
    this.raw = raw
  }

  static async connect(port: number, login: readonly [string, string] | null = ['iggy', 'iggy']): Promise<VsrClient> {
    const client = new VsrClient(await RawClient.connect(port))
    if (login !== null) await client.register({ kind: 'password', username: login[0], password: login[1] })
    return client
  }

  async register(
    credentials: BodyOf<typeof CODE.loginRegister>['credentials'],
    version = PROTOCOL_VERSION,
  ): Promise<Answer<typeof CODE.loginRegister>> {
    const body = { protocolVersion: version, sdkName: 'rust-sdk', sdkVersion: '0.11.0', credentials, context: '' }
    const answer = await this.ask(CODE.loginRegister, body, { session: 0n, requestNumber: 0n })
    if (answer.body !== null) this.session = answer.body.session
    return answer
  }

  /** Takes the next request number for what is replicated, unless `head` says otherwise. */
  async ask<C extends CommandCode>(code: C, body: BodyOf<C>, head: Partial<VsrRequestHead> = {}): Promise<Answer<C>> {
    const writer = new Writer()
    encodeCommand('vsr', { code, body } as Request, writer)
    const frame = await this.askBody(code, writer.toBytes(), head)
    return this.answerOf(code, frame)
  }

  /** @returns the reply frame to a body made by hand. */
  async askBody(code: number, body: Uint8Array, head: Partial<VsrRequestHead> = {}): Promise<Buffer> {
    const operation = operationOf(code)
    const fields = {
      clientId: this.clientId,
      requestChecksum: 0n,
      requestNumber: this.requestNumber,
      operation,
      session: this.session,
      code,
      release: 0,
      ...head,
    }
    if (operation !== 2 && head.requestNumber === undefined) this.requestNumber++
    const writer = new Writer()
    writeRequest(writer, fields, (each) => each.bytes(body))
    this.raw.write(writer.toBytes())
    return this.raw.readVsr()
  }

  answerOf<C extends CommandCode>(code: C, frame: Buffer): Answer<C> {
    if (isEviction(frame)) return { outcome: `eviction ${decodeEviction(frame).reason}`, body: null }
    const head = decodeReplyHead(frame)
    const { error, payloadView } = readOutcome(head, bodyOf(frame))
    if (error !== 0) return { outcome: `${head.status === 0 ? 'result' : 'status'} ${error}`, body: null }
    return { outcome: 'ok', body: decodeResponse('vsr', code, payloadView) }
  }

  async outcomeOfBytes(code: number, bodyHex: string, head: Partial<VsrRequestHead> = {}): Promise<string> {
    const frame = await this.askBody(code, Buffer.from(bodyHex, 'hex'), head)
    if (isEviction(frame)) return `eviction ${decodeEviction(frame).reason}`
    const reply = decodeReplyHead(frame)
    const { error } = readOutcome(reply, bodyOf(frame))
    return error === 0 ? 'ok' : `${reply.status === 0 ? 'result' : 'status'} ${error}`
  }

  [Symbol.dispose](): void {
    this.raw.close()
  }
}
