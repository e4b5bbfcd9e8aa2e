/** The readings of a frame, each with its time, whichever of the three forms it has. Pure. */
import type { Frame, Value, When } from '../../../sdk/wire/edge/index.ts'

export type PublishFrame = Frame<'publish' | 'batch' | 'series'>

/** One time a value. */
export interface TimedValues {
  readonly times: readonly When[]
  readonly values: readonly Value[]
}

export function readingsOf(frame: PublishFrame): TimedValues {
  if (frame.type === 'publish') return { times: [frame.time], values: [frame.value] }
  if (frame.type === 'series') {
    return { values: frame.values, times: frame.values.map((_, at) => later(frame.time, at * frame.intervalMs)) }
  }
  let sinceFirstMs = 0
  const times = frame.readings.values.map((_, at) => {
    sinceFirstMs += at === 0 ? 0 : (frame.readings.deltasMs[at - 1] ?? 0)
    return later(frame.time, sinceFirstMs)
  })
  return { values: frame.readings.values, times }
}

function later(when: When, ms: number): When {
  if (when === null) return null
  return typeof when === 'number' ? when + ms : { boot: when.boot, uptimeMs: when.uptimeMs + ms }
}
