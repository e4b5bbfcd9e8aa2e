/** Asks for a password at the terminal without showing what is typed. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { usageError } from './grammar.ts'

/** @throws {EdgeError} a usage error when there is no terminal to ask at. */
export async function askPassword(username: string, signal: AbortSignal): Promise<string> {
  if (process.stdin.isTTY !== true)
    throw usageError('password is missing: give --password or IGGY_PASSWORD (there is no terminal to ask at)')
  process.stderr.write(`Password of ${username}: `)
  // The line editor echoes what is typed into its output: this one goes nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return await lines.question('', { signal })
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}
