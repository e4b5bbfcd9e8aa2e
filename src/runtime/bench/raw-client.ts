/**
 * A client that asks and waits, over the classic dialect: as little as a client can be, so that what is measured is the
 * server. Frames come encoded, answers are checked for their status and handed on as bytes.
 */
import { EdgeError, toEdgeError } from '../../errors.ts'
import { type ConnectionCredentials, type Dial, errorOfStatus, type Transport } from '../../sdk/index.ts'
import { classicReplyShape, decodeReplyFrame, writeRequestFrame } from '../../sdk/wire/classic/frame.ts'
import { CODE } from '../../sdk/wire/codes.ts'
import type { Request } from '../../sdk/wire/commands/index.ts'
import { FrameAssembler } from '../../sdk/wire/frame-assembler.ts'
import { Writer } from '../../sdk/wire/writer.ts'

interface Asked {
  resolve(payloadView: Uint8Array): void
  reject(error: EdgeError): void
}

export class RawClient {
  readonly #transport: Transport
  readonly #assembler = new FrameAssembler(classicReplyShape)
  /** One request at a time: the next is asked when this one is answered. */
  #asked: Asked | null = null
  #end: EdgeError | null = null

  private constructor(transport: Transport) {
    this.#transport = transport
  }

  /** @throws {EdgeError} what the dial throws. */
  static async open(dial: Dial, signal: AbortSignal = new AbortController().signal): Promise<RawClient> {
    const { promise: opened, resolve } = Promise.withResolvers<RawClient>()
    const lost = () => new EdgeError('EDGE_CONNECTION_LOST', 'the server closed the connection')
    let client: RawClient | null = null
    const transport = await dial(
      {
        data: (bytesView) => client?.received(bytesView),
        drained() {},
        // Also of a connection that ends before anybody has it.
        closed: (error) => void opened.then((each) => each.abort(error ?? lost())),
      },
      signal,
    )
    client = new RawClient(transport)
    resolve(client)
    return client
  }

  /**
   * @returns the answer's payload; it aliases what was received, valid until the next request.
   * @throws {EdgeError} the server's refusal; EDGE_CONNECTION_LOST; the reason given to `abort`.
   */
  ask(frame: Uint8Array): Promise<Uint8Array> {
    if (this.#end !== null) return Promise.reject(this.#end)
    return new Promise((resolve, reject) => {
      this.#asked = { resolve, reject }
      this.#transport.write(frame)
    })
  }

  /** Gives up at once; whoever waits gets `reason`. */
  abort(reason: EdgeError): void {
    if (this.#end !== null) return
    this.#end = reason
    this.#transport.abort()
    this.#asked?.reject(reason)
    this.#asked = null
  }

  close(): void {
    this.abort(new EdgeError('EDGE_CONNECTION_LOST', 'closed by us'))
  }

  private received(chunkView: Uint8Array): void {
    try {
      this.#assembler.push(chunkView)
      const frame = this.#assembler.next()
      if (frame !== undefined) this.#answered(frame)
    } catch (error) {
      this.abort(toEdgeError(error))
    }
  }

  #answered(frameView: Uint8Array): void {
    const { status, payloadView } = decodeReplyFrame(frameView)
    const asked = this.#asked
    this.#asked = null
    if (status === 0) asked?.resolve(payloadView)
    else asked?.reject(errorOfStatus(status, 'bench'))
  }
}

export function frameOf(request: Request): Uint8Array {
  const writer = new Writer()
  writeRequestFrame(writer, request)
  return writer.writtenView.slice()
}

export function loginFrame(credentials: ConnectionCredentials): Uint8Array {
  if (credentials.kind === 'token')
    return frameOf({ code: CODE.loginWithPersonalAccessToken, body: { token: credentials.token } })
  const { username, password } = credentials
  return frameOf({ code: CODE.loginUser, body: { username, password, version: 'bench', context: '' } })
}
