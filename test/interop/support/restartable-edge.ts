/** An edge that comes back where it was: for clients that are to go on by themselves. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EdgeProcess, startEdgeProcess } from '../../support/edge-process.ts'
import { freePort } from '../../support/free-port.ts'

/** An edge that can be killed and started again at the same addresses, on the same data. */
export class RestartableEdge implements AsyncDisposable {
  readonly #dataPath: string
  readonly #environment: Readonly<Record<string, string>>
  #edge: EdgeProcess

  private constructor(dataPath: string, environment: Readonly<Record<string, string>>, edge: EdgeProcess) {
    this.#dataPath = dataPath
    this.#environment = environment
    this.#edge = edge
  }

  static async start(environment: Readonly<Record<string, string>> = {}): Promise<RestartableEdge> {
    const dataPath = await mkdtemp(join(tmpdir(), 'edge-interop-'))
    const fixed: Record<string, string> = { EDGE_QUIC__ENABLED: 'true', ...environment }
    // Ports that nobody is given while the edge is away.
    for (const listener of ['TCP', 'WEBSOCKET', 'QUIC', 'HTTP'])
      fixed[`EDGE_${listener}__ADDRESS`] = `127.0.0.1:${await freePort()}`
    return new RestartableEdge(dataPath, fixed, await startEdgeProcess({ dataPath, environment: fixed }))
  }

  get addresses(): Readonly<Record<'tcp' | 'websocket' | 'quic' | 'http', string>> {
    const { tcp, websocket, quic, http } = this.#edge
    return { tcp, websocket, quic, http }
  }

  /** What it said since it was started last, oldest first. */
  get lines(): readonly Record<string, unknown>[] {
    return this.#edge.lines
  }

  /** SIGKILL, and the same edge again. */
  async restart(): Promise<void> {
    await this.#edge.kill()
    this.#edge = await startEdgeProcess({ dataPath: this.#dataPath, environment: this.#environment })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#edge.kill()
    await rm(this.#dataPath, { recursive: true, force: true })
  }
}
