/** An edge on loopback with one path, and clients for it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Clock } from '../../src/clock.ts'
import {
  type CertificateSource,
  limitsOf,
  type QuicEdge,
  type QuicEdgeHandlers,
  type QuicStream,
  type QuicStreamEvents,
  type SessionLimits,
  startQuicEdge,
} from '../../src/quic-edge/index.ts'
import { loadWebTransport, type PackageClientSession, type PackageStream } from '../../src/quinn-transport/index.ts'

export interface QuicEdgeBench extends AsyncDisposable {
  readonly edge: QuicEdge
  connect(options?: ConnectOptions): Promise<PackageClientSession>
}

interface ConnectOptions {
  readonly path?: string
  readonly isReliableOnly?: boolean
  readonly certificateSha256?: string
  readonly port?: number
}

export async function startBench(
  handlers: QuicEdgeHandlers,
  options: { limits?: Partial<SessionLimits>; clock?: Clock; certificate?: CertificateSource } = {},
): Promise<QuicEdgeBench> {
  const directory = mkdtempSync(path.join(tmpdir(), 'quic-edge-'))
  const edge = await startQuicEdge(
    {
      host: '127.0.0.1',
      port: 0,
      certificate: options.certificate ?? { type: 'self-signed', directory },
      hasTcpFallback: true,
      limits: { ...limitsOf(), ...options.limits },
      ...(options.clock === undefined ? {} : { clock: options.clock }),
    },
    handlers,
  )
  const sessions: PackageClientSession[] = []
  return {
    edge,
    async connect(how = {}) {
      const session = await dial(edge, how)
      sessions.push(session)
      await session.ready
      return session
    },
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.close({ closeCode: 0, reason: '' })
      await edge.close()
      rmSync(directory, { recursive: true })
    },
  }
}

async function dial(edge: QuicEdge, how: ConnectOptions): Promise<PackageClientSession> {
  const { WebTransport } = await loadWebTransport()
  const value = Uint8Array.from(Buffer.from(how.certificateSha256 ?? edge.certificate.sha256, 'hex'))
  const session = new WebTransport(`https://127.0.0.1:${how.port ?? edge.port}${how.path ?? '/test'}`, {
    serverCertificateHashes: [{ algorithm: 'sha-256', value }],
    ...(how.isReliableOnly ? { forceReliable: true } : { requireUnreliable: true }),
  })
  session.closed.catch(() => {})
  return session
}

/** Handlers of a path that sends everything back. */
export function echoHandlers(): QuicEdgeHandlers {
  return {
    paths: {
      '/test': {
        opened: (session) => ({
          ...quietSession,
          streamOpened: echo,
          datagram: (view) => void session.sendDatagram(view.slice()),
        }),
      },
    },
  }
}

export const quietSession = { streamOpened: (): QuicStreamEvents | null => null, datagram() {}, closed() {} }
export const quietStream: QuicStreamEvents = { data() {}, ended() {}, drained() {}, closed() {} }

/** Gives credit back when its own bytes have left: a slow reader slows the writer. */
function echo(stream: QuicStream): QuicStreamEvents {
  let owed = 0
  return {
    ...quietStream,
    data(bytesView) {
      if (stream.write(bytesView.slice())) stream.grant(bytesView.byteLength)
      else owed += bytesView.byteLength
    },
    drained() {
      stream.grant(owed)
      owed = 0
    },
    ended: () => stream.end(),
  }
}

/** Writes, ends, and reads to the end. */
export async function exchange(stream: PackageStream, bytes: Uint8Array): Promise<Uint8Array> {
  const writer = stream.writable.getWriter()
  const written = (async () => {
    for (let at = 0; at < bytes.byteLength; at += 65_536) await writer.write(bytes.subarray(at, at + 65_536))
    await writer.close()
  })()
  const chunks: Uint8Array[] = []
  for await (const chunk of stream.readable) chunks.push(chunk)
  await written
  return Buffer.concat(chunks)
}
