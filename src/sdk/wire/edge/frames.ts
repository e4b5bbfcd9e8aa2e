/**
 * All frames of the device protocol, version 1: one table for both directions, in the order of their fields on the wire.
 * The grammar for other languages is in `docs/protocol/edge.md`.
 */
import {
  ackedRuns,
  aliasId,
  auth,
  boolean,
  byteString,
  deviceName,
  type Field,
  type FieldValue,
  fieldSpecs,
  lane,
  laneSequences,
  milliseconds,
  nullable,
  offset,
  options,
  partitionChoice,
  pollWindow,
  promise,
  sequenceNumber,
  sourcedTime,
  spacedValues,
  startFrom,
  subscriptionId,
  text,
  topic,
  u32,
  uint,
  value,
  values,
  wallTime,
  when,
  will,
} from './fields.ts'
import { MAX_FRAME_BYTES, MIN_FRAME_BYTES } from './limits.ts'

const anyBytes = byteString(MAX_FRAME_BYTES)
const code = uint(255)
/** Highest type number that `error` can tell about. */
export const MAX_TYPE = 23_000
const frameType = uint(MAX_TYPE)

const helloOptions = options({
  1: ['boot', uint()],
  2: ['uptimeMs', milliseconds],
  3: ['wall', nullable(sourcedTime)],
  4: ['maxFrameBytes', uint(MAX_FRAME_BYTES, MIN_FRAME_BYTES)],
  5: ['will', will],
  6: ['firmware', text(64)],
})

const limits = options({
  1: ['maxFrameBytes', uint(MAX_FRAME_BYTES, MIN_FRAME_BYTES)],
  2: ['windowBytes', uint()],
  3: ['windowReadings', uint()],
  4: ['idleTimeoutMs', milliseconds],
  5: ['pingIntervalMs', milliseconds],
  6: ['aliases', uint()],
  7: ['subscriptions', uint()],
  8: ['streams', uint()],
  9: ['maxDatagramBytes', uint()],
  10: ['readingsPerSecond', uint()],
  11: ['bytesPerSecond', uint()],
  12: ['readingsPerFrame', uint()],
})

const aliasOptions = options({
  1: ['lane', lane],
  2: ['fields', fieldSpecs],
  3: ['contentType', text(64, 1)],
  4: ['partition', partitionChoice],
  5: ['wantsOffsets', boolean],
  /** 0 SenML CBOR, 1 SenML JSON, 2 as sent. */
  6: ['storedAs', uint(2)],
})

const subscribeOptions = options({
  1: ['allKeys', boolean],
  2: ['maxMessages', uint()],
  3: ['partition', u32],
  /** Of the log that `from` is an offset of, as `subscribed` told. */
  4: ['incarnation', u32],
})

const messageOptions = options({
  1: ['leftMs', milliseconds],
  2: ['commandId', byteString(32, 1)],
  3: ['isRetained', boolean],
  4: ['skippedCount', uint()],
})

interface FrameShape {
  readonly number: number
  readonly fields: Readonly<Record<string, Field<unknown>>>
  /** May be left out at the end. */
  readonly tail?: Readonly<Record<string, Field<unknown>>>
  /** Field that `error` names as the frame's id. */
  readonly ref?: string
}

