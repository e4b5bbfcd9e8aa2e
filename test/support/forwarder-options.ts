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
