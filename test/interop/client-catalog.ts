/** The official clients this suite runs, each at a pinned version, and what each of them has no call for. */
import { CLI_SCENARIOS, SCENARIOS, type Scenario, type Transport } from './scenarios.ts'

export interface ClientRun {
  readonly client: string
  readonly version: string
  readonly transport: Transport
  readonly scenarios: readonly Scenario[]
  /** What the client has no call for on this transport. */
  readonly lacks: readonly Scenario[]
}

/** What the client cannot do by itself, on any transport or on one, so that no server could show it. */
interface Lacks {
  /** It does not even connect over these. */
  readonly transports?: readonly Transport[]
  readonly everywhere?: readonly Scenario[]
  readonly websocket?: readonly Scenario[]
  readonly quic?: readonly Scenario[]
  readonly http?: readonly Scenario[]
}

interface Client {
  readonly client: string
  readonly versions: readonly string[]
  readonly transports: readonly Transport[]
  readonly all: readonly Scenario[]
  readonly lacks: Readonly<Record<string, Lacks>>
}

/** A member is a connection: over HTTP no client can join a group. */
const NO_MEMBERS: readonly Scenario[] = ['consumer-groups']

/**
 * Up to 0.10.0 a lost request waits, before it reconnects, until its endpoint has no connection: for ever when the heartbeat has
 * reconnected on it meanwhile. So it does with Apache's server.
 */
const NO_RETURN: readonly Scenario[] = ['restart']

const CLIENTS: readonly Client[] = [
  {
    client: 'python',
    versions: ['0.8.0', '0.9.0'],
    transports: ['tcp', 'websocket', 'quic', 'http'],
    all: SCENARIOS,
    lacks: {
      // No calls for partitions, users and headers, and none to choose how messages are spread.
      '0.8.0': {
        // It makes its endpoint outside of its runtime: CannotCreateEndpoint, before anything is sent.
        transports: ['quic'],
        everywhere: ['partitions', 'partitioning', 'headers', 'users', 'permissions'],
        // Offsets are stored by a member; credentials in an HTTP address are dropped by the client, tokens too.
        http: [...NO_MEMBERS, 'consumer-offsets', 'tokens'],
      },
      '0.9.0': { http: [...NO_MEMBERS, 'consumer-offsets', 'tokens'] },
    },
  },
  {
    client: 'rust',
    versions: ['0.10.0', '0.11.0'],
    transports: ['tcp', 'websocket', 'quic', 'http'],
    all: SCENARIOS,
    lacks: { '0.10.0': { http: NO_MEMBERS, quic: NO_RETURN }, '0.11.0': { http: NO_MEMBERS } },
  },
  { client: 'go', versions: ['0.8.0'], transports: ['tcp'], all: SCENARIOS, lacks: {} },
  {
    client: 'java',
    versions: ['0.8.0'],
    transports: ['tcp', 'http'],
    all: SCENARIOS,
    lacks: { '0.8.0': { http: NO_MEMBERS } },
  },
  {
    client: 'iggy-cli',
    versions: ['0.13.0', '0.14.0'],
    transports: ['tcp', 'websocket', 'quic', 'http'],
    all: CLI_SCENARIOS,
    // Its commands for tokens end in a panic of its own over WebSocket, before they ask the server.
    lacks: { '0.13.0': { websocket: ['tokens'] }, '0.14.0': { websocket: ['tokens'] } },
  },
]

function runsOf({ client, versions, transports, all, lacks }: Client): ClientRun[] {
  return versions.flatMap((version) => {
    const { transports: missing = [], everywhere = [], ...only } = lacks[version] ?? {}
    const there = transports.filter((transport) => !missing.includes(transport))
    return there.map((transport) => {
      const without = [...everywhere, ...(transport === 'tcp' ? [] : (only[transport] ?? []))]
      return { client, version, transport, scenarios: all.filter((name) => !without.includes(name)), lacks: without }
    })
  })
}

/** Every combination of client, version and transport, in the order of the matrix. */
export const CLIENT_RUNS: readonly ClientRun[] = CLIENTS.flatMap(runsOf)

export function runsOfClient(client: string): readonly ClientRun[] {
  return CLIENT_RUNS.filter((run) => run.client === client)
}
