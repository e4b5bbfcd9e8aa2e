/** A device session without streams and without a log, for tests of what it decides. */
import { EdgeError } from '../../src/errors.ts'
import { DeviceSession } from '../../src/runtime/device/core/device-session.ts'
import type { Effect, Input, Moment, TargetFacts } from '../../src/runtime/device/core/exchange.ts'
import { DEFAULT_LIMITS, type EdgeLimits, type Frame } from '../../src/sdk/wire/edge/index.ts'

export const WALL_US = 1_764_439_200_000_000n
export const TARGET: TargetFacts = { partitionId: 3, promise: 'durable', maxPayloadBytes: 100 }
export const hello: Frame<'hello'> = {
  type: 'hello',
  minVersion: 1,
  maxVersion: 1,
  name: 'dev-1',
  auth: new Uint8Array(16),
  epoch: 77,
  lanes: [],
}
export const alias: Frame<'alias'> = {
  type: 'alias',
  alias: 1,
  topic: 'sensors/climate',
  kind: 3,
  options: { fields: [{ name: 'temp', unit: 'Cel', scale: -2 }], storedAs: 1, wantsOffsets: true },
}

/** Answers what the shell answers in the same turn; everything else the test says. */
export class SessionBench {
  readonly session: DeviceSession
  nowMs = 0
  offset = 100n
  refuseNext: EdgeError | undefined
  /** A full topic that drops the newest. */
  isFull = false
  tickets: number[] = []
  target = TARGET

  constructor(limits: Partial<EdgeLimits> = {}) {
    this.session = new DeviceSession({ startedMs: 0, limits: { ...DEFAULT_LIMITS, ...limits } })
  }

  step(input: Input): Effect[] {
    const all: Effect[] = []
    const left = this.session.step(input, this.moment())
    for (let effect = left.shift(); effect !== undefined; effect = left.shift()) {
      all.push(effect)
      const answer = this.#answer(effect)
      if (answer !== undefined) left.unshift(...this.session.step(answer, this.moment()))
    }
    return all
  }

  frame(frame: Frame, stream = 0, sizeBytes = 20): Effect[] {
    return this.step({ type: 'frame', stream, frame, sizeBytes })
  }

  /** `durable`: all that it has when not said. */
  open(given: { lane: number; have: number; durable?: number }[] = [], first: Frame = hello): Effect[] {
    this.frame(first)
    const lanes = given.map((one) => ({ durable: one.have, ...one }))
    return this.step({ type: 'authenticated', welcome: { session: 9, mayReadAllKeys: false, lanes } })
  }

  settleAll(error: EdgeError | null = null): Effect[] {
    return this.step({ type: 'settled', results: this.tickets.splice(0).map((ticket) => ({ ticket, error })) })
  }

  openWithAlias(): void {
    this.open()
    this.frame(alias)
  }

  publish(sequence: number): Effect[] {
    return this.frame({ type: 'publish', alias: 1, sequence, time: 81_234, value: 2157 })
  }

  moment(): Moment {
    return { monotonicMs: this.nowMs, wallUs: WALL_US, isWallTrusted: true, accuracyMs: 40 }
  }

  #answer(effect: Effect): Input | undefined {
    if (effect.type === 'resolve') {
      if (effect.topic === 'no/topic') {
        return {
          type: 'resolve-failed',
          alias: effect.alias,
          error: new EdgeError('EDGE_FORBIDDEN', 'publish no/topic'),
        }
      }
      return { type: 'resolved', alias: effect.alias, target: this.target }
    }
    if (effect.type === 'record') this.tickets.push(effect.ticket)
    if (effect.type !== 'append') return undefined
    const error = this.refuseNext
    this.refuseNext = undefined
    if (error !== undefined) return { type: 'append-refused', ticket: effect.ticket, error }
    if (effect.tag !== null) this.tickets.push(effect.ticket)
    if (this.isFull) return { type: 'appended', ticket: effect.ticket, offset: null }
    const offset = this.offset
    this.offset += BigInt(effect.batch.count)
    return { type: 'appended', ticket: effect.ticket, offset }
  }
}

export function series(sequence: number, values: number[]): Frame<'series'> {
  return { type: 'series', alias: 1, sequence, time: 0, intervalMs: 1000, values }
}

export function framesOf(effects: readonly Effect[]): Frame[] {
  return effects.flatMap((effect) => (effect.type === 'send' ? [effect.frame] : []))
}

export function appends(effects: readonly Effect[]) {
  return effects.filter((effect) => effect.type === 'append')
}

export function nackOf(effects: readonly Effect[]) {
  const frame = framesOf(effects).find((one) => one.type === 'nack')
  if (frame?.type !== 'nack') return undefined
  const { first, count, code, retryMs } = frame
  return { first, count, code, retryMs }
}

export function closeCode(effects: readonly Effect[]): number | undefined {
  const closing = effects.find((effect) => effect.type === 'close')
  return closing?.type === 'close' ? closing.code : undefined
}
