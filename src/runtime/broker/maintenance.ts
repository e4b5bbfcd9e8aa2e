/** What has to happen without being asked for: stale members, promised partitions, expired tokens, sums to keep. */
import { toEdgeError } from '../../errors.ts'
import type { BrokerContext } from './context.ts'
import type { Sessions } from './sessions.ts'
import { removeExpiredTokens } from './tokens.ts'

const TICK_MS = 1000
/**
 * Silence is looked at once an interval, as in Iggy, but not less often than this. With intervals of a second or two it keeps a
 * client from being given up for one heartbeat that came late: what it may miss beside is a fraction of a second there.
 */
const HEARTBEAT_CHECK_MAX_MS = 2000
/** A client may miss this share of an interval before it counts as dead, as in Iggy. */
const HEARTBEAT_TOLERANCE = 1.2
/** A look that comes so late was held up, and so were the heartbeats that wait to be read: it is left to the next one. */
const HEARTBEAT_CHECK_LATE_US = 500_000

/** A killed edge knows the sizes of its messages as well as at the last time. */
const SAVE_SIZES_US = 600_000_000

export interface Maintenance {
  run(): Promise<void>
  close(): Promise<void>
}

export function startMaintenance(context: BrokerContext, sessions: Sessions): Maintenance {
  const { heartbeat, personalAccessToken } = context.settings
  const { clock, liveGroups, logger, sizes } = context
  let lastCleanUs = clock.monotonicUs()
  let lastSaveUs = lastCleanUs
  const heartbeatCheckMs = Math.min(heartbeat.interval, HEARTBEAT_CHECK_MAX_MS)
  let lastHeartbeatCheckUs = lastCleanUs
  let saving: Promise<void> = Promise.resolve()
  let cleaning: Promise<void> = Promise.resolve()
  let isCleaning = false

  function run(): Promise<void> {
    checkHeartbeats()
    return tick()
  }

  function checkHeartbeats(): void {
    if (heartbeat.enabled) sessions.evictStale(heartbeat.interval * 1000 * HEARTBEAT_TOLERANCE)
  }

  function onHeartbeatTimer(): void {
    const nowUs = clock.monotonicUs()
    const isLate = nowUs - lastHeartbeatCheckUs > heartbeatCheckMs * 1000 + HEARTBEAT_CHECK_LATE_US
    lastHeartbeatCheckUs = nowUs
    if (!isLate) checkHeartbeats()
  }

  function tick(): Promise<void> {
    const nowUs = clock.monotonicUs()
    liveGroups.expirePromises(nowUs)
    if (!isCleaning && nowUs - lastCleanUs >= personalAccessToken.cleaner_interval * 1000) {
      lastCleanUs = nowUs
      isCleaning = true
      cleaning = clean()
    }
    if (nowUs - lastSaveUs >= SAVE_SIZES_US) {
      lastSaveUs = nowUs
      saving = saveSizes()
    }
    return cleaning
  }

  async function saveSizes(): Promise<void> {
    try {
      await sizes.save()
    } catch (error) {
      const { code, message } = toEdgeError(error)
      logger.warn('broker.sizes.save_failed', { error_code: code, error: message })
    }
  }

  async function clean(): Promise<void> {
    try {
      const removedCount = await removeExpiredTokens(context)
      if (removedCount > 0) logger.info('broker.tokens.expired', { token_count: removedCount })
    } catch (error) {
      // They stay refused, and the next round tries again.
      const { code, message } = toEdgeError(error)
      logger.warn('broker.tokens.clean_failed', { error_code: code, error: message })
    } finally {
      isCleaning = false
    }
  }

  const timers = [
    setInterval(() => void tick(), TICK_MS).unref(),
    setInterval(onHeartbeatTimer, heartbeatCheckMs).unref(),
  ]
  return {
    run,
    async close() {
      for (const timer of timers) clearInterval(timer)
      await Promise.all([cleaning, saving])
      await saveSizes()
    },
  }
}
