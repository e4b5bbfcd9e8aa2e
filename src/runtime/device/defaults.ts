/** Bounds of device sessions that the protocol does not negotiate, with the reason for each. */
export const DEVICE_DEFAULTS = {
  /** Sessions that have not shown a credential: each may hold a stream, a few KiB and one lookup. */
  maxUnknownSessions: 64,
  maxUnknownSessionsPerPeer: 8,
  /** All refusals of a credential take this long, whatever the reason: they cannot be told apart, nor tried in bulk. */
  refusalDelayMs: 1000,
  /** Writes of an older session of the same device have so long to settle before the newer one is sent away to come again. */
  takeoverTimeoutMs: 5000,
  /** Unacknowledged bytes of all sessions; beyond it the heaviest windows are cut. */
  maxUnackedBytes: 32 * 1024 * 1024,
  cutWindowBytes: 4096,
  cutWindowReadings: 64,
  tickIntervalMs: 1000,
  /** The last frames of a session are given this long to leave before it is closed. */
  closeLingerMs: 100,
  /** When devices should come back after the edge was stopped. */
  stopRetryMs: 5000,
} as const
