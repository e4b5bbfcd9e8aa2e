/**
 * What commands print. A pipe takes what fits into it and the rest later: a process that ends before that has cut its result
 * short. Whoever reads may have enough, as `head` does; that is no error.
 */
import type { Writable } from 'node:stream'
import { EdgeError, messageOf, systemCodeOf } from '../../errors.ts'

const LINE_FEED = Buffer.from('\n')

export class StandardOutput {
  readonly #open: () => Writable
  readonly #onReaderGone: () => void
  /** Opened with the first line: the service prints none. */
  #stream: Writable | null = null
  #failure: Error | null = null

  constructor(open: () => Writable, onReaderGone: () => void) {
    this.#open = open
    this.#onReaderGone = onReaderGone
  }

  print(line: string | Buffer): void {
    this.#stream ??= this.#open().on('error', (error) => this.#failed(error))
    if (this.#failure === null)
      this.#stream.write(typeof line === 'string' ? `${line}\n` : Buffer.concat([line, LINE_FEED]))
  }

  /** Resolves when all that was printed is with its reader, or that one is gone. @throws {EdgeError} EDGE_IO. */
  async flush(): Promise<void> {
    if (this.#stream !== null && this.#failure === null) {
      const error = await written(this.#stream)
      if (error !== null) this.#failed(error)
    }
    const failure = this.#failure
    if (failure === null || isReaderGone(failure)) return
    throw new EdgeError('EDGE_IO', `standard output cannot be written: ${messageOf(failure)}`, { cause: failure })
  }

  #failed(error: Error): void {
    if (this.#failure !== null) return
    this.#failure = error
    if (isReaderGone(error)) this.#onReaderGone()
  }
}

const isReaderGone = (error: Error): boolean => systemCodeOf(error) === 'EPIPE'

/** Resolves when everything before was handed on. @returns why it was not. */
export function written(stream: Writable): Promise<Error | null> {
  return new Promise((resolve) => stream.write('', (error) => resolve(error ?? null)))
}
