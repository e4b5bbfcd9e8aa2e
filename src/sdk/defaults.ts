/** Defaults and bounds of the client. Names and values follow Iggy's SDKs where they mean the same. */
export const SDK_DEFAULTS = {
  port: 8090,
  httpPort: 3000,
  webTransportPort: 8443,
  /** Until a connection stands, TLS and session included. */
  connectTimeoutMs: 15_000,
  /** A server is asked which generation it speaks; one that says nothing for so long is taken for unreachable. */
  probeTimeoutMs: 3000,
  /** Iggy's clients wait as long for a reply; then the connection is given up, since its answers are out of step. */
  requestTimeoutMs: 30_000,
  heartbeatIntervalMs: 5000,
  reconnectionIntervalMs: 1000,
  /** Short: after a restart of a server, members of a group are to be back within seconds, however long it was away. */
  reconnectionIntervalMaxMs: 3000,
  reestablishAfterMs: 5000,
  /** A read is asked for on so many connections that are lost over it: it may be what makes the server hang up. */
  readConnections: 3,
  /** Requests that wait for an answer on one connection, and those queued behind them. */
  maxInFlight: 16,
  maxQueuedRequests: 1024,
  /** Largest answer taken from a server. */
  maxResponseBytes: 64 * 1024 * 1024,
  /** An answer "not accepted" (58) is surely not applied: repeated for so long. */
  transientRetryMs: 2000,
  transientRetryDelayMs: 50,

  producerBatchCount: 1000,
  producerBatchBytes: 1024 * 1024,
  producerLingerMs: 1,
  producerBufferBytes: 32 * 1024 * 1024,
  /** Callers whose messages wait for room in the buffer. */
  producerMaxWaiting: 65_536,
  producerRetries: 3,
  producerRetryDelayMinMs: 250,
  producerRetryDelayMaxMs: 10_000,

  consumerBatchCount: 1000,
  /** Pause on an empty partition: doubles from the first to the second while nothing comes. */
  consumerIdleMinMs: 10,
  consumerIdleMaxMs: 1000,
  consumerCommitIntervalMs: 1000,
  /** How soon a member learns that partitions were given to it. */
  groupSyncIntervalMs: 1000,
  /** How soon a consumer of one partition learns that its topic was made anew. The answer names all partitions: not as often. */
  topicLookIntervalMs: 5000,

  deviceResendReadings: 1024,
  deviceResendBytes: 64 * 1024,
  deviceMaxFrameBytes: 1024,
  /** Silence of the edge while an ack, a pong or the welcome is due: then the session is given up and a new one dialed. */
  deviceAnswerTimeoutMs: 8000,
  deviceReconnectMinMs: 1000,
  deviceReconnectMaxMs: 60_000,
  /** An edge that asks for a longer pause is asked again all the same: it may have meant another unit, or have got well since. */
  devicePauseMaxMs: 3_600_000,
  stableAfterMs: 60_000,
  /** Who hangs up sooner is not dialed again at once, whatever `reestablish_after` says. */
  leastAliveMs: 1000,
} as const
