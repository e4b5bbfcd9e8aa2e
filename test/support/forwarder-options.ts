import type { RunnerOptions } from '../../src/sync/io/partition-runner.ts'

/** Of a forwarder that tries again at once and gives up at the first refusal. */
export const QUICK_FORWARDER: RunnerOptions['forwarder'] = {
  idPrefix: () => 7n,
  bounds: { maxCount: 1000, maxBytes: 1e6 },
  retry: { minDelayUs: 1000, maxDelayUs: 1000 },
  blockedRetryUs: 1000,
  settleUs: 0,
  maxRefusals: 1,
  maxDeadLettersInRow: 1,
  tailPageCount: 10,
  tailScanMaxCount: 10,
  random: () => 0.5,
}

/** Of a forwarder in a simulated world: a few refusals before it gives up, and all of the tail is searched. */
export const WORLD_FORWARDER = {
  retry: { minDelayUs: 10_000, maxDelayUs: 1_000_000 },
  blockedRetryUs: 2_000_000,
  settleUs: 1_000_000,
  maxRefusals: 3,
  maxDeadLettersInRow: 4,
  tailPageCount: 50,
  tailScanMaxCount: 1_000_000,
} as const
