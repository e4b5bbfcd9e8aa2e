/** What a command is, and what it gets from the process. */
import type { CommandSpec, Values } from './grammar.ts'

export interface CommandContext {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** A line on stdout: results, for people and pipes. Bytes are payloads, and stay what they are. */
  print(line: string | Buffer): void
  /** Resolves when what was printed is with its reader: whoever prints without an end waits for it. */
  flush(): Promise<void>
  /** A line on stderr: what is going on. */
  note(line: string): void
  /** Aborted by SIGINT and SIGTERM, and when nobody reads any more what is printed. */
  readonly signal: AbortSignal
}

export interface Command extends CommandSpec {
  /** @returns the exit code. @throws EdgeError: printed as one line. */
  run(values: Values, context: CommandContext): Promise<number>
}

/** Exit codes, as in sysexits(3) where it has one. */
export const EXIT = { ok: 0, failed: 1, usage: 64, unavailable: 69, tryLater: 75, config: 78 } as const
