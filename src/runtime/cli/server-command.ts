/** Makes commands that ask a server and print what it says: connection, form of output and errors are the same for all. */
import type { Client } from '../../sdk/index.ts'
import { type Command, type CommandContext, EXIT } from './command.ts'
import type { CommandSpec, Values } from './grammar.ts'
import { formatRow, formatRows, OUTPUT_FORMS, type OutputForm, type Row } from './output.ts'
import { SERVER_ARGUMENTS } from './server-arguments.ts'

export class Output {
  readonly form: OutputForm
  readonly #isQuiet: boolean
  readonly #context: CommandContext

  constructor(values: Values, context: CommandContext) {
    this.form = values.choice('output', 'table', OUTPUT_FORMS)
    this.#isQuiet = values.has('quiet')
    this.#context = context
  }

  rows(rows: readonly Row[]): void {
    this.line(formatRows(rows, this.form))
  }

  row(row: Row): void {
    this.line(formatRow(row, this.form))
  }

  /** What was done: a sentence for people, the thing itself for programs. */
  done(sentence: string, row: Row): void {
    this.line(this.form === 'json' ? formatRow(row, 'json') : sentence)
  }

  /** As `done`, of what is shown this once: `--quiet` must not lose it. */
  once(text: string, row: Row): void {
    this.#context.print(this.form === 'json' ? formatRow(row, 'json') : text)
  }

  line(text: string | Buffer): void {
    if (!this.#isQuiet) this.#context.print(text)
  }

  note(text: string): void {
    if (!this.#isQuiet) this.#context.note(text)
  }
}

export interface ServerCommand extends Omit<CommandSpec, 'common'> {
  run(client: Client, values: Values, output: Output, context: CommandContext): Promise<void>
}

export function serverCommand({ run, ...spec }: ServerCommand): Command {
  return {
    ...spec,
    common: SERVER_ARGUMENTS,
    async run(values, context) {
      const output = new Output(values, context)
      const { connectClient } = await import('./server-client.ts')
      await using client = await connectClient(values, context)
      await run(client, values, output, context)
      return EXIT.ok
    },
  }
}
