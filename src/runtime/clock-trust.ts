/**
 * Whether the wall clock can be trusted: gateways without a battery start in the past and jump when the network comes.
 *
 * Untrusted while the clock is before the newest time this store has seen (kept as a floor), or while a time service runs
 * that has not set it yet. A time service that has set it is believed more than the floor: that may come from an hour in
 * which the clock was ahead. Time is never taken from a peer, and never set from here.
 */
import { existsSync } from 'node:fs'
import type { Clock } from '../clock.ts'
import type { MetadataStore } from '../log/index.ts'
import type { Logger } from '../logger.ts'
import { storedValue } from './stored-value.ts'

/** systemd-timesyncd: the folder is there while it runs, the file once it has set the clock. */
const TIMESYNC_FOLDER = '/run/systemd/timesync'
const TIMESYNC_DONE = '/run/systemd/timesync/synchronized'
const FLOOR_SETTING = 'clock.floor_us'
/** The floor is written this often: how far back a stopped clock may start without being noticed. */
const FLOOR_INTERVAL_US = 3_600_000_000
/** How often it is looked whether it is due: a gateway that never runs for an hour has a floor, too. */
const FLOOR_CHECK_MS = 60_000
/** Asked once per batch, so the files are looked at once a second. */
const JUDGEMENT_LASTS_US = 1_000_000
/** 2026-01-01: no release is older. */
const BUILD_FLOOR_US = 1_767_225_600_000_000n
/** 2090-01-01: clock chips that lost their battery begin in 2099, 2106 or 2165, and nobody runs this release by then. */
const CEILING_US = 3_786_912_000_000_000n

export interface ClockTrust {
  isTrusted(): boolean
  /** Why it is not trusted; empty while it is. */
  distrust(): string
  close(): void
}

export interface ClockSigns {
  readonly wallUs: bigint
  readonly floorUs: bigint
  readonly isTimeServiceRunning: boolean
  readonly hasTimeServiceSetIt: boolean
}

/** @returns why the clock is not to be trusted; empty when it is. */
export function judgeClock({ wallUs, floorUs, isTimeServiceRunning, hasTimeServiceSetIt }: ClockSigns): string {
  if (wallUs < BUILD_FLOOR_US) return 'the clock is not set: it shows a time at which this release cannot run'
  if (hasTimeServiceSetIt) return ''
  if (isTimeServiceRunning) return 'the time service has not set the clock yet'
  return wallUs < floorUs ? 'the clock is behind the newest time that this store has seen' : ''
}

/**
 * A clock too far ahead to be true is taken for one that was never set: it reads as if this process began in 1970. What was
 * stamped with 2099 would hold every later stamp of its partition there, and never be old enough to be dropped.
 */
export function plausibleClock(clock: Clock): Clock {
  return {
    wallUs() {
      const wallUs = clock.wallUs()
      return wallUs < CEILING_US ? wallUs : BigInt(Math.round(clock.monotonicUs()))
    },
    monotonicUs: () => clock.monotonicUs(),
  }
}

export function watchClock(
  clock: Clock,
  store: () => Pick<MetadataStore, 'setting' | 'setSetting'> | null,
  logger: Logger,
): ClockTrust {
  let floorWrittenUs = Number.NEGATIVE_INFINITY
  let judgedUs = Number.NEGATIVE_INFINITY
  let reason = ''
  const distrust = () => {
    const nowUs = clock.monotonicUs()
    if (nowUs - judgedUs < JUDGEMENT_LASTS_US) return reason
    judgedUs = nowUs
    reason = judgeClock({
      wallUs: clock.wallUs(),
      floorUs: floorOf(store()),
      isTimeServiceRunning: existsSync(TIMESYNC_FOLDER),
      hasTimeServiceSetIt: existsSync(TIMESYNC_DONE),
    })
    return reason
  }
  const floorOf = (known: ReturnType<typeof store>) =>
    (known === null ? undefined : storedValue(known, FLOOR_SETTING, BigInt, logger)) ?? 0n
  const isTrusted = () => distrust() === ''
  const timer = setInterval(() => {
    const nowUs = clock.monotonicUs()
    if (nowUs - floorWrittenUs < FLOOR_INTERVAL_US || !isTrusted()) return
    floorWrittenUs = nowUs
    // A missed floor is made up for by the next one.
    store()
      ?.setSetting(FLOOR_SETTING, String(clock.wallUs()))
      .catch(() => {})
  }, FLOOR_CHECK_MS)
  timer.unref()
  return { isTrusted, distrust, close: () => clearInterval(timer) }
}
