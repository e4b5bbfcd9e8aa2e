/** The load of `bench`, in both generations of the protocol, against a server of our own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LoadOrder, runLoad } from '../../../src/runtime/bench/load.ts'
import type { LoadTarget } from '../../../src/runtime/bench/load-client.ts'
import { connect, DEFAULT_CONNECTION_OPTIONS, tcpDial } from '../../../src/sdk/index.ts'
import { startProtocolServer } from '../../support/protocol-server.ts'

const ORDER: Omit<LoadOrder, 'kind'> = {
  connections: 2,
  partitions: 2,
  batch: 10,
  payloadBytes: 20,
  requests: 30,
  seconds: 20,
  stream: 's',
  topic: 't',
}

for (const dialect of ['classic', 'vsr'] as const) {
  test(`${dialect}: what the load sends is there, and it counts what it polls`, async () => {
    await using server = await startProtocolServer()
    const { port } = server.listener
    const client = await connect(`iggy://iggy:iggy@127.0.0.1:${port}`)
    await client.streams.create('s')
    await client.topics.create('s', 't', { partitions: 2 })
    const credentials = { kind: 'password', username: 'iggy', password: 'iggy' } as const
    const dial = tcpDial({ host: '127.0.0.1', port, ...DEFAULT_CONNECTION_OPTIONS })
    const target: LoadTarget = { dial, credentials, dialect }

    const sent = await runLoad({ ...ORDER, kind: 'send' }, target)
    assert.deepEqual([sent.requests, sent.messages, sent.isCutShort], [30, 300, true])
    assert.equal((await client.topics.get('s', 't'))?.messagesCount, 300n)

    const polled = await runLoad({ ...ORDER, kind: 'poll' }, target)
    assert.ok(polled.messages > 0 && polled.messages <= 300)

    const wrong = { ...target, credentials: { ...credentials, password: 'wrong' } }
    await assert.rejects(runLoad({ ...ORDER, kind: 'poll' }, wrong), { code: 'EDGE_CREDENTIALS_INVALID' })
    await client.close()
  })
}
