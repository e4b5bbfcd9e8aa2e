/** Reads a recorded HTTP transcript and replays its steps, in order, from the client's side. */
import { readFileSync } from 'node:fs'
import { Agent, request as sendRequest } from 'node:http'
import { join } from 'node:path'
import { parseJson } from '../../../src/exact-json.ts'

export interface Step {
  readonly n: number
  readonly name: string
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers?: Readonly<Record<string, string | null>>
    readonly body?: string
    readonly body_repeat?: {
      readonly prefix: string
      readonly char: string
      readonly count: number
      readonly suffix: string
    }
  }
  readonly response: {
    readonly status: number
    readonly headers?: Readonly<Record<string, string | null>>
    readonly json?: unknown
    readonly text?: string
  }
  readonly capture?: Readonly<Record<string, string>>
  readonly vary?: readonly string[]
}

export interface Transcript {
  readonly vary_keys: readonly string[]
  readonly definitions?: Readonly<Record<string, unknown>>
  readonly steps: readonly Step[]
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** Whole numbers are exact; undefined when the answer is no JSON. */
  readonly json: unknown
}

const FOLDER = join(import.meta.dirname, '../../fixtures/iggy/transcripts')

export function readTranscript(name: string): Transcript {
  const transcript = parseJson(readFileSync(join(FOLDER, name), 'utf8')) as Transcript
  return {
    ...transcript,
    steps: transcript.steps.map((step) => ({ ...step, response: expand(step.response, transcript) })),
  }
}

/** `{"$int": "digits"}` is a whole number, `{"$ref": "name"}` a definition. */
function expand<T>(value: T, transcript: Transcript): T {
  return JSON.parse(JSON.stringify(value), (_key, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null) return inner
    if ('$ref' in inner) return transcript.definitions?.[String(inner.$ref)]
    return '$int' in inner ? { exact: String(inner.$int) } : inner
  })
}

export class Client implements Disposable {
  private readonly url: string
  private readonly agent = new Agent({ keepAlive: true })
  /** Values captured from answers, for `{{name}}` in later steps. */
  readonly captured = new Map<string, string>()

  constructor(url: string) {
    this.url = url
  }

  async run(step: Step): Promise<Answer> {
    const { method, path, headers: changes = {}, body_repeat: repeat } = step.request
    const body =
      repeat === undefined ? step.request.body : repeat.prefix + repeat.char.repeat(repeat.count) + repeat.suffix
    const headers: Record<string, string> = { authorization: 'Bearer {{tok}}' }
    if (body !== undefined) headers['content-type'] = 'application/json'
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) delete headers[name]
      else headers[name] = value
    }
    for (const [name, value] of Object.entries(headers)) headers[name] = this.fill(value)
    const answer = await this.send(method, this.fill(path), headers, body === undefined ? undefined : this.fill(body))
    for (const [name, pointer] of Object.entries(step.capture ?? {})) {
      const value = at(answer.json, pointer)
      if (value !== undefined) this.captured.set(name, String(value))
    }
    return answer
  }

  send(method: string, path: string, headers: Readonly<Record<string, string>>, body?: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { hostname, port } = new URL(this.url)
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
      const options = { hostname, port, method, path, agent: this.agent, headers: { ...headers, ...length } }
      const outgoing = sendRequest(options, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const isJson = String(response.headers['content-type'] ?? '').startsWith('application/json') && text !== ''
          const json = isJson ? parseJson(text) : undefined
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json })
        })
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }

  [Symbol.dispose](): void {
    this.agent.destroy()
  }

  private fill(text: string): string {
    return text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => this.captured.get(name) ?? whole)
  }
}

function at(value: unknown, pointer: string): unknown {
  return pointer
    .split('/')
    .slice(1)
    .reduce<unknown>((found, key) => (found as Record<string, unknown> | undefined)?.[key], value)
}
