/** Asks for a password at the terminal without showing what is typed. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { usageError } from './grammar.ts'

export interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly output: { write(text: string): unknown }
}

/** Only when something is asked: standard input is opened by its first use. */
const ownTerminal = (): Terminal => ({ input: process.stdin, output: process.stderr })

/** @throws {EdgeError} a usage error when there is no terminal to ask at, or nothing was typed but Ctrl-C or Ctrl-D. */
export async function askPassword(username: string, signal: AbortSignal, terminal = ownTerminal()): Promise<string> {
  const { input, output } = terminal
  if (input.isTTY !== true)
    throw usageError('password is missing: give --password or IGGY_PASSWORD (there is no terminal to ask at)')
  output.write(`Password of ${username}: `)
  // The line editor echoes what is typed into its output: this one goes nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output: nowhere, terminal: true })
  try {
    return await lines.question('', { signal })
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') throw usageError('no password was given')
    throw error
  } finally {
    lines.close()
    output.write('\n')
  }
}

/** Nobody sees what is typed: once mistyped, the user would be shut out. @throws {EdgeError} as `askPassword`, or the two differ. */
export async function askNewPassword(username: string, signal: AbortSignal, terminal = ownTerminal()): Promise<string> {
  const first = await askPassword(`${username} from now on`, signal, terminal)
  const second = await askPassword(`${username} once more`, signal, terminal)
  if (first !== second) throw usageError('the two passwords differ: nothing was changed')
  return first
}