export const FRAMES = {
  hello: {
    number: 1,
    fields: {
      minVersion: uint(255, 1),
      maxVersion: uint(255, 1),
      name: deviceName,
      auth,
      epoch: u32,
      lanes: laneSequences,
    },
    tail: { options: helloOptions },
  },
  welcome: {
    number: 2,
    fields: { version: uint(255, 1), session: uint(), lanes: laneSequences, limits, time: nullable(wallTime) },
    /** How far each lane is on stable storage. */
    tail: { durable: laneSequences },
  },
  /** Kinds: 0 bytes, 1 SenML-CBOR pack, 2 one CBOR item, 3 numbers. */
  alias: {
    number: 3,
    fields: { alias: aliasId, topic, kind: uint(3) },
    tail: { options: aliasOptions },
    ref: 'alias',
  },
  'alias-ok': { number: 4, fields: { alias: aliasId, promise } },
  publish: {
    number: 5,
    fields: { alias: aliasId, sequence: sequenceNumber, time: when, value },
    ref: 'sequence',
  },
  batch: {
    number: 6,
    fields: { alias: aliasId, sequence: sequenceNumber, time: when, readings: spacedValues },
    ref: 'sequence',
  },
  series: {
    number: 7,
    fields: { alias: aliasId, sequence: sequenceNumber, time: when, intervalMs: milliseconds, values },
    ref: 'sequence',
  },
  ack: { number: 8, fields: { lane, upTo: sequenceNumber, promise }, tail: { runs: ackedRuns } },
  nack: {
    number: 9,
    fields: { lane, first: sequenceNumber, count: uint(), code, retryMs: nullable(milliseconds) },
    tail: { text: text(120) },
  },
  window: { number: 10, fields: { lane, bytes: uint(), readings: uint() } },
  /** Why: 0 overflow, 1 expired, 2 damaged, 3 acknowledged once but lost by the edge. */
  skip: { number: 11, fields: { lane, first: sequenceNumber, count: uint(), why: uint(3) }, ref: 'first' },
  subscribe: {
    number: 12,
    fields: { subscription: subscriptionId, topic, from: startFrom, window: pollWindow },
    tail: { options: subscribeOptions },
    ref: 'subscription',
  },
  /** The incarnation is another one for a topic that was deleted and made again under its name. */
  subscribed: { number: 13, fields: { subscription: subscriptionId, next: offset }, tail: { incarnation: u32 } },
  message: {
    number: 14,
    fields: { subscription: subscriptionId, offset, ageMs: nullable(milliseconds), body: anyBytes },
    tail: { options: messageOptions },
  },
  /** Status: 0 taken (cumulative), 1 done, 2 failed, 3 refused, 4 expired, 5 unknown command, 6 superseded. */
  result: {
    number: 15,
    fields: { subscription: subscriptionId, offset, status: uint(6) },
    tail: { body: anyBytes },
    ref: 'subscription',
  },
  end: { number: 16, fields: { subscription: subscriptionId }, tail: { code }, ref: 'subscription' },
  ping: { number: 17, fields: { number: uint() }, tail: { uptimeMs: milliseconds }, ref: 'number' },
  pong: { number: 18, fields: { number: uint(), time: nullable(wallTime) } },
  clock: { number: 19, fields: { boot: uint(), wall: nullable(sourcedTime) }, ref: 'boot' },
  bye: { number: 20, fields: { code, pauseMs: milliseconds }, tail: { uri: text(255) } },
  error: {
    number: 21,
    fields: { code, of: frameType, ref: nullable(uint()), retryMs: nullable(milliseconds) },
    tail: { text: text(120) },
  },
  /** Bare, in a datagram: no byte string around it. */
  datagram: { number: 22, fields: { alias: aliasId, number: u32, time: when, value } },
  'datagram-report': {
    number: 23,
    fields: { alias: aliasId, taken: uint(), highest: u32, missing: uint() },
  },
} as const satisfies Record<string, FrameShape>

export type FrameType = keyof typeof FRAMES

type FieldsOf<T> = { readonly [K in keyof T]: FieldValue<T[K]> }
type TailOf<T> = T extends { readonly tail: infer U } ? { readonly [K in keyof U]?: FieldValue<U[K]> } : unknown

/** One frame as an object, by its type. */
export type Frame<T extends FrameType = FrameType> = {
  [K in T]: { readonly type: K } & FieldsOf<(typeof FRAMES)[K]['fields']> & TailOf<(typeof FRAMES)[K]>
}[T]

/** Types from here on are read over in silence when unknown; unknown ones below are answered with an error. */
export const FIRST_IGNORABLE_TYPE = 64
