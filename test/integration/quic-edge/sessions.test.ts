import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { QuicSession, QuicStream } from '../../../src/quic-edge/index.ts'
import { loadWebTransport } from '../../../src/quinn-transport/index.ts'
import { eventually } from '../../support/eventually.ts'
import { echoHandlers, exchange, quietSession, quietStream, startBench } from '../../support/quic-edge-bench.ts'
import { openBlackHole } from '../../support/udp-black-hole.ts'

const MIB = 1024 * 1024

for (const isReliableOnly of [false, true]) {
  const carrier = isReliableOnly ? 'HTTP/2' : 'QUIC'

  test(`over ${carrier} bytes come back unchanged, small and large`, async () => {
    await using bench = await startBench(echoHandlers())
    const session = await bench.connect({ isReliableOnly })
    for (const size of [0, 5, 200, 3 * MIB]) {
      const bytes = Uint8Array.from({ length: size }, (_, at) => (at * 31) % 251)
      const stream = await session.createBidirectionalStream({ waitUntilAvailable: true })
      assert.ok(Buffer.from(await exchange(stream, bytes)).equals(bytes), `${size} bytes`)
    }
  })

  test(`over ${carrier} 64 streams at once keep their bytes apart`, async () => {
    await using bench = await startBench(echoHandlers(), { limits: { maxStreamsPerSession: 100 } })
    const session = await bench.connect({ isReliableOnly })
    const exchanges = Array.from({ length: 64 }, async (_, number) => {
      const bytes = new Uint8Array(5000).fill(number)
      const stream = await session.createBidirectionalStream({ waitUntilAvailable: true })
      assert.ok(Buffer.from(await exchange(stream, bytes)).equals(bytes), `stream ${number}`)
    })
    await Promise.all(exchanges)
  })

  test(`over ${carrier} an unknown path gets no session`, async () => {
    await using bench = await startBench(echoHandlers())
    for (const path of ['/', '/nowhere', '/test/x']) {
      await assert.rejects(bench.connect({ path, isReliableOnly }), path)
    }
    assert.equal(bench.edge.sessionCount, 0)
  })

  test(`over ${carrier} a session above the limit is refused until another one ends`, async () => {
    await using bench = await startBench(echoHandlers(), { limits: { maxSessions: 1 } })
    const first = await bench.connect({ isReliableOnly })
    await assert.rejects(bench.connect({ isReliableOnly }))
    first.close({ closeCode: 0, reason: '' })
    await eventually(() => bench.edge.sessionCount === 0, 'the first session to end')
    await bench.connect({ isReliableOnly })
    assert.equal(bench.edge.refusedCount, 1)
  })

  test(`over ${carrier} both sides learn the code the other one closed with`, async () => {
    const ends: number[] = []
    const served: QuicSession[] = []
    const handlers = {
      paths: {
        '/test': {
          opened(session: QuicSession) {
            served.push(session)
            return { ...quietSession, closed: (code: number) => void ends.push(code) }
          },
        },
      },
    }
    await using bench = await startBench(handlers)
    const first = await bench.connect({ isReliableOnly })
    first.close({ closeCode: 7, reason: 'done' })
    await eventually(() => ends.length === 1, 'the server to see the end')
    const second = await bench.connect({ isReliableOnly })
    await eventually(() => served.length === 2, 'the server to see the second session')
    served[1]?.close(16, 'taken over')
    assert.equal((await second.closed).closeCode, 16)
    // Over HTTP/2 a stream goes a moment after it was closed.
    await eventually(() => ends.length === 2, 'the server to end it, too')
    assert.deepEqual(ends, [7, 16])
  })
}

test('datagrams go both ways over QUIC; empty ones are pings and are not handed on', async () => {
  await using bench = await startBench(echoHandlers())
  const session = await bench.connect()
  const writer = session.datagrams.createWritable().getWriter()
  const reader = session.datagrams.readable.getReader()
  await writer.write(new Uint8Array())
  for (let number = 1; number <= 100; number++) {
    await writer.write(Uint8Array.of(number))
    assert.deepEqual((await reader.read()).value, Uint8Array.of(number))
  }
  assert.ok(session.datagrams.maxDatagramSize > 1000)
})

