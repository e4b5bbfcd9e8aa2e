/** Requests to Iggy's REST API over kept-alive connections: JSON in and out, numbers exact, errors by Iggy's number. */
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Duplex } from 'node:stream'
import { EdgeError, messageOf } from '../../errors.ts'
import { parseJson } from '../../exact-json.ts'
import { errorOfStatus, openSocket, type TcpOptions } from '../../sdk/index.ts'
import type { ConnectionEnds } from './connection-ends.ts'

export interface HttpClientOptions extends TcpOptions {
  readonly maxSockets: number
  readonly signal: AbortSignal
  readonly ends: ConnectionEnds
}

export interface HttpCall {
  readonly method: string
  readonly path: string
  readonly bodyBytes: Uint8Array | null
  readonly token: string | null
  readonly timeoutMs: number
  /** It only asks how the server is. */
  readonly isLook: boolean
}

export interface HttpReply {
  /** Parsed; null when there is none. */
  readonly body: unknown
  readonly sizeBytes: number
}

const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/** As the agent calls it; its published type asks for a socket beside an error. */
type SocketCallback = (error: Error | null, socket?: Duplex | null) => void

export class HttpClient {
  readonly #options: HttpClientOptions
  readonly #agent: HttpAgent | HttpsAgent
  readonly #abort = new AbortController()
  #closedBy: EdgeError | null = null

  constructor(options: HttpClientOptions) {
    this.#options = options
    const agentOptions = { keepAlive: true, maxSockets: options.maxSockets }
    this.#agent = options.tls ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions)
    this.#connectAsOthers()
  }

  /** @throws {EdgeError} the refusal, with `details.httpStatus`. */
  async request(call: HttpCall): Promise<HttpReply> {
    if (this.#closedBy) throw this.#closedBy
    const limit = AbortSignal.timeout(Math.ceil(call.timeoutMs))
    const signal = AbortSignal.any([limit, this.#abort.signal, this.#options.signal])
    try {
      const answer = await this.#exchange(call, signal)
      const text = await textOf(answer)
      const status = answer.statusCode ?? 0
      if (status >= 200 && status < 300) return { body: text === '' ? null : parseAnswer(text), sizeBytes: text.length }
      throw refusal(call, status, text, answer.headers['retry-after'])
    } catch (cause) {
      if (cause instanceof EdgeError) throw cause
      if (this.#closedBy) throw this.#closedBy
      if (limit.aborted) {
        throw new EdgeError(
          'EDGE_UPSTREAM_TIMEOUT',
          `${this.#where}: no answer within ${Math.round(call.timeoutMs)} ms`,
        )
      }
      throw this.#lost(cause)
    }
  }

  /** Ends all connections; requests that wait fail with `error`. */
  close(error: EdgeError): void {
    this.#closedBy ??= error
    this.#abort.abort()
    this.#agent.destroy()
  }

  get #where(): string {
    return `${this.#options.host}:${this.#options.port}`
  }

  #exchange(call: HttpCall, signal: AbortSignal): Promise<IncomingMessage> {
    const { host, port, tls, ends } = this.#options
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const send = tls ? requestHttps : requestHttp
    const request = send({
      host,
      port,
      method: call.method,
      path: call.path,
      agent: this.#agent,
      signal,
      headers: {
        accept: 'application/json',
        ...(call.token === null ? {} : { authorization: `Bearer ${call.token}` }),
        ...(call.bodyBytes === null
          ? {}
          : { 'content-type': 'application/json', 'content-length': call.bodyBytes.length }),
      },
    })
    request.on('response', (answer) => {
      if (!isKept(answer)) ends.announced(answer.socket)
      resolve(answer)
    })
    request.on('socket', (socket) => ends.carries(socket, call.isLook))
    request.on('error', reject)
    request.end(call.bodyBytes ?? undefined)
    return promise
  }

  /** As the other protocols connect: to whichever address answers, with the authorities and the name that are configured. */
  #connectAsOthers(): void {
    const signal = AbortSignal.any([this.#abort.signal, this.#options.signal])
    this.#agent.createConnection = (_options: object, callback: SocketCallback) => {
      openSocket(this.#options, signal).then(
        ({ socket }) => callback(null, socket),
        (error) => callback(error),
      )
      return undefined
    }
  }

  /** A dial that fails says so itself: what else goes wrong ends a connection that stood. */
  #lost(cause: unknown): EdgeError {
    return new EdgeError('EDGE_CONNECTION_LOST', `${this.#where}: ${messageOf(cause)}`, { cause })
  }
}

/** HTTP/1.0, which some proxies speak, keeps a connection only where both sides say so. */
function isKept({ headers, httpVersionMinor }: IncomingMessage): boolean {
  const words = (headers.connection ?? '').toLowerCase()
  return httpVersionMinor === 0 ? words.includes('keep-alive') : !words.includes('close')
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length
    if (sizeBytes > MAX_ANSWER_BYTES) {
      answer.destroy()
      throw new EdgeError('EDGE_FRAME_TOO_LARGE', `answer: expected at most ${MAX_ANSWER_BYTES} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parseAnswer(text: string): unknown {
  try {
    return parseJson(text)
  } catch (cause) {
    throw new EdgeError('EDGE_FRAME_INVALID', 'answer: expected JSON', { cause })
  }
}

function refusal(call: HttpCall, status: number, text: string, retryAfter: string | undefined): EdgeError {
  const what = `${call.method} ${call.path.split('?')[0]}`
  const iggyCode = iggyCodeIn(text)
  const error =
    iggyCode === undefined
      ? new EdgeError('EDGE_UPSTREAM_REFUSED', `${what}: the server answers ${status}`)
      : errorOfStatus(iggyCode, what)
  const retryAfterMs = retryAfter === undefined ? undefined : Number(retryAfter) * 1000
  const details = {
    ...error.details,
    httpStatus: status,
    ...(retryAfterMs !== undefined && Number.isFinite(retryAfterMs) ? { retryAfterMs } : {}),
  }
  return new EdgeError(error.code, error.message, { details })
}

/** The body's `id`; errors of the HTTP layer itself repeat the status there. */
function iggyCodeIn(text: string): number | undefined {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body !== 'object' || body === null || !('id' in body) || !('code' in body)) return undefined
    const { id } = body
    return typeof id === 'number' && !(id >= 400 && id < 600) ? id : undefined
  } catch {
    return undefined
  }
}
