/** What was acked is there after SIGKILL, whichever way it came in: a real process, killed right after the ack. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { type Client, connect } from '../../src/sdk/index.ts'
import { type EdgeProcess, startEdgeProcess } from '../support/edge-process.ts'

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const payloadOf = (words: string) => new TextEncoder().encode(words)
const tcpOf = (edge: EdgeProcess) => connect(`iggy+tcp://iggy:iggy@${edge.tcp}`)
const FIRST = { partitionId: 0, strategy: { kind: 'first' } } as const

async function createTopic(edge: EdgeProcess): Promise<void> {
  await using client = await tcpOf(edge)
  await client.streams.create('sensors')
  await client.topics.create('sensors', 'climate')
}

async function pollOverHttp(edge: EdgeProcess): Promise<readonly { offset: number; payload: string }[]> {
  const authorization = `Basic ${Buffer.from('iggy:iggy').toString('base64')}`
  const url = `http://${edge.http}/streams/sensors/topics/climate/messages?partition_id=0&kind=first&count=1000`
  const response = await fetch(url, { headers: { authorization } })
  const body = (await response.json()) as { messages: { header: { offset: number }; payload: string }[] }
  return body.messages.map(({ header, payload }) => ({
    offset: header.offset,
    payload: Buffer.from(payload, 'base64').toString(),
  }))
}

async function pollAll(client: Client): Promise<ReadonlyMap<bigint, string>> {
  const kept = new Map<bigint, string>()
  for (let offset = 0n; ; ) {
    const strategy = { kind: 'offset', offset } as const
    const { messages } = await client.messages.poll('sensors', 'climate', { partitionId: 0, strategy, count: 1000 })
    for (const message of messages) kept.set(message.offset, text(message.payload))
    const last = messages.at(-1)
    if (last === undefined) return kept
    offset = last.offset + 1n
  }
}

describe('after SIGKILL', () => {
  const dataPath = mkdtempSync(join(tmpdir(), 'edge-crash-'))
  after(() => rmSync(dataPath, { recursive: true, force: true }))

  it('a publish that was acked over QUIC is polled over TCP and HTTP at the same offset', async () => {
    let expectedOffset = -1n
    {
      await using edge = await startEdgeProcess({ dataPath })
      await createTopic(edge)
      const url = `iggy+wt://iggy:iggy@${edge.webtransport}?certificate_hash=${edge.certificateSha256}`
      await using client = await connect(url)
      const at = { kind: 'partition', partitionId: 0 } as const
      await client.messages.send('sensors', 'climate', at, [{ payload: payloadOf('21.5') }])
      const confirmation = await client.messages.send('sensors', 'climate', at, [{ payload: payloadOf('21.6') }])
      await edge.kill()
      assert.ok(confirmation !== null)
      expectedOffset = confirmation.baseOffset
    }
    await using edge = await startEdgeProcess({ dataPath })
    await using client = await tcpOf(edge)
    const { messages } = await client.messages.poll('sensors', 'climate', { ...FIRST, count: 10 })
    assert.deepEqual(
      messages.map(({ offset, payload }) => [offset, text(payload)]),
      [
        [0n, '21.5'],
        [1n, '21.6'],
      ],
    )
    assert.equal(expectedOffset, 1n)
    assert.deepEqual(await pollOverHttp(edge), [
      { offset: 0, payload: '21.5' },
      { offset: 1, payload: '21.6' },
    ])
    await edge.stop()
  })

  it('200 messages that were acked over TCP are there after five kills, each at the offset its ack named', async () => {
    const acked = new Map<bigint, string>()
    for (let life = 0; life < 5; life++) {
      await using edge = await startEdgeProcess({ dataPath })
      await using client = await tcpOf(edge)
      for (let i = 0; i < 40; i++) {
        const words = `life ${life} message ${i}`
        const at = { kind: 'partition', partitionId: 0 } as const
        const confirmation = await client.messages.send('sensors', 'climate', at, [{ payload: payloadOf(words) }])
        assert.ok(confirmation !== null && !acked.has(confirmation.baseOffset), 'an offset is given once')
        acked.set(confirmation.baseOffset, words)
      }
      await edge.kill()
    }
    await using edge = await startEdgeProcess({ dataPath })
    await using client = await tcpOf(edge)
    const kept = await pollAll(client)
    for (const [offset, words] of acked) assert.equal(kept.get(offset), words)
    assert.equal(acked.size, 200)
    assert.equal(await edge.stop(), 0)
  })
})
