/** How much may be unacknowledged: one window for alarms, one that the other lanes share. Pure. */
import { ALARM_WINDOW, type EdgeLimits, LANES } from '../wire/edge/index.ts'
import type { LaneQueue } from './lane-queue.ts'

export interface LaneWindow {
  bytes: number
  readings: number
}

/** They change when the edge says so. */
export interface LaneWindows {
  alarm: LaneWindow
  shared: LaneWindow
}

export function windowsOf(limits: EdgeLimits): LaneWindows {
  return { alarm: { ...ALARM_WINDOW }, shared: { bytes: limits.windowBytes, readings: limits.windowReadings } }
}

/** Whether `queue`, one of `lanes`, may send that much more. */
export function fitsWindow(
  windows: LaneWindows,
  lanes: readonly LaneQueue[],
  queue: LaneQueue,
  sizeBytes: number,
  count: number,
): boolean {
  const isAlarm = queue.lane === LANES.alarm
  const window = isAlarm ? windows.alarm : windows.shared
  const sharing = lanes.filter(({ lane }) => (lane === LANES.alarm) === isAlarm)
  const bytes = sharing.reduce((sum, lane) => sum + lane.unackedBytes, 0)
  const readings = sharing.reduce((sum, lane) => sum + lane.unackedReadings, 0)
  // Queued for a larger window than the edge has: alone it is taken all the same.
  if (bytes === 0) return window.bytes > 0 && window.readings > 0
  return bytes + sizeBytes <= window.bytes && readings + count <= window.readings
}
