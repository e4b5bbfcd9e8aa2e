/** The answers to readings, as effects. Pure. */
import {
  type AckedRun,
  EDGE_CODES,
  type EdgeCodeName,
  FRAMES,
  type Frame,
  type FrameType,
} from '../../../sdk/wire/edge/index.ts'
import type { AliasRefusal } from './aliases.ts'
import type { Effect } from './exchange.ts'
import type { PublishFrame } from './publish-readings.ts'

export interface NackFacts {
  readonly lane: number
  readonly first: number
  readonly count: number
  readonly code: number
  /** null: final, the readings are consumed; else the lane is held. */
  readonly retryMs: number | null
  readonly text: string
}

export function nack(stream: number, facts: NackFacts): Effect {
  return { type: 'send', stream, frame: { type: 'nack', ...facts } }
}

/** Something is missing before these readings. */
export function gapNack(stream: number, lane: number, expected: number, count: number): Effect {
  const { code, retryMs, meaning } = EDGE_CODES.sequenceGap
  return nack(stream, { lane, first: expected, count, code, retryMs, text: meaning })
}

export function wrongValue(stream: number, frame: PublishFrame | Frame<'skip'>, text: string): Effect {
  const ref = frame.type === 'skip' ? frame.first : frame.sequence
  return errorAbout(stream, frame.type, ref, { code: EDGE_CODES.valueInvalid.code, retryMs: null, text })
}

export function errorAbout(stream: number, type: FrameType, ref: number | null, refusal: AliasRefusal): Effect {
  const { code, retryMs, text } = refusal
  return { type: 'send', stream, frame: { type: 'error', code, of: FRAMES[type].number, ref, retryMs, text } }
}

/** With the code's own pause. */
export function errorNamed(
  stream: number,
  type: FrameType,
  ref: number | null,
  name: EdgeCodeName,
  text: string,
): Effect {
  const { code, retryMs } = EDGE_CODES[name]
  return errorAbout(stream, type, ref, { code, retryMs, text })
}

/** Runs that follow each other in sequence and offset are told as one. */
export function joined(runs: readonly AckedRun[]): AckedRun[] {
  const result: AckedRun[] = []
  for (const run of runs) {
    const last = result.at(-1)
    const isNext =
      last?.alias === run.alias &&
      last.partition === run.partition &&
      last.firstSequence + last.count === run.firstSequence &&
      last.offset + BigInt(last.count) === run.offset
    if (last !== undefined && isNext) result[result.length - 1] = { ...last, count: last.count + run.count }
    else result.push(run)
  }
  return result
}
