/** What both drivers do with a server of the WebTransport package: ask the gate, take sessions, wait for it to listen. */
import { EdgeError, messageOf } from '../../errors.ts'
import type { PackageDecision, PackageHeaders, PackageServer } from '../../quinn-transport/index.ts'
import type { ListenOptions, SessionGate, SessionRequest } from '../ports.ts'
import type { SessionHost } from './session-host.ts'

/** All paths come out of one stream of the package: ours are told apart by what we put into `userData`. */
const ANY_PATH = '/'
const STATUS_NOT_IMPLEMENTED = 501

export interface SessionTraits {
  readonly isReliableOnly: boolean
  readonly maxStreamsEver: number
}

/**
 * Answers the server's session requests through `gate` and hands its sessions to `host`.
 */
export function serveSessions(
  server: PackageServer,
  gate: SessionGate,
  host: SessionHost,
  traits: SessionTraits,
): void {
  server.setRequestCallback(async ({ header }) => decide(header, gate))
  void takeSessions(server, host, traits)
}

/** @throws EDGE_ADDRESS_IN_USE, EDGE_CONFIG_INVALID, EDGE_IO. */
export async function listening(
  server: PackageServer,
  options: ListenOptions,
): Promise<{ host: string; port: number }> {
  try {
    await server.ready
  } catch (error) {
    throw listenError(error, options)
  }
  return { host: server.address()?.host ?? options.host, port: server.address()?.port ?? options.port }
}

function decide(header: PackageHeaders, gate: SessionGate): PackageDecision {
  // The package's WebSocket transport, meant for browsers without WebTransport, corrupts what they send.
  if (header['sec-websocket-protocol'] !== undefined) return { status: STATUS_NOT_IMPLEMENTED }
  const request: SessionRequest = {
    path: pathOf(header[':path'] ?? '/'),
    peer: header[PEER_HEADER],
  }
  const status = gate.admit(request)
  return status === 200 ? { status, path: ANY_PATH, userData: request } : { status }
}

/** The package does not show a request's address to its callback: the HTTP/2 driver writes it into the headers first. */
export const PEER_HEADER = 'x-iggy-edge-peer'

async function takeSessions(server: PackageServer, host: SessionHost, traits: SessionTraits): Promise<void> {
  for await (const inner of server.sessionStream(ANY_PATH, { noAutoPaths: true })) {
    void host.adopt(inner, inner.userData as SessionRequest, traits)
  }
}

function pathOf(pathAndQuery: string): string {
  const end = pathAndQuery.search(/[?#]/)
  return end < 0 ? pathAndQuery : pathAndQuery.slice(0, end)
}

function listenError(error: unknown, options: ListenOptions): EdgeError {
  const text = messageOf(error)
  const at = `${options.host}:${options.port}`
  if (/EADDRINUSE|address already in use/i.test(text)) {
    return new EdgeError('EDGE_ADDRESS_IN_USE', `address ${at} is taken by another process`, { cause: error })
  }
  if (/PEM|private key|cert/i.test(text)) {
    return new EdgeError('EDGE_CONFIG_INVALID', `certificate or private key cannot be used: ${text}`, { cause: error })
  }
  if (error instanceof EdgeError) return error
  return new EdgeError('EDGE_IO', `cannot listen on ${at}: ${text}`, { cause: error })
}
