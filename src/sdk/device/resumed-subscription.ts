/** A subscription as it is sent in the next session: goes on where this one was. Pure. */
import type { Frame } from '../wire/edge/index.ts'

/** @param count of messages that have come: a poll asks for so many fewer. */
export function goingOnAt(next: bigint, frame: Frame<'subscribe'>, count: number): Frame<'subscribe'> {
  const { from, options = {} } = frame
  const { maxMessages } = options
  return {
    ...frame,
    from: from === 'stored' ? from : next,
    options: maxMessages === undefined ? options : { ...options, maxMessages: Math.max(0, maxMessages - count) },
  }
}

/** Offsets are numbers of one log: where the topic was made anew meanwhile, the edge begins at its oldest message. */
export function ofLog(incarnation: number, frame: Frame<'subscribe'>): Frame<'subscribe'> {
  return { ...frame, options: { ...frame.options, incarnation } }
}
