/** Passwords that are typed: at a terminal of the test. */
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { isUsageError } from '../../../../src/runtime/cli/grammar.ts'
import { askNewPassword, askPassword, type Terminal } from '../../../../src/runtime/cli/prompt.ts'

const { signal } = new AbortController()

/** Types each of `answers` when it is asked. */
function terminalThatTypes(answers: readonly string[]): Terminal & { shown(): string } {
  const input = Object.assign(new PassThrough(), { isTTY: true })
  const left = [...answers]
  let shown = ''
  const write = (text: string): void => {
    shown += text
    if (text.endsWith(': ')) setImmediate(() => input.write(left.shift() ?? ''))
  }
  return { input, output: { write }, shown: () => shown }
}

const refused = (text: RegExp) => (error: unknown) =>
  error instanceof EdgeError && isUsageError(error) && text.test(error.message)

test('a password that is typed is taken and not shown', async () => {
  const terminal = terminalThatTypes(['hidden\r'])
  assert.equal(await askPassword('ann', signal, terminal), 'hidden')
  assert.equal(terminal.shown(), 'Password of ann: \n')
})

test('Ctrl-C, Ctrl-D and a signal end the question with one line', async () => {
  for (const key of ['\u0003', '\u0004'])
    await assert.rejects(askPassword('ann', signal, terminalThatTypes([key])), refused(/^no password was given$/))
  const ended = AbortSignal.abort('SIGTERM')
  await assert.rejects(askPassword('ann', ended, terminalThatTypes([])), refused(/^no password was given$/))
})

test('a new password is asked for twice, and taken when both are the same', async () => {
  assert.equal(await askNewPassword('ann', signal, terminalThatTypes(['new one\r', 'new one\r'])), 'new one')
  await assert.rejects(askNewPassword('ann', signal, terminalThatTypes(['new one\r', 'newone\r'])), refused(/differ/))
})

test('without a terminal nothing is asked', async () => {
  const terminal = { ...terminalThatTypes([]), input: new PassThrough() }
  await assert.rejects(askPassword('ann', signal, terminal), refused(/there is no terminal to ask at/))
})
