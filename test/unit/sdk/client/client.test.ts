import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Client } from '../../../../src/sdk/client/client.ts'
import { parseConnectionString } from '../../../../src/sdk/connection-string.ts'
import { SDK_DEFAULTS } from '../../../../src/sdk/defaults.ts'
import type { Dial } from '../../../../src/sdk/transport/transport.ts'

const TARGET = 'iggy://127.0.0.1:1?generation=classic&reconnection_interval=10ms&reestablish_after=0'

test('a read that makes the server hang up is asked for on a few connections', { timeout: 5000 }, async (context) => {
  let askedCount = 0
  const dial: Dial = async (events) => ({
    peer: 'touchy',
    write() {
      askedCount++
      setImmediate(() => events.closed(null))
      return true
    },
    pause() {},
    resume() {},
    end() {},
    abort() {},
  })
  const client = new Client(parseConnectionString(TARGET), dial)
  context.after(() => client.close())
  await client.open()
  await assert.rejects(client.streams.list(), { code: 'EDGE_CONNECTION_LOST' })
  assert.equal(askedCount, SDK_DEFAULTS.readConnections)
})

test('a server that takes connections and hangs up is not dialed again without a pause', async (context) => {
  let dialedCount = 0
  const dial: Dial = async (events) => {
    dialedCount++
    setImmediate(() => events.closed(null))
    return { peer: 'full', write: () => true, pause() {}, resume() {}, end() {}, abort() {} }
  }
  const target = TARGET.replace('10ms', '1h')
  const client = new Client(parseConnectionString(target), dial)
  context.after(() => client.close())
  await client.open()
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  assert.equal(dialedCount, 1)
})
