/** Bounds and pauses of store-and-forward, with the reason for each value. */
export const SYNC_DEFAULTS = {
  /** One send holds at most this many records and bytes: below Iggy's 10 MiB request limit and HTTP's 2 MB body limit. */
  maxBatchCount: 1000,
  maxBatchBytes: 1024 * 1024,
  /** Over HTTP a payload grows by 4/3 in base64, and servers take bodies of 2,000,000 bytes. */
  maxHttpBatchBytes: 512 * 1024,
  /** Sends of different partitions that may be in flight on one upstream connection. */
  maxInFlight: 4,
  /** Pauses between attempts: full jitter below a ceiling that doubles from the minimum to the maximum. */
  retryDelayMinMs: 250,
  retryDelayMaxMs: 30_000,
  /**
   * After silence: with the next packets of an attempt, some seconds apart, data flows within ten seconds of a link that came
   * back behind the local router. Many edges that ask a dead server so often send it no more than the first packet each.
   */
  retryDelaySilentMaxMs: 5000,
  /** A link counts as healthy, and its backoff starts anew, after it has stood this long. */
  stableAfterMs: 60_000,
  /** A named trouble that only an operator (or a set clock) ends is tried again at this pace. */
  blockedRetryMs: 30_000,
  /** Certificate dates that do not fit our clock: tried often, since the clock may be set at any moment. */
  clockRetryMs: 4000,
  /** A send without an answer may still be on its way to the log of the upstream: so long nothing is sent again. */
  settleMs: 1500,
  /** Refusals of one record, by name, before it goes to the dead letters. */
  maxRefusals: 5,
  /** So many dead letters in a row without one success mean that the upstream refuses everything: stop giving up records. */
  maxDeadLettersInRow: 16,
  /** Messages per page when the upstream's tail is read, and the limit of the search when there is no cursor to go by. */
  tailPageCount: 500,
  tailScanMaxCount: 1_000_000,
  /** Requests are answered within this time or the connection is given up; adapts to the measured round trip in between. */
  requestTimeoutMinMs: 2000,
  requestTimeoutInitialMs: 10_000,
  requestTimeoutMaxMs: 60_000,
  /** What the slowest link worth using carries: large sends get that much more time. */
  slowestBytesPerSecond: 32_000,
  connectTimeoutMs: 15_000,
  /** Idle links are pinged so that address translation on the way keeps them. */
  heartbeatIntervalMs: 5000,
  /** Topics are looked for upstream this often: one that was deleted or made anew there is told and filled again. */
  topicCheckIntervalMs: 60_000,
  /** Over HTTP the server is asked this often whether it is still the same process. */
  httpCheckIntervalMs: 30_000,
  /** Interfaces and wall clock are looked at this often; a change ends every pause at once. */
  networkCheckMs: 2000,
  /** A link with work to do and no progress for this long is reported as stalled. */
  stalledAfterMs: 60_000,
  /** 0 = no limit. */
  maxBytesPerSecond: 0,
  dailyBudgetBytes: 0,
} as const

export type SyncDefaults = { readonly [Name in keyof typeof SYNC_DEFAULTS]: number }
