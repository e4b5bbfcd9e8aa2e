/** Iggy's binary protocol over WebTransport: the same client, another carrier. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type QuicEdge, startQuicEdge } from '../../../src/quic-edge/index.ts'
import { serveIggySessions } from '../../../src/runtime/iggy-sessions.ts'
import { connect, dialWebTransport } from '../../../src/sdk/index.ts'
import { startProtocolServer } from '../../support/protocol-server.ts'
import { UdpRelay } from '../../support/udp-relay.ts'

async function startEdge(context: TestContext, { hasTcpFallback }: { hasTcpFallback: boolean }): Promise<QuicEdge> {
  const directory = mkdtempSync(join(tmpdir(), 'iggy-wt-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const server = await startProtocolServer()
  context.after(() => server[Symbol.asyncDispose]())
  const edge = await startQuicEdge(
    { host: '127.0.0.1', port: 0, certificate: { type: 'self-signed', directory }, hasTcpFallback },
    { paths: { '/iggy': serveIggySessions(server.server) } },
  )
  context.after(() => edge.close())
  return edge
}

test('a client on iggy+wt finds the generation, logs in, sends and polls', async (context) => {
  const edge = await startEdge(context, { hasTcpFallback: true })
  const hash = edge.certificate.sha256
  const client = await connect(`iggy+wt://iggy:iggy@127.0.0.1:${edge.port}?certificate_hash=${hash}`)
  context.after(() => client.close())
  assert.equal(client.dialect, 'vsr')
  await client.streams.create('site')
  await client.topics.create('site', 'temp')
  const payload = new Uint8Array(300_000).fill(7)
  await client.messages.send('site', 'temp', { kind: 'balanced' }, [{ payload }])
  const { messages } = await client.messages.poll('site', 'temp', { partitionId: 0, strategy: { kind: 'first' } })
  assert.deepEqual(messages[0]?.payload, payload)
})

test('QUIC comes about where its round trips take longer than its head start', async (context) => {
  const edge = await startEdge(context, { hasTcpFallback: false })
  const relay = await UdpRelay.open(edge.port)
  context.after(() => relay.close())
  relay.delayMs = 700
  const certificateHash = edge.certificate.sha256
  const where = { host: '127.0.0.1', port: relay.port, path: '/iggy', certificateHash, connectTimeoutMs: 15_000 }
  const events = { data() {}, drained() {}, closed() {} }
  const session = await dialWebTransport({ ...where, carrier: 'any' }, events, new AbortController().signal)
  context.after(() => session.abort())
  assert.equal(session.carrier, 'quic')
})

test('a name that leads nowhere is told as such', async () => {
  const where = { host: 'no..name', port: 8443, path: '/iggy', certificateHash: '', connectTimeoutMs: 5000 }
  const events = { data() {}, drained() {}, closed() {} }
  const dialing = dialWebTransport({ ...where, carrier: 'any' }, events, new AbortController().signal)
  await assert.rejects(dialing, { code: 'EDGE_UPSTREAM_UNREACHABLE', message: /^name lookup of no\.\.name: / })
})

test('a session outlives address translation that gives it another port again and again', async (context) => {
  const edge = await startEdge(context, { hasTcpFallback: false })
  const relay = await UdpRelay.open(edge.port)
  context.after(() => relay.close())
  const states: string[] = []
  const url = `iggy+wt://iggy:iggy@127.0.0.1:${relay.port}?certificate_hash=${edge.certificate.sha256}`
  const client = await connect(url, { onStateChange: (state) => void states.push(state) })
  context.after(() => client.close())
  await client.streams.create('site')
  await client.topics.create('site', 'temp')
  for (let round = 0; round < 20; round++) {
    relay.rebind()
    const startMs = performance.now()
    await client.messages.send('site', 'temp', { kind: 'balanced' }, [{ payload: new Uint8Array(3000) }])
    assert.ok(performance.now() - startMs < 1000, `gap at rebinding ${round}`)
  }
  assert.deepEqual(states, ['connecting', 'connected'])
})
