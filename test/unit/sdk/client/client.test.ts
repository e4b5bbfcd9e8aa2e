import assert from 'node:assert/strict'
import { test } from 'node:test'
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
