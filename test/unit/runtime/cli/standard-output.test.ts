/** What was printed reaches its reader before a command has ended. */
import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { StandardOutput } from '../../../../src/runtime/cli/standard-output.ts'

interface Reader {
  readonly taken: string[]
  /** Takes the next piece. */
  take(error?: Error): void
  readonly stream: Writable
}

/** A pipe whose reader takes a piece when the test says so. */
function slowReader(): Reader {
  const taken: string[] = []
  const waiting: (() => void)[] = []
  let next: { error: Error | null }[] = []
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const given = next.shift()
      const end = (error: Error | null) => {
        if (error === null) taken.push(chunk.toString())
        done(error)
      }
      if (given === undefined) waiting.push(() => end(next.shift()?.error ?? null))
      else end(given.error)
    },
  })
  const take = (error?: Error) => {
    next = [...next, { error: error ?? null }]
    waiting.shift()?.()
  }
  return { taken, take, stream }
}

const coded = (code: string): Error => Object.assign(new Error(`${code}: write`), { code })

test('flush resolves when a slow reader has taken the last line', async () => {
  const { stream, taken, take } = slowReader()
  const output = new StandardOutput(
    () => stream,
    () => assert.fail('the reader is there'),
  )
  for (const line of ['one', 'two']) output.print(line)
  let isFlushed = false
  const flushed = output.flush().then(() => {
    isFlushed = true
  })
  take()
  await new Promise(setImmediate)
  assert.equal(isFlushed, false)
  take()
  take()
  await flushed
  assert.deepEqual(taken.slice(0, 2), ['one\n', 'two\n'])
})

test('a reader that leaves is told once and is no error', async () => {
  const { stream, take } = slowReader()
  let goneCount = 0
  const output = new StandardOutput(
    () => stream,
    () => goneCount++,
  )
  output.print('one')
  take(coded('EPIPE'))
  await output.flush()
  output.print('two')
  await output.flush()
  assert.equal(goneCount, 1)
})

test('what cannot be written is an error, not a result that looks whole', async () => {
  const { stream, take } = slowReader()
  const output = new StandardOutput(
    () => stream,
    () => assert.fail('nobody left'),
  )
  output.print('one')
  take(coded('ENOSPC'))
  await assert.rejects(output.flush(), { code: 'EDGE_IO', message: /^standard output cannot be written: ENOSPC/ })
})

test('a command that prints nothing opens nothing', async () => {
  await new StandardOutput(
    () => assert.fail('opened'),
    () => {},
  ).flush()
})
