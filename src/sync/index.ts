/**
 * Store and forward: carries local topics to central servers, each record once and in order per partition, over links and
 * servers that come and go. What it promises and what its states mean: `docs/sync.md`.
 */
import type { Sync } from './api.ts'
import { readSyncOptions, type SyncOptions } from './options.ts'
import type { SyncPorts } from './ports.ts'

export type { Sync } from './api.ts'
export { parseRoute, type RouteSpec } from './core/route.ts'
export { SYNC_DEFAULTS } from './defaults.ts'
export { readSyncOptions, type SyncOptions, type UpstreamSpec } from './options.ts'
export type {
  BudgetStore,
  Cursor,
  CursorStore,
  DeadLetter,
  DeadLetterSink,
  LogSource,
  SourcePartition,
  SourceRead,
  SourceTopic,
  SpentBudget,
  SyncPorts,
} from './ports.ts'
export { SYNC_ROUTE_SETTINGS, SYNC_UPSTREAM_SETTINGS, upstreamSpecOf } from './settings.ts'
export type { SyncPartitionState, SyncReason, SyncState, UpstreamState } from './state.ts'

/**
 * Starts forwarding. Call it before anything new is appended: what the log holds at this moment is what an earlier process
 * may have sent.
 *
 * @throws {EdgeError} EDGE_CONFIG_INVALID with all problems; never for an upstream that cannot be reached.
 */
export async function startSync(options: SyncOptions, ports: SyncPorts): Promise<Sync> {
  const settings = readSyncOptions(options)
  // Large, and an edge without an upstream does without it.
  const { SyncRunner } = await import('./sync-runner.ts')
  return new SyncRunner(settings, ports)
}
