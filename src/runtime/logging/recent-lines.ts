/** The newest lines of the log, for the diagnosis archive: standard error may be kept by nobody. Bounded. Pure. */
import type { LineSink } from '../../logger.ts'

/** Some hundred lines. */
export const RECENT_LINES_MAX_CHARS = 64 * 1024

export class RecentLines implements LineSink {
  readonly #maxChars: number
  readonly #lines: string[] = []
  #chars = 0

  constructor(maxChars = RECENT_LINES_MAX_CHARS) {
    this.#maxChars = maxChars
  }

  /** The oldest first, each with its line feed. */
  get text(): string {
    return this.#lines.join('')
  }

  write(line: string): void {
    this.#lines.push(line)
    this.#chars += line.length
    while (this.#chars > this.#maxChars) this.#chars -= this.#lines.shift()?.length ?? this.#chars
  }
}