test('what a handler does not work off is not read: the bound holds, and everything comes when credit does', async () => {
  const served: { stream?: QuicStream; receivedBytes: number; session?: QuicSession } = { receivedBytes: 0 }
  const opened = (session: QuicSession) => {
    served.session = session
    const streamOpened = (stream: QuicStream) => {
      served.stream = stream
      const data = (view: Uint8Array) => {
        served.receivedBytes += view.byteLength
      }
      return { ...quietStream, data }
    }
    return { ...quietSession, streamOpened }
  }
  const limit = 256 * 1024
  await using bench = await startBench(
    { paths: { '/test': { opened } } },
    { limits: { maxUnreadBytesPerSession: limit } },
  )
  const session = await bench.connect()
  const writer = (await session.createBidirectionalStream()).writable.getWriter()
  let writtenBytes = 0
  const writing = (async () => {
    for (; writtenBytes < 6 * MIB; writtenBytes += 65_536) await writer.write(new Uint8Array(65_536))
  })()
  await eventually(() => served.receivedBytes >= limit, 'the bound to be reached')
  // The writer must come to a stop: watch it until it stands still.
  await standsStill(() => writtenBytes)
  assert.ok(served.receivedBytes <= limit + 64 * 1024, `${served.receivedBytes} bytes were handed over`)
  assert.ok(writtenBytes < 4 * MIB, `${writtenBytes} bytes were taken from the writer`)
  let granted = 0
  await eventually(() => {
    served.stream?.grant(served.receivedBytes - granted)
    granted = served.receivedBytes
    return served.receivedBytes === 6 * MIB
  }, 'everything to arrive')
  await writing
})

test('a stream whose handler never works anything off is reset after the pause timeout', async () => {
  const errors: (string | undefined)[] = []
  const streamOpened = () => ({
    ...quietStream,
    closed: (error: { code: string } | null) => void errors.push(error?.code),
  })
  const opened = () => ({ ...quietSession, streamOpened })
  const limits = { maxUnreadBytesPerSession: 16 * 1024, pauseTimeoutMs: 500 }
  await using bench = await startBench({ paths: { '/test': { opened } } }, { limits })
  const session = await bench.connect()
  const writer = (await session.createBidirectionalStream()).writable.getWriter()
  await assert.rejects(async () => {
    for (let count = 0; count < 1000; count++) await writer.write(new Uint8Array(65_536))
  })
  assert.deepEqual(errors, ['EDGE_BACKPRESSURE'])
})

test('a peer that does not read slows the writer down, which hears when it may go on', async () => {
  let served: QuicStream | undefined
  let drainedCount = 0
  const streamOpened = (stream: QuicStream) => {
    served = stream
    return { ...quietStream, drained: () => void drainedCount++ }
  }
  await using bench = await startBench({ paths: { '/test': { opened: () => ({ ...quietSession, streamOpened }) } } })
  const session = await bench.connect()
  const stream = await session.createBidirectionalStream()
  await stream.writable.getWriter().write(Uint8Array.of(1))
  await eventually(() => served !== undefined, 'the stream')
  let writtenBytes = 0
  while (served?.write(new Uint8Array(65_536))) writtenBytes += 65_536
  assert.ok(writtenBytes <= MIB)
  const reader = stream.readable.getReader()
  await eventually(() => {
    // The last one is still waiting when the session is closed.
    reader.read().catch(() => {})
    return drainedCount > 0
  }, 'the writer to be woken')
})

test('streams above the limit are reset, and a session that goes on opening them is closed', async () => {
  const opened = () => ({ ...quietSession, streamOpened: () => quietStream })
  await using bench = await startBench({ paths: { '/test': { opened } } }, { limits: { maxStreamsPerSession: 4 } })
  const session = await bench.connect()
  const closed = session.closed
  for (let count = 0; count < 100; count++) {
    const stream = await session.createBidirectionalStream().catch(() => undefined)
    if (stream === undefined) break
    const writer = stream.writable.getWriter()
    writer.closed.catch(() => {})
    writer.write(Uint8Array.of(1)).catch(() => {})
  }
  assert.equal((await closed).closeCode, 15)
})

