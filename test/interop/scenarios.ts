/**
 * What the official clients are asked to do. Each program under `clients/` carries out these scenarios with its own
 * client; `clients/README.md` says what each one shows. A program says nothing of what it was not asked for: what a client
 * has no call for stands in the catalog, never in the program.
 */
export const SCENARIOS = [
  'system',
  'streams-and-topics',
  'partitions',
  'partitioning',
  'polling',
  'payloads',
  'headers',
  'consumer-offsets',
  'consumer-groups',
  'tokens',
  'users',
  'permissions',
  'errors',
  'restart',
] as const

/** Scenarios of the `iggy` command line: one a command. */
export const CLI_SCENARIOS = [
  'system',
  'streams',
  'topics',
  'partitions',
  'messages',
  'consumer-groups',
  'consumer-offsets',
  'users',
  'tokens',
  'errors',
] as const

export type Scenario = (typeof SCENARIOS)[number] | (typeof CLI_SCENARIOS)[number]
export type Transport = 'tcp' | 'websocket' | 'quic' | 'http'
