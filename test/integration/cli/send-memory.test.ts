import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { collectGarbage } from '../../../src/garbage.ts'
import { Values } from '../../../src/runtime/cli/grammar.ts'
import { sendMessages } from '../../../src/runtime/cli/messages/send.ts'
import type { Output } from '../../../src/runtime/cli/server-command.ts'
import type { Client } from '../../../src/sdk/index.ts'

test('a file of any size is sent in constant memory', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'send-memory-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'lines')
  const lineCount = 60_000
  writeFileSync(file, `{"payload":"${Buffer.alloc(300).toString('base64')}"}\n`.repeat(lineCount))
  const heapBytes: number[] = []
  let sentCount = 0
  const send = async (...[, , , batch]: Parameters<Client['messages']['send']>) => {
    sentCount += batch.length
    collectGarbage()
    heapBytes.push(process.memoryUsage().heapUsed)
    return null
  }
  const values = new Values(new Map(Object.entries({ stream: ['s'], topic: ['t'], 'input-file': [file] })))
  const client = { messages: { send } } as unknown as Client
  const { signal } = new AbortController()
  const output = { done() {} } as unknown as Output
  await sendMessages(client, values, output, { environment: {}, print() {}, flush: async () => {}, note() {}, signal })
  assert.equal(sentCount, lineCount)
  const growth = (heapBytes.at(-1) ?? 0) - (heapBytes[2] ?? 0)
  assert.ok(growth < 8 * 1024 * 1024, `${growth} bytes more`)
})