test('unidirectional streams are refused and leave nothing behind', async () => {
  await using bench = await startBench(echoHandlers())
  const { WebTransport } = await loadWebTransport()
  const value = Uint8Array.from(Buffer.from(bench.edge.certificate.sha256, 'hex'))
  const session = new WebTransport(`https://127.0.0.1:${bench.edge.port}/test`, {
    serverCertificateHashes: [{ algorithm: 'sha-256', value }],
    requireUnreliable: true,
  }) as Awaited<ReturnType<typeof bench.connect>> & { createUnidirectionalStream(): Promise<WritableStream> }
  session.closed.catch(() => {})
  await session.ready
  const writer = (await session.createUnidirectionalStream()).getWriter()
  await assert.rejects(async () => {
    for (let count = 0; count < 1000; count++) await writer.write(new Uint8Array(65_536))
  })
  session.close({ closeCode: 0, reason: '' })
})

test('a session that opens nothing is closed as idle', async () => {
  await using bench = await startBench(echoHandlers(), { limits: { handshakeTimeoutMs: 500 } })
  for (const isReliableOnly of [false, true]) {
    const session = await bench.connect({ isReliableOnly })
    assert.equal((await session.closed).closeCode, 19)
  }
})

test('a hundred sessions come and go, and none is left', async () => {
  await using bench = await startBench(echoHandlers())
  for (let count = 0; count < 100; count++) {
    const session = await bench.connect({ isReliableOnly: count % 2 === 0 })
    const stream = await session.createBidirectionalStream({ waitUntilAvailable: true })
    assert.equal((await exchange(stream, Uint8Array.of(count))).byteLength, 1)
    session.close({ closeCode: 0, reason: '' })
  }
  await eventually(() => bench.edge.sessionCount === 0, 'all sessions to end')
})

test('where UDP is swallowed a client has a session over HTTP/2 within three seconds', async () => {
  await using bench = await startBench(echoHandlers())
  // Another address of this machine on the same TCP port, with nothing but the black hole on its UDP side.
  const { relay, port } = await tcpRelay(bench.edge.port)
  const hole = await openBlackHole(port)
  const { WebTransport } = await loadWebTransport()
  const value = Uint8Array.from(Buffer.from(bench.edge.certificate.sha256, 'hex'))
  const startedMs = performance.now()
  const session = new WebTransport(`https://127.0.0.1:${port}/test`, {
    serverCertificateHashes: [{ algorithm: 'sha-256', value }],
    quicConnectTimeout: 1500,
  })
  session.closed.catch(() => {})
  await session.ready
  assert.equal(session.reliability, 'reliable-only')
  assert.ok(performance.now() - startedMs < 3000)
  assert.ok(hole.packetCount > 0, 'QUIC was tried first')
  const stream = await session.createBidirectionalStream({ waitUntilAvailable: true })
  assert.equal(Buffer.from(await exchange(stream, Buffer.from('over TCP'))).toString(), 'over TCP')
  session.close({ closeCode: 0, reason: '' })
  await hole.release()
  relay.close()
})

/** @returns when the figure has not changed for a while. */
async function standsStill(figure: () => number): Promise<void> {
  let before = -1
  let sinceMs = performance.now()
  await eventually(() => {
    const now = figure()
    if (now !== before) sinceMs = performance.now()
    before = now
    return performance.now() - sinceMs > 300
  }, 'the figure to stand still')
}

async function tcpRelay(target: number) {
  const { connect, createServer } = await import('node:net')
  const relay = createServer((socket) => {
    const onward = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      from.on('error', () => to.destroy())
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  const address = relay.address()
  assert.ok(typeof address === 'object' && address !== null)
  return { relay, port: address.port }
}
