/**
 * Whether the wall clock can be trusted: gateways without a battery start in the past and jump when the network comes.
 *
 * Untrusted while the clock is before the newest time this store has seen (kept as a floor), or while a time service runs
 * that has not set it yet. Time is never taken from a peer, and never set from here.
 */
import { existsSync } from 'node:fs'
import type { Clock } from '../clock.ts'
import type { MetadataStore } from '../log/index.ts'

/** systemd-timesyncd: the folder is there while it runs, the file once it has set the clock. */
const TIMESYNC_FOLDER = '/run/systemd/timesync'
const TIMESYNC_DONE = '/run/systemd/timesync/synchronized'
const FLOOR_SETTING = 'clock.floor_us'
/** The floor is written this often: how far back a stopped clock may start without being noticed. */
const FLOOR_INTERVAL_MS = 3_600_000
/** Asked once per batch, so the files are looked at once a second. */
const JUDGEMENT_LASTS_US = 1_000_000
/** 2026-01-01: no release is older. */
const BUILD_FLOOR_US = 1_767_225_600_000_000n

export interface ClockTrust {
  isTrusted(): boolean
  close(): void
}

export interface ClockSigns {
  readonly wallUs: bigint
  readonly floorUs: bigint
  readonly isTimeServiceRunning: boolean
  readonly hasTimeServiceSetIt: boolean
}

export function judgeClock({ wallUs, floorUs, isTimeServiceRunning, hasTimeServiceSetIt }: ClockSigns): boolean {
  if (wallUs < floorUs || wallUs < BUILD_FLOOR_US) return false
  return !isTimeServiceRunning || hasTimeServiceSetIt
}

export function watchClock(
  clock: Clock,
  store: () => Pick<MetadataStore, 'setting' | 'setSetting'> | null,
): ClockTrust {
  let judgedUs = Number.NEGATIVE_INFINITY
  let isGood = false
  const isTrusted = () => {
    const nowUs = clock.monotonicUs()
    if (nowUs - judgedUs < JUDGEMENT_LASTS_US) return isGood
    judgedUs = nowUs
    isGood = judgeClock({
      wallUs: clock.wallUs(),
      floorUs: BigInt(store()?.setting(FLOOR_SETTING) ?? 0),
      isTimeServiceRunning: existsSync(TIMESYNC_FOLDER),
      hasTimeServiceSetIt: existsSync(TIMESYNC_DONE),
    })
    return isGood
  }
  const timer = setInterval(() => {
    if (!isTrusted()) return
    // A missed floor is made up for by the next one.
    store()
      ?.setSetting(FLOOR_SETTING, String(clock.wallUs()))
      .catch(() => {})
  }, FLOOR_INTERVAL_MS)
  timer.unref()
  return { isTrusted, close: () => clearInterval(timer) }
}
