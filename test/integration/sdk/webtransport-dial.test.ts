/** How a WebTransport session comes about, or why it does not: addresses, blocked UDP, certificates. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type QuicEdge, startQuicEdge } from '../../../src/quic-edge/index.ts'
import { dialWebTransport, probeQuic, type WebTransportSession } from '../../../src/sdk/index.ts'
import { TcpRelay } from '../../support/tcp-relay.ts'
import { openBlackHole } from '../../support/udp-black-hole.ts'

type Where = Parameters<typeof dialWebTransport>[0]

const EVENTS = { data() {}, drained() {}, closed() {} }
const OTHER_HASH = 'ab'.repeat(32)

async function startEdge(context: TestContext, host: string): Promise<QuicEdge> {
  const directory = mkdtempSync(join(tmpdir(), 'wt-dial-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const session = { streamOpened: () => null, datagram() {}, closed() {} }
  const edge = await startQuicEdge(
    { host, port: 0, certificate: { type: 'self-signed', directory }, hasTcpFallback: true },
    { paths: { '/iggy': { opened: () => session } } },
  )
  context.after(() => edge.close())
  return edge
}

const whereOf = (edge: QuicEdge, change: Partial<Where> = {}): Where => ({
  host: '127.0.0.1',
  port: edge.port,
  path: '/iggy',
  certificateHash: edge.certificate.sha256,
  connectTimeoutMs: 8000,
  carrier: 'any',
  ...change,
})

async function dial(context: TestContext, where: Where): Promise<{ session: WebTransportSession; tookMs: number }> {
  const startMs = performance.now()
  const session = await dialWebTransport(where, EVENTS, new AbortController().signal)
  context.after(() => session.abort())
  return { session, tookMs: performance.now() - startMs }
}

for (const host of ['127.0.0.1', '::1']) {
  test(`of a name with two addresses QUIC reaches the one that answers: ${host}`, async (context) => {
    const edge = await startEdge(context, host)
    if (host === '::1') {
      // The first address is silent, and lets go of the attempt in the end.
      const dead = await openBlackHole(edge.port)
      context.after(() => dead.release())
    }
    const { session } = await dial(
      context,
      whereOf(edge, { host: 'localhost', carrier: 'quic', connectTimeoutMs: 3000 }),
    )
    assert.equal(session.carrier, 'quic')
  })
}

test('QUIC that did not get through is not waited for again in the same network', async (context) => {
  const edge = await startEdge(context, '127.0.0.1')
  const relay = await TcpRelay.open(() => edge.port)
  context.after(() => relay.close())
  const blocked = await openBlackHole(relay.port)
  context.after(() => blocked.release())
  const where = whereOf(edge, { port: relay.port })
  const first = await dial(context, where)
  assert.equal(first.session.carrier, 'http2')
  const again = await dial(context, where)
  assert.equal(again.session.carrier, 'http2')
  assert.ok(first.tookMs > 2400 && again.tookMs < 2000, `${first.tookMs} ms, then ${again.tookMs} ms`)
  assert.equal(await probeQuic(where, new AbortController().signal), false)
})

for (const carrier of ['any', 'quic', 'http2'] as const) {
  test(`${carrier}: a certificate that is another one is told as such`, async (context) => {
    const edge = await startEdge(context, '127.0.0.1')
    const dialing = dialWebTransport(
      whereOf(edge, { certificateHash: OTHER_HASH, carrier }),
      EVENTS,
      new AbortController().signal,
    )
    const found = new RegExp(`SHA-256 ${edge.certificate.sha256}, expected certificate_hash ${OTHER_HASH}`)
    const message = carrier === 'quic' ? /invalid peer certificate/ : found
    await assert.rejects(dialing, { code: 'EDGE_UPSTREAM_UNREACHABLE', message, details: detailsOf('certificate') })
  })

  test(`${carrier}: so is one that no authority vouches for, where none is pinned`, async (context) => {
    const edge = await startEdge(context, '127.0.0.1')
    const dialing = dialWebTransport(
      whereOf(edge, { certificateHash: '', carrier }),
      EVENTS,
      new AbortController().signal,
    )
    await assert.rejects(dialing, (error: { details: { reason: string } }) => error.details.reason === 'certificate')
  })
}

test('where nothing listens, that is told over HTTP/2 too', async (context) => {
  const edge = await startEdge(context, '127.0.0.1')
  const dialing = dialWebTransport(whereOf(edge, { port: 1, carrier: 'http2' }), EVENTS, new AbortController().signal)
  await assert.rejects(dialing, { code: 'EDGE_UPSTREAM_UNREACHABLE', message: /ECONNREFUSED/ })
})

function detailsOf(reason: string): Readonly<Record<string, unknown>> {
  return { reason }
}
