/** What sync offers to the rest of the runtime. Types only: `startSync` in `index.ts` returns a `Sync`. */
import type { SyncState } from './state.ts'

export interface Sync extends AsyncDisposable {
  state(): SyncState
  /** Tries every link that waits, now. */
  probe(): void
  /** Stops at once and resolves when nothing of it runs. Idempotent. */
  close(): Promise<void>
}
